import Foundation
import OutputSchema
import TestSupport
import Testing

/// Holds an output against its schema. Helpers that read outputs call it, so that every output of the tests is checked,
/// whatever else a test looks at.
func expectValid(
  _ bytes: [UInt8], _ schema: Schema, _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation
) {
  let problems = schema.check(schema.form == .lines ? someLines(of: bytes) : bytes)
  #expect(problems == [], "\(comment) is not valid against the schema '\(schema.name)'", sourceLocation: sourceLocation)
}

/// The first and the last whole lines: what is between in a long output is more of the same.
private func someLines(of bytes: [UInt8]) -> [UInt8] {
  let length = TestRun.isWhole ? 1 << 20 : 1 << 17
  guard bytes.count > 2 * length else { return bytes }
  let first = bytes[..<length].lastIndex(of: UInt8(ascii: "\n")).map { bytes[...$0] } ?? []
  let last = bytes.suffix(length)
  return Array(first) + (last.firstIndex(of: UInt8(ascii: "\n")).map { last[($0 + 1)...] } ?? [])
}

/// The same of a file of the command's folder.
func expectValid(
  file name: String, _ schema: Schema, in command: Command, sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let bytes = [UInt8](try Data(contentsOf: command.folder.appending(path: name)))
  expectValid(bytes, schema, name, sourceLocation: sourceLocation)
}

extension Outcome {
  /// What a command wrote to standard output is valid, when it is an output that has a schema.
  func expectValidOutput(of arguments: [String]) {
    guard let schema = Self.schema(of: arguments), Self.wholeStatuses.contains(status), !output.isEmpty else { return }
    let comment = arguments.joined(separator: " ")
    guard arguments.contains("--fields") else { return expectValid(Array(output.utf8), schema, comment) }
    // Other fields are absent, and those that are there are as described.
    for line in lines.prefix(TestRun.isWhole ? .max : 300) {
      #expect(schema.check(line).filter { $0.kind != .missingField } == [], "\(comment): \(line)")
    }
  }

  /// With these the output is whole, or there is none.
  private static let wholeStatuses: Set<Int32> = [0, 65, 69, 70, 99]

  private static func schema(of arguments: [String]) -> Schema? {
    let leavesOut = ["--help", "-h", "--output", "--print-plan", "--dry-run", "--every"]
    guard let name = arguments.first, !arguments.contains(where: leavesOut.contains) else { return nil }
    let format = zip(arguments, arguments.dropFirst()).first { $0.0 == "--format" }?.1
    switch (name, format) {
    case ("decode", nil), ("decode", "jsonl"): return .records
    case ("follow", nil), ("follow", "jsonl"): return .stories
    case ("inspect", "json"): return .inspection
    case ("compare", "json"): return .comparison
    case ("load", "json"): return .result
    case ("devices", "json"): return .fleet
    case ("capacity", "json"), ("report", "json"): return .capacity
    case ("lint", "json"): return .judgements
    case ("render", "json"): return .renderings
    default: return nil
    }
  }
}
