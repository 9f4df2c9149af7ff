import Foundation
import Measurement
import TestSupport
import Testing

/// `Documentation/analysis.md`: what it tells people to type is typed.
@Suite("the page about analysis", .waiting)
struct AnalysisPageTests {
  private static let root = Command.traces.deletingLastPathComponent()
  /// Made by `Scripts/test`; has DuckDB and polars.
  private static let python = root.appending(path: ".build/analysis/bin/python").path
  static let isInstalled = FileManager.default.fileExists(
    atPath: root.appending(path: ".build/analysis/installed").path)

  struct Block: Sendable, CustomTestStringConvertible {
    var language: String
    var text: String
    var testDescription: String { text.split(separator: "\n").first.map(String.init) ?? "" }
    var needsJQ: Bool { text.contains("jq ") }
  }

  /// The page's blocks in their order.
  static let blocks: [Block] = {
    let page = (try? String(contentsOf: root.appending(path: "Documentation/analysis.md"), encoding: .utf8)) ?? ""
    return page.components(separatedBy: "```").enumerated().compactMap { number, part in
      guard !number.isMultiple(of: 2), let end = part.firstIndex(of: "\n") else { return nil }
      return Block(language: String(part[..<end]), text: String(part[end...].dropFirst()))
    }
  }()

  @Test("The page has blocks for each tool") func page() {
    #expect(Self.blocks.count { $0.language == "sh" && $0.needsJQ } == 2)
    #expect(Self.blocks.count { $0.text.contains("import duckdb") } == 4)
    #expect(Self.blocks.count { $0.text.contains("import polars") } == 1)
    #expect(Self.blocks.allSatisfy { $0.language == "sh" || $0.language == "python" })
  }

  @Test("What the shell is told works", arguments: blocks.filter { $0.language == "sh" && !$0.needsJQ })
  func shell(block: Block) throws { try run(block) }

  @Test(
    "jq finds what the page says", .enabled(if: ExternalTool.isInstalled("jq"), "jq is not installed"),
    arguments: blocks.filter { $0.language == "sh" && $0.needsJQ })
  func jq(block: Block) throws { try run(block) }

  @Test(
    "DuckDB and polars find what the page says",
    .enabled(if: isInstalled, "DuckDB and polars are not installed; Scripts/test does that"),
    arguments: blocks.filter { $0.language == "python" })
  func python(block: Block) throws { try run(block) }

  /// What each block has to say about the trace, in lines from which white space and frames are taken.
  private func run(_ block: Block) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "capture.pcap")
      // A short run of a load, whose gateway nobody needs.
      try Self.result.jsonDocument().write(
        to: command.folder.appending(path: "run.json"), atomically: true, encoding: .utf8)
      #expect(try command.run("decode", "--output", "records/", "capture.pcap").status == 0)
      let outcome: Outcome
      if block.language == "python" {
        try command.write(Array(block.text.utf8), "block.py")
        outcome = try RunningProcess(Self.python, ["block.py"], in: command.folder).end()
      } else {
        let folder = URL(filePath: Command.path).deletingLastPathComponent().path
        outcome = try command.shell("set -euo pipefail; PATH='\(folder)':$PATH\n" + block.text)
      }
      #expect(outcome.status == 0 && outcome.errors == "", "\(outcome.errors)")
      let lines = outcome.lines.map { line in
        line.split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "," }.joined(separator: " ")
      }
      for expected in try expectations(of: block) {
        #expect(lines.contains(expected), "\(expected) is not in \(outcome.output)")
      }
    }
  }

  /// Two seconds of a load.
  private static var result: RunResult {
    var result = RunResult()
    for second in [1, 2] {
      var sample = RunResult.Sample()
      sample.tS = Double(second - 1)
      (sample.written, sample.accepted, sample.errors) = (100 * second, 100 * second - 10, second)
      sample.sendLagP99Us = 250 * second
      result.series.append(sample)
    }
    return result
  }

  private func expectations(of block: Block) throws -> [String] {
    for (part, lines) in [
      ("--output records/", []), ("--fields time,token,identifier", ["time,identifier,token"]),
      ("jq -r 'select", []), ("jq -r .fate", ["7 accepted", "26 discarded", "1 rejected", "32 unknown"]),
      ("group by all", ["1 accepted 7", "1 discarded 26", "1 rejected 1", "2 unknown 32"]), ("join", []),
      ("parquet", ["66"]), ("from read_json('run.json')", ["0 100 90 1 250", "1 200 190 2 500"]),
      ("polars", ["accepted 7", "discarded 26", "rejected 1", "unknown 32"]),
    ] as [(String, [String])] where block.text.contains(part) {
      return lines
    }
    throw TimeoutError("nothing is expected of: \(block.text)")
  }
}
