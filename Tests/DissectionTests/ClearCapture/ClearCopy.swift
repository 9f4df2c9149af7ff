import Bytes
import Foundation
import PacketCapture
import TLSDecryption
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// A recording and its redacted clear copy.
struct ClearCopy {
  let bytes: [UInt8]
  let counts: ClearCounts
  let hasSpilled: Bool
  /// Records of the recording, redacted, and of its copy.
  let original: [[String: Any]]
  let copied: [[String: Any]]

  /// - Parameters:
  ///   - files: the contents of the files of the recording.
  ///   - trace: the trace whose key log is used.
  init(
    _ files: [[UInt8]], trace: String? = nil, options: DissectionOptions = DissectionOptions(), memory: Int = 1 << 20
  ) throws {
    let redaction = try #require(Redaction(key: [UInt8](repeating: 9, count: 16), keepsAddresses: false))
    let keys = trace.map { Folder.traces.appending(path: $0).path }
    var settings = ClearCapture.Options()
    settings.memory = memory
    settings.isSortedByTime = options.capture.reorderWindow != nil
    let capture = ClearCapture(settings)
    try Self.read(files, keys, options, into: RedactedRecords(capture, redaction))
    var written: [UInt8] = []
    func take(_ bytes: RawSpan) -> Bool {
      written.append(copying: bytes)
      return true
    }
    try capture.write(to: take) { true }
    (bytes, counts, hasSpilled) = (written, capture.counts, capture.hasSpilled)
    original = try Self.records(files, keys, options, redaction)
    copied = try Self.records([written], nil, DissectionOptions(), nil)
  }

  init(trace: String) throws {
    let bytes = [UInt8](try Data(contentsOf: Folder.traces.appending(path: trace)))
    try self.init([bytes], trace: trace)
  }

  static func records(
    _ files: [[UInt8]], _ keys: String?, _ options: DissectionOptions, _ redaction: Redaction?
  ) throws -> [[String: Any]] {
    let fates = try read(files, keys, options, into: FateIndex(maximumRanges: options.maximumFateRanges))
    var written: [UInt8] = []
    let writer = JSONLinesWriter(fates: .each(fates), judging: PayloadJudging()) { bytes in
      written.append(copying: bytes)
      return true
    }
    if let redaction {
      try read(files, keys, options, into: RedactedRecords(writer, redaction))
    } else {
      try read(files, keys, options, into: writer)
    }
    writer.flush()
    return try written.split(separator: UInt8(ascii: "\n")).map {
      try #require(try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any])
    }
  }

  @discardableResult
  private static func read<Sink: RecordSink>(
    _ files: [[UInt8]], _ keys: String?, _ options: DissectionOptions, into sink: Sink
  ) throws -> Sink {
    try withTemporaryFolder { folder in
      var recording = Recording()
      for (index, bytes) in files.enumerated() {
        let path = folder.appendingPathComponent("ring\(index)").path
        try Data(bytes).write(to: URL(filePath: path))
        guard let file = try CaptureInput.openCapture(path, options: options.capture) else {
          Issue.record("no capture")
          continue
        }
        recording.add(file, options: options.capture)
      }
      recording.sort()
      let opening = try keys.map { try secrets(beside: $0) } ?? Secrets()
      let shared = SharedSink(sink)
      var dissection = Dissection(into: shared, options: options, secrets: opening)
      dissection.numbersFiles = files.count > 1
      _ = try dissection.read(recording, sources: []) { _ in true }
      dissection.finish()
      return shared.sink
    }
  }

  // MARK: the law

  /// What depends on the packets, those without data among them, and on the encryption.
  private static let dropped: Set = ["connection", "offset", "packet", "file", "tls", "client_last"]

  /// The records of each connection, in order of their numbers.
  private static func connections(_ records: [[String: Any]]) -> [[[String: Any]]] {
    let numbered = Dictionary(grouping: records.filter { $0["connection"] != nil }) { $0["connection"] as? Int ?? 0 }
    return numbered.sorted { $0.key < $1.key }.map(\.value)
  }

  private static func text(_ records: [[String: Any]]) throws -> [String] {
    try records.map { record in
      let rest = record.filter { !dropped.contains($0.key) }
      return String(
        decoding: try JSONSerialization.data(withJSONObject: rest, options: .sortedKeys), as: UTF8.self)
    }
  }

  /// A connection of a known service of which the records tell no damage.
  private static func isUndamaged(_ records: [[String: Any]]) -> Bool {
    guard let record = records.first(where: { $0["type"] as? String == "connection" }) else { return false }
    let tls = record["tls"] as? [String: Any]
    guard ["gateway", "feedback"].contains(record["service"] as? String), record["protocol"] == nil,
      tls?["decrypted"] as? Bool != false, tls?["problem"] == nil, record["limits"] == nil
    else { return false }
    func bytes(_ types: [String]) -> Int {
      records.filter { types.contains($0["type"] as? String ?? "") }.reduce(0) { $0 + ($1["length"] as? Int ?? 6) }
    }
    return records.allSatisfy { !["gap", "malformed"].contains($0["type"] as? String) && $0["problem"] == nil }
      && record["missing_bytes"] as? Int ?? 0 == 0 && record["conflicting_bytes"] as? Int ?? 0 == 0
      && bytes(["notification"]) == record["client_bytes"] as? Int
      && bytes(["error_response", "feedback"]) == record["server_bytes"] as? Int
  }

  /// Expects that the copy has the records of all connections without damage, and no others.
  ///
  /// - Parameter withoutBeginning: undamaged connections whose beginning is missing, by their places from 0.
  func expectSameRecords(withoutBeginning: Set<Int> = [], _ comment: Comment? = nil) throws {
    let all = Self.connections(original)
    let expected = all.indices.filter { !withoutBeginning.contains($0) && Self.isUndamaged(all[$0]) }
    let written = Self.connections(copied)
    #expect(written.count == expected.count && counts.connections == expected.count, comment)
    for (one, other) in zip(written, expected) {
      let (one, other) = (try Self.text(one), try Self.text(all[other]))
      #expect(one.count == other.count, comment)
      if let place = zip(one, other).enumerated().first(where: { $1.0 != $1.1 }) {
        Issue.record("record \(place.offset): \(place.element.0) and not \(place.element.1); \(comment ?? "")")
      }
    }
    let leftOut = counts.notDecrypted + counts.damaged + counts.beginningMissing + counts.otherProtocols
    #expect(counts.connections + leftOut == all.count, comment)
    let problems = copied.filter { ["gap", "malformed"].contains($0["type"] as? String) }
    #expect(problems.isEmpty, comment)
  }
}
