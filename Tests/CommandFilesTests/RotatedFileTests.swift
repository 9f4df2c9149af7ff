import Bytes
import Foundation
import TestSupport
import Testing

@testable import CommandFiles

@Suite("Files that are continued in others")
struct RotatedFileTests {
  private static func line(_ text: String) -> [UInt8] { Array("\(text)\n".utf8) }

  private func inFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "rotated-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.path)
  }

  private func contents(_ folder: String) throws -> [String: String] {
    var contents: [String: String] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      contents[name] = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
    }
    return contents
  }

  @Test(
    "No line is lost, each file begins with the first one, and none is larger than allowed but for one write",
    arguments: seeds(10, of: 60))
  func law(seed: UInt64) throws {
    try inFolder { folder in
      var random = SeededGenerator(seed: seed)
      let size = random.number(40...400)
      var second = 0.0
      let file = try RotatedFile("\(folder)/a.jsonl", .init(maximumBytes: size)) {
        // Several files may be full within a second.
        second += random.happens(oneIn: 2) ? 1 : 0
        return Date(timeIntervalSince1970: 1_700_000_000 + second)
      }
      var written = ["first"]
      #expect(file.write(lines: Self.line("first")))
      for number in 0..<random.number(0...80) {
        let lines = (0..<random.number(1...4)).map { "line \(number) \($0)" }
        #expect(file.write(lines: lines.flatMap(Self.line)))
        written += lines
      }
      try file.check()
      let contents = try contents(folder)
      var found: [String] = []
      for (name, text) in contents {
        #expect(text.hasPrefix("first\n") && text.hasSuffix("\n") && name.hasPrefix("a.jsonl"))
        let lines = text.split(separator: "\n").map(String.init)
        found += lines.dropFirst()
        // A write that is larger than a file has one of its own.
        #expect(text.utf8.count <= max(size, 6 + 4 * 11), "\(text.utf8.count) \(size)")
      }
      #expect(found.sorted() == written.dropFirst().sorted())
      #expect(contents["a.jsonl"] != nil)
    }
  }

  @Test("Of the full files only the latest stay, and files of others are never removed") func limit() throws {
    try inFolder { folder in
      let other = "\(folder)/a.jsonl.20231114T221320Z"
      try Data("other".utf8).write(to: URL(filePath: other))
      let file = try RotatedFile("\(folder)/a.jsonl", .init(maximumBytes: 20, maximumFiles: 2)) {
        Date(timeIntervalSince1970: 1_700_000_000)
      }
      for number in 0..<6 { #expect(file.write(lines: Self.line("number \(number) \(number)"))) }
      try file.check()
      let contents = try contents(folder)
      #expect(contents.count == 4 && contents["a.jsonl.20231114T221320Z"] == "other", "\(contents)")
      #expect(contents["a.jsonl"]?.hasSuffix("number 5 5\n") == true)
      #expect(
        Set(contents.keys.filter { $0.contains("Z-") }) == ["a.jsonl.20231114T221320Z-5", "a.jsonl.20231114T221320Z-6"])
    }
  }

  @Test("A device is never full, and a full disk is told") func devices() throws {
    let null = try RotatedFile("/dev/null", .init(maximumBytes: 1))
    for _ in 0..<3 { #expect(null.write(lines: Self.line("line"))) }
    try null.check()
    let full = try RotatedFile("/dev/full", .init(maximumBytes: 1))
    #expect(!full.write(lines: Self.line("line")))
    #expect(throws: FileFailure.self) { try full.check() }
  }
}

extension RotatedFile {
  /// A span cannot be part of an expectation.
  fileprivate func write(lines: [UInt8]) -> Bool { write(lines.rawBytes) }
}
