import ArgumentParser
import Bytes
import CommandFiles
import Glibc
import Reporting

/// Throws when the output is standard output, which has no files.
func requireFolder(_ output: String?) throws {
  guard output == OutputFile.standardOutput else { return }
  throw ValidationError("--output takes a folder: there are several files, which standard output cannot take.")
}

/// The folder that a report is written into.
struct ReportFolder {
  private let folder: OutputFolder

  /// Creates the folder, and its missing parents.
  init(_ path: String) throws(FileFailure) { folder = try OutputFolder(path) }

  /// The files of a report, including an earlier one, without copies of its inputs.
  static func pages(in folder: String) -> [String] {
    let folder = folder.hasSuffix("/") ? folder : folder + "/"
    var charts: [String] = []
    repeat {
      charts.append("\(folder)chart-\(charts.count + 1).svg")
    } while Paths.exists(charts[charts.count - 1])
    return ["\(folder)report.html", "\(folder)report.md"] + charts
  }

  /// Writes `report.html`, `report.md` with its charts, and copies of files; reports the paths of the first two.
  ///
  /// - Parameter files: names in the folder, and the files copied to them.
  func write(_ page: Page, copying files: [(name: String, from: String)]) throws {
    // Read before anything is written, since they may be in this folder. A file that is its own copy is skipped.
    let copies = try files.filter { !FilesInUse.isSame($0.from, folder.path + $0.name) }.map { file in
      do {
        return (file.name, try WholeFile.read(file.from, maximumLength: ResultDocument.maximumLength))
      } catch {
        complain("\(file.from): \(error)")
        throw ExitStatus.cannotOpen
      }
    }
    try write(page, copies)
    nameStrangers(except: files.map(\.name))
    let standard = try TextOutput()
    standard.say(RedactedArguments.redacted("\(folder.path)report.html\n\(folder.path)report.md"))
    try standard.check()
  }

  /// The name of a ledger's copy; of several they are numbered from 1.
  ///
  /// - Parameter number: from 0.
  static func ledger(_ number: Int, of count: Int) -> String {
    count == 1 ? "ledger.json" : "ledger-\(number + 1).json"
  }

  /// Warns about copies in the folder that are not inputs of this report. They stay: they may be the only copy of a
  /// measurement.
  private func nameStrangers(except own: [String]) {
    var copies = ["run.json", "ledger.json", "baseline.json", "capacity.json", "fleet.json"]
    var number = 0
    while Paths.exists(folder.path + Self.ledger(number, of: 2)) {
      copies.append(Self.ledger(number, of: 2))
      number += 1
    }
    let strangers = copies.filter { !own.contains($0) && Paths.exists(folder.path + $0) }
    guard !strangers.isEmpty else { return }
    complain(
      "\(folder.path): these files in the folder are not inputs of the report and stay: \(strangers.joined(separator: ", "))"
    )
  }

  /// Writes the page in both forms, and the documents. An earlier report stays unchanged if there is no space for all
  /// files.
  func write(_ page: Page, _ documents: [(name: String, bytes: [UInt8])]) throws(FileFailure) {
    let markdown = page.markdown()
    try folder.write(
      documents + markdown.charts.map { ($0.name, Array($0.text.utf8)) }
        + [("report.html", Array(page.html.utf8)), ("report.md", Array(markdown.text.utf8))])
    removeCharts(after: markdown.charts.count)
  }

  /// Throws when a file of the folder cannot be written; changes nothing.
  func check(_ name: String) throws(FileFailure) { try folder.check(name) }

  /// Removes the further charts of an earlier report that had more charts.
  private func removeCharts(after count: Int) {
    var number = count + 1
    while unsafe unlink("\(folder.path)chart-\(number).svg") == 0 { number += 1 }
  }
}
