import ArgumentParser
import Bytes
import Reporting

/// The kind of the input of a report, recognised by content, not by name.
enum ReportInput: String {
  case load = "a result of a load"
  case ledger = "a ledger"
  case capacity = "a result of a search for a capacity"
  case fleet = "a result of devices"
  case records = "a file of records"
  /// Anything other than JSON; reading it reports errors.
  case recording = "not a result, perhaps a recording"

  /// Complains and throws an exit code when the file cannot be read or is of no kind that is known.
  static func kind(of path: String) throws -> ReportInput {
    let start = try beginning(of: path)
    let text = start.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
    // Each record begins with its type.
    if text.starts(with: Array(#"{"type":"#.utf8)) { return .records }
    switch FileKind(beginning: start) {
    case .some(let kind) where kind != .capture && kind != .compressed:
      complain("\(path): \(kind.advice)")
      throw ExitStatus.damaged
    default: break
    }
    guard text.first == UInt8(ascii: "{") || text.first == UInt8(ascii: "[") else { return .recording }
    switch try ResultDocument.kind(of: path) {
    case "load": return .load
    case "simulate": return .ledger
    case "capacity": return .capacity
    case "devices": return .fleet
    case let kind:
      complain("\(path): is a result of '\(kind)', which has no report")
      throw ExitStatus.damaged
    }
  }

  static func isEmpty(_ path: String) throws -> Bool { try beginning(of: path).isEmpty }

  private static func beginning(of path: String) throws -> [UInt8] {
    do {
      return try WholeFile.readBeginning(path, length: 4_096)
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
  }
}
