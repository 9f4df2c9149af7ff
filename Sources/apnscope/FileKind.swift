import Bytes
import Glibc
import Reporting
import TLSDecryption

/// The kind of a file given to a command that does not read it.
enum FileKind: Equatable {
  case records, recordTables, history, capture, compressed, keyLog
  /// A result, by the command that has made it.
  case result(of: String)

  /// Recognised by the beginning of a file; `nil` if unknown, and for JSON documents, whose kind may be anywhere.
  init?(beginning bytes: some Collection<UInt8>) {
    func begins(_ text: String) -> Bool { bytes.starts(with: Array(text.utf8)) }
    func begins(_ magic: [UInt8]) -> Bool { bytes.starts(with: magic) }
    let captures: [[UInt8]] = [
      [0xa1, 0xb2, 0xc3, 0xd4], [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x4d, 0x3c, 0xb2, 0xa1],
      [0x0a, 0x0d, 0x0d, 0x0a], Array("snoop\0\0\0".utf8),
    ]
    if begins("SQLite format 3\0") {
      self = .history
    } else if captures.contains(where: begins) {
      self = .capture
    } else if begins([0x1f, 0x8b]) || begins([0x28, 0xb5, 0x2f, 0xfd]) {
      self = .compressed
    } else if begins("type,schema,source,") {
      self = .recordTables
    } else if KeyLog(Array(bytes), maximumLines: 1).count > 0 {
      self = .keyLog
    } else if bytes.drop(while: Self.isSpace).starts(with: Array(#"{"type":""#.utf8)) {
      self = .records
    } else {
      return nil
    }
  }

  /// Detects the kind from the file's content; a JSON document is read completely.
  init?(ofFile path: String, beginning bytes: some Collection<UInt8>) {
    if let kind = FileKind(beginning: bytes) {
      self = kind
    } else if path != "-", bytes.first(where: { !Self.isSpace($0) }) == UInt8(ascii: "{"),
      let kind = ResultDocument.kindIfAny(of: path)
    {
      self = .result(of: kind)
    } else {
      return nil
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

  /// The kind of file and the command that reads it, as a phrase after the file's name in messages.
  var advice: String {
    switch self {
    case .records: "holds records of 'apnscope decode', which 'apnscope report' and 'apnscope load --replay' read"
    case .recordTables: "holds records of 'apnscope decode' as CSV; 'apnscope report' reads those of --format jsonl"
    case .history: "is an SQLite file, perhaps a history of runs, which 'apnscope history' reads"
    case .capture: "is a packet capture, which 'apnscope inspect', 'decode' and 'report' read"
    case .compressed:
      "is compressed, perhaps a packet capture, which 'apnscope inspect', 'decode' and 'report' read"
    case .keyLog: "is a key log; give it with --keys and a capture"
    case .result("load"): "is a result of 'apnscope load', which 'apnscope report', 'compare' and 'merge' read"
    case .result("simulate"):
      "is a ledger of 'apnscope simulate', which 'apnscope report' and 'compare' read, and 'report --ledger' with a result of 'apnscope load'"
    case .result("inspect"):
      "is an inspection of 'apnscope inspect --format json', which 'apnscope merge' reads"
    case .result("devices"): "is a result of 'apnscope devices', which 'apnscope merge' reads"
    case .result("capacity"): "is a result of 'apnscope capacity', which 'apnscope report' reads"
    case .result(let command): "is a result of '\(command)'"
    }
  }

  /// The first bytes of a file; none when it cannot be read, or is a pipe, from which they would be taken away.
  static func beginning(of path: String) -> [UInt8] {
    var status = stat()
    guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return [] }
    return (try? WholeFile.readBeginning(path, length: 4_096)) ?? []
  }
}
