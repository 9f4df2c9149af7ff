import Foundation
import TestSupport
import Testing

/// Payloads of notifications over HTTP/2, judged while a capture is decoded and again from its saved records.
@Suite("Payloads over HTTP/2", .waiting)
struct HTTP2PayloadTests {
  private static let archive = Command.traces.appending(path: "http2-clients.tar.zst")
  private static let recordings = (try? ExternalTool.run("tar", ["--zstd", "-tf", archive.path]))
    .map { String(decoding: $0, as: UTF8.self) }?.split(separator: "\n")
    .compactMap { $0.wholeMatch(of: /open\/(\w+)\/capture\.pcap/).map { String($0.1) } }.sorted()

  private struct Verdict: Equatable {
    var line: Int
    var kind: String
    var lint: [String]
  }

  private func objects(_ lines: [String]) throws -> [[String: Any]] {
    try lines.map { try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
  }

  /// The verdicts in the records of a capture, and those of lint over the records.
  private func verdicts(_ arguments: [String], in command: Command) throws -> (decoded: [Verdict], judged: [Verdict]) {
    let decoded = try command.run(["decode"] + arguments)
    #expect(decoded.status == 0, "\(decoded.errors)")
    try command.write(Array(decoded.output.utf8), "records.jsonl")
    let judged = try command.run("lint", "--format", "json", "records.jsonl")
    #expect(judged.status < 2, "\(judged.errors)")
    let known = try objects(decoded.lines).enumerated().compactMap { number, record -> Verdict? in
      guard let kind = record["kind"] as? String, record["type"] as? String == "notification" else { return nil }
      return Verdict(line: number + 1, kind: kind, lint: record["lint"] as? [String] ?? [])
    }
    let found = try objects(judged.lines).map {
      Verdict(
        line: try #require($0["line"] as? Int), kind: try #require($0["kind"] as? String),
        lint: try #require($0["lint"] as? [String]))
    }
    return (known, found)
  }

  @Test("lint says of saved records what decode says of the capture", arguments: some(8, of: recordings ?? []))
  func recorded(name: String) throws {
    try Command.inFolder { command in
      let unpacked = try command.shell("tar --zstd -xf '\(Self.archive.path)' open/\(name)")
      #expect(unpacked.status == 0, "\(unpacked.errors)")
      let keys = "open/\(name)/keys.log"
      let hasKeys = FileManager.default.fileExists(atPath: command.folder.appending(path: keys).path)
      let (decoded, judged) = try verdicts(
        ["open/\(name)/capture.pcap"] + (hasKeys ? ["--keys", keys] : []), in: command)
      #expect(decoded == judged)
      // Records without a payload that can be judged are no payloads.
      let rendered = try command.run("render", "--format", "json", "records.jsonl")
      #expect(rendered.status == 0 && rendered.lines.count == decoded.count, "\(rendered.errors)")
    }
  }

  /// A payload with an alert, of so many bytes.
  private static func payload(_ length: Int) -> [UInt8] {
    let (before, after) = (#"{"aps":{"alert":""#, #""}}"#)
    return Array((before + String(repeating: "a", count: length - before.utf8.count - after.utf8.count) + after).utf8)
  }

  @Test("4,096 bytes are the limit, and 5,120 of voip and broadcasts, in a dump and in its records")
  func limits() throws {
    let device = "/3/device/" + HTTP2Bytes.token
    let broadcast = "/4/broadcasts/apps/com.example.tide"
    let cases: [(path: String, topic: String?, type: String?, length: Int, isTooLong: Bool)] = [
      (device, "com.example.tide", "alert", 4_096, false), (device, "com.example.tide", "alert", 4_097, true),
      (device, "com.example.tide", nil, 4_097, true), (device, "com.example.tide.voip", "voip", 5_120, false),
      (device, "com.example.tide.voip", "voip", 5_121, true), (broadcast, nil, "liveactivity", 5_120, false),
      (broadcast, nil, "liveactivity", 5_121, true),
    ]
    var bytes = HTTP2Bytes.preface
    for (number, one) in cases.enumerated() {
      let fields = [("apns-topic", one.topic), ("apns-push-type", one.type)].compactMap { name, value in
        value.map { (name, $0) }
      }
      bytes += HTTP2Bytes.push(UInt8(2 * number + 1), fields, path: one.path, payload: Self.payload(one.length))
    }
    try Command.inFolder { command in
      try command.write(bytes, "dump.bin")
      let (decoded, judged) = try verdicts(["--stream", "http2", "dump.bin"], in: command)
      #expect(decoded == judged && decoded.count == cases.count)
      for (verdict, one) in zip(decoded, cases) {
        #expect(
          verdict.lint.contains { $0.contains("too_long") || $0.contains("too_large") } == one.isTooLong,
          "\(one) \(verdict)")
      }
    }
  }

  @Test("Topic, type and priority are judged against the payload, in a dump and in its records")
  func contexts() throws {
    let silent = Array(#"{"aps":{"content-available":1}}"#.utf8)
    let tide = [("apns-topic", "com.example.tide")]
    let voip = [("apns-topic", "com.example.tide.voip"), ("apns-push-type", "voip")]
    let bytes =
      HTTP2Bytes.preface + HTTP2Bytes.push(1, tide + [("apns-priority", "10")], payload: silent)
      + HTTP2Bytes.push(3, tide + [("apns-priority", "5")], payload: silent) + HTTP2Bytes.push(5, voip)
      + HTTP2Bytes.push(7, tide) + HTTP2Bytes.push(9, [])
    try Command.inFolder { command in
      try command.write(bytes, "dump.bin")
      let (decoded, judged) = try verdicts(["--stream", "http2", "dump.bin"], in: command)
      #expect(decoded == judged && decoded.count == 5)
      #expect(decoded[0].lint != decoded[1].lint, "\(decoded)")
      #expect(decoded[2].kind == "voip" && decoded[3].kind == "alert", "\(decoded)")
    }
  }
}
