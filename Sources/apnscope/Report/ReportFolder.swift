import ArgumentParser
import Bytes
import Glibc
import Reporting

/// The folder that a report is written into.
struct ReportFolder {
  /// With a slash at its end.
  let path: String

  /// Makes the folder, and those that it is in. Complains and throws an exit code when that fails.
  init(_ path: String) throws {
    self.path = path.hasSuffix("/") ? path : path + "/"
    for (index, letter) in self.path.enumerated() where letter == "/" && index > 0 {
      let folder = String(self.path.prefix(index))
      guard unsafe mkdir(folder, 0o755) != 0, errno != EEXIST else { continue }
      complain("\(folder): \(SystemError.text(errno))")
      throw ExitStatus.inputOutput
    }
  }

  /// What a report writes there, and an earlier one may have written: copies of what it was made from aside.
  static func pages(in folder: String) -> [String] {
    let folder = folder.hasSuffix("/") ? folder : folder + "/"
    var charts: [String] = []
    repeat {
      charts.append("\(folder)chart-\(charts.count + 1).svg")
    } while unsafe access(charts[charts.count - 1], F_OK) == 0
    return ["\(folder)report.html", "\(folder)report.md"] + charts
  }

  /// Of a folder that may have to be made first: itself, or the nearest that it will be in and that there is; with a
  /// slash at its end.
  static func existing(_ path: String) -> String {
    var folder = path[...]
    while !folder.isEmpty {
      while folder.count > 1, folder.last == "/" { folder.removeLast() }
      var status = stat()
      if unsafe stat(String(folder), &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
        return folder == "/" ? "/" : folder + "/"
      }
      guard folder != "/" else { break }
      folder = folder[..<(folder.lastIndex(of: "/").map { folder.index(after: $0) } ?? folder.startIndex)]
    }
    return path.hasPrefix("/") ? "/" : "./"
  }

  /// Writes `report.html`, `report.md` and its charts, and copies of files; says the names of the first two.
  ///
  /// - Parameter files: names in the folder, and what is copied to them.
  func write(_ page: Page, copying files: [(name: String, from: String)]) throws {
    // Read before anything is written: they may be in this folder. One that is its own copy is left alone.
    let copies = try files.filter { !FilesInUse.isSame($0.from, path + $0.name) }.map { file in
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
    standard.say("\(path)report.html\n\(path)report.md")
    try standard.check()
  }

  /// Says which copies in the folder are not of this report. They stay: what was measured may be nowhere else.
  private func nameStrangers(except own: [String]) {
    let copies = ["run.json", "ledger.json", "baseline.json", "capacity.json"]
    let strangers = copies.filter { !own.contains($0) }.filter { unsafe access(path + $0, F_OK) == 0 }
    guard !strangers.isEmpty else { return }
    complain("\(path): the report is not made from these files in it, which stay: \(strangers.joined(separator: ", "))")
  }

  /// Writes the page in both forms, and documents beside it. An earlier report stays as it was when there is no room for
  /// all of them.
  func write(_ page: Page, _ documents: [(name: String, bytes: [UInt8])]) throws {
    let markdown = page.markdown()
    let files =
      documents + markdown.charts.map { ($0.name, Array($0.text.utf8)) }
      + [("report.html", Array(page.html.utf8)), ("report.md", Array(markdown.text.utf8))]
    let prepared = try files.map { name, bytes in
      let document = try WholeDocument(path + name)
      document.prepare(bytes)
      try document.check()
      return document
    }
    for document in prepared {
      document.commit()
      try document.check()
    }
    removeCharts(after: markdown.charts.count)
  }

  /// Complains and throws an exit code when a file of the folder cannot be written; changes nothing.
  func check(_ name: String) throws { _ = try WholeDocument(path + name) }

  /// Those of an earlier report that had more.
  private func removeCharts(after count: Int) {
    var number = count + 1
    while unsafe unlink("\(path)chart-\(number).svg") == 0 { number += 1 }
  }
}
