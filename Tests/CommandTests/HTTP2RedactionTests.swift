import Foundation
import TestSupport
import Testing

/// `redact` of other people's providers over HTTP/2 (`Traces/http2-clients.tar.zst`).
@Suite("redact over HTTP/2", .waiting)
struct HTTP2RedactionTests {
  private static let archive = Command.traces.appending(path: "http2-clients.tar.zst")

  private static let recordings = (try? ExternalTool.run("tar", ["--zstd", "-tf", archive.path]))
    .map { String(decoding: $0, as: UTF8.self) }?.split(separator: "\n")
    .compactMap { $0.wholeMatch(of: /open\/(\w+)\/capture\.pcap/).map { String($0.1) } }.sorted()

  /// Unpacks a recording and writes a key; the arguments that read it.
  private func input(_ name: String, in command: Command) throws -> [String] {
    let unpacked = try command.shell("tar --zstd -xf '\(Self.archive.path)' open/\(name)")
    #expect(unpacked.status == 0, "\(unpacked.errors)")
    try command.write(Array(repeating: 7, count: 16), "key")
    let keys = "open/\(name)/keys.log"
    let hasKeys = FileManager.default.fileExists(atPath: command.folder.appending(path: keys).path)
    return ["open/\(name)/capture.pcap"] + (hasKeys ? ["--keys", keys] : [])
  }

  private func objects(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  private func records(_ arguments: [String], in command: Command) throws -> [[String: Any]] {
    try objects(try command.run(["decode"] + arguments).output)
  }

  /// The records of each connection as texts, without what a copy in clear cannot have: TLS and trust by it, places,
  /// and lengths of frames whose fields are coded anew. `wholeOnly`: those that a copy has.
  private func connections(_ records: [[String: Any]], wholeOnly: Bool) throws -> [[String]] {
    let dropped: Set = [
      "offset", "packet", "tls", "connection", "length", "client_bytes", "server_bytes", "preamble",
      "header_table_lost",
      "literal_tokens", "literal_token_bytes",
    ]
    let all = Dictionary(grouping: records.filter { $0["connection"] is Int }) { $0["connection"] as? Int ?? 0 }
    return try all.sorted { $0.key < $1.key }.map(\.value).filter { records in
      guard wholeOnly else { return true }
      let own = records.last { $0["type"] as? String == "connection" } ?? [:]
      let missing = own["missing_bytes"] as? Int ?? 0
      return ["gateway", "channels"].contains(own["service"] as? String) && missing == 0 && own["limits"] == nil
        && !records.contains { ["gap", "malformed"].contains($0["type"] as? String) }
        && (own["not_captured"] as? [String])?.contains("start") != true
    }.map { records in
      try records.map { record in
        var rest = record.filter { !dropped.contains($0.key) }
        var uncertain = Set(rest["uncertain"] as? [String] ?? [])
        if let trust = rest["trust"] as? String, trust != "token" {
          rest["trust"] = nil
          uncertain.insert("trust")
        }
        rest["uncertain"] = uncertain.isEmpty ? nil : uncertain.sorted()
        return String(decoding: try JSONSerialization.data(withJSONObject: rest, options: .sortedKeys), as: UTF8.self)
      }
    }
  }

  private func expectSame(_ input: [String], in command: Command, _ comment: Comment) throws -> Int {
    let outcome = try command.run(["redact", "--redact-key", "key", "--output", "out.pcapng"] + input)
    let known = try connections(
      records(["--redact", "--redact-key", "key"] + input, in: command), wholeOnly: true)
    #expect(outcome.status == (known.isEmpty ? 65 : 0), "\(comment): \(outcome.errors)")
    guard outcome.status == 0 else { return 0 }
    let copied = try connections(records(["out.pcapng"], in: command), wholeOnly: false)
    #expect(Set(copied) == Set(known) && copied.count == known.count, comment)
    return copied.count
  }

  @Test(
    "decode finds in the copy what decode --redact finds in the recording", arguments: some(5, of: recordings ?? []))
  func sameRecords(name: String) throws {
    try Command.inFolder { command in
      let count = try expectSame(input(name, in: command), in: command, "\(name)")
      #expect(name.hasPrefix("v") || count > 0)
    }
  }

  @Test(
    "After segments were removed, the copy has the connections that are whole, and no other",
    arguments: some(3, of: (recordings ?? []).filter { !$0.hasPrefix("v") }))
  func lossy(name: String) throws {
    try Command.inFolder { command in
      let input = try input(name, in: command)
      let file = command.folder.appending(path: input[0])
      let original = try Array(Data(contentsOf: file))
      for seed in 1...3 {
        var random = SeededGenerator(seed: UInt64(seed))
        try Data(withoutSegments(1 + seed, of: original, &random)).write(to: file)
        _ = try expectSame(input, in: command, "\(name) with seed \(seed)")
      }
    }
  }

  /// A pcap file without some of its packets with data.
  private func withoutSegments(_ count: Int, of pcap: [UInt8], _ random: inout SeededGenerator) throws -> [UInt8] {
    var packets: [ArraySlice<UInt8>] = []
    var place = 24
    while place + 16 <= pcap.count {
      let length = (0..<4).reduce(0) { $0 | Int(pcap[place + 8 + $1]) << (8 * $1) }
      packets.append(pcap[place..<min(place + 16 + length, pcap.count)])
      place += 16 + length
    }
    let withData = packets.indices.filter { packets[$0].count > 140 }
    let removed = Set((0..<count).compactMap { _ in withData.randomElement(using: &random) })
    #expect(!removed.isEmpty)
    return Array(pcap[..<24]) + packets.indices.filter { !removed.contains($0) }.flatMap { packets[$0] }
  }

  @Test(
    "inspect says the same of the copy and of the recording, but for TLS and the bytes of fields",
    arguments: some(4, of: (recordings ?? []).filter { !$0.hasPrefix("v") }))
  func sameFindings(name: String) throws {
    try Command.inFolder { command in
      let input = try input(name, in: command)
      _ = try command.run(["redact", "--redact-key", "key", "--output", "out.pcapng"] + input)
      func report(_ arguments: [String]) throws -> (findings: Set<String>, http2: [String: Any]) {
        let outcome = try command.run(["inspect", "--format", "json"] + arguments)
        let report = try #require(JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        let findings = try #require(report["findings"] as? [[String: Any]])
        let texts = findings.compactMap {
          ["tls12_without_alpn", "provider_token_not_indexed"].contains($0["kind"] as? String)
            ? nil : $0["text"] as? String
        }
        return (Set(texts), try #require(report["http2"] as? [String: Any]))
      }
      let (known, copied) = (try report(["--redact", "--redact-key", "key"] + input), try report(["out.pcapng"]))
      #expect(known.findings == copied.findings)
      for (key, value) in known.http2 where key != "header_bytes" {
        func text(_ value: Any) throws -> String {
          let data = try JSONSerialization.data(withJSONObject: [value], options: .sortedKeys)
          return String(decoding: data, as: UTF8.self)
        }
        #expect(try text(copied.http2[key] ?? "none") == text(value), "\(key)")
      }
    }
  }

  @Test(
    "Nothing private of the recording is in the copy, in clear or encoded",
    arguments: some(4, of: (recordings ?? []).filter { !$0.hasPrefix("v") }))
  func nothingLeft(name: String) throws {
    try Command.inFolder { command in
      let input = try input(name, in: command)
      let outcome = try command.run(["redact", "--output", "out.pcapng"] + input)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let secrets = try secrets(of: records(input, in: command))
      let truth = try command.read("open/\(name)/truth.json")
      let tokens = truth.matches(of: /eyJ[\w-]+\.([\w-]+)\.([\w-]{20,})/).flatMap { [String($0.1), String($0.2)] }
      #expect(secrets.count > 20)
      let bytes = try Data(contentsOf: command.folder.appending(path: "out.pcapng"))
      for secret in secrets.union(tokens) {
        for form in Self.forms(of: Array(secret.utf8)) {
          #expect(bytes.range(of: Data(form)) == nil, "\(secret) as \(String(decoding: form, as: UTF8.self))")
        }
      }
    }
  }

  @Test("Names of header fields are redacted whatever is in them, and undocumented reasons in sums as well")
  func namesAndSums() throws {
    try Command.inFolder { command in
      let names = [#"x-"anna"-\rossi"#, "x-anna|{rossi}", "x-anna'rossi", "anna", "content-length"]
      let fields = names.map { ($0, $0 == "content-length" ? "21" : "anna rossi") }
      try command.write(HTTP2Bytes.preface + HTTP2Bytes.push(1, fields), "dump.bin")
      let plain = try records(["--stream", "http2", "dump.bin"], in: command)
      #expect(plain.contains { ($0["headers"] as? [[String]])?.map(\.first) == names })
      let lines = try command.run("decode", "--redact", "--stream", "http2", "dump.bin")
      let headers = try objects(lines.output).compactMap { $0["headers"] as? [[String]] }.first
      #expect(headers?.count == names.count && headers?.last == ["content-length", "21"])
      #expect(!lines.output.lowercased().contains("anna") && !lines.output.lowercased().contains("rossi"))
      // Two reasons that nobody documents, on one connection.
      func body(_ stream: UInt8, _ reason: String) -> [UInt8] {
        HTTP2Bytes.frame(1, 4, stream, HTTP2Bytes.block([(":status", "400")]))
          + HTTP2Bytes.frame(0, 1, stream, Array(#"{"reason":"\#(reason)"}"#.utf8))
      }
      let answers = body(1, "Anna") + body(3, "Ugo9") + body(5, "BadDeviceToken") + body(7, "Ugo8")
      var capture = RecordingCapture()
      var recording = RecordedConversation()
      recording.steps = [
        .init(side: .client, bytes: HTTP2Bytes.preface),
        .init(side: .server, bytes: HTTP2Bytes.settings),
        .init(side: .client, bytes: [1, 3, 5, 7].flatMap { HTTP2Bytes.push($0, []) }),
        .init(side: .server, bytes: answers),
      ]
      capture.append(SegmentedRecording(recording), serverPort: 443)
      try command.write(capture.bytes, "sums.pcap")
      try command.write(Array(repeating: 7, count: 16), "key")
      let redacted = try records(["--redact", "sums.pcap"], in: command)
      #expect(!redacted.contains { "\($0)".contains("Anna") || "\($0)".contains("Ugo") })
      let sums = redacted.compactMap { $0["rejections"] as? [String: Int] }.first
      #expect(sums == ["BadDeviceToken": 1, "xxxx": 1, "xxx1": 2])
      #expect(try expectSame(["sums.pcap"], in: command, "sums") == 1)
      // The lossless capture has all of it; after a loss an index counts what is there.
      let indexes = redacted.compactMap { $0["type"] as? String == "notification" ? $0["index"] as? Int : nil }
      #expect(indexes == [0, 1, 2, 3])
    }
  }

  @Test(
    "After a loss an index counts the notifications that are there",
    arguments: some(1, of: ["v55_client_segment_lost_h2c", "v62_cleartext_go_segment_lost"]))
  func indexAfterLoss(name: String) throws {
    try Command.inFolder { command in
      let all = try records(input(name, in: command), in: command)
      let pushes = all.filter { $0["type"] as? String == "notification" }
      #expect(pushes.compactMap { $0["index"] as? Int } == Array(0..<pushes.count) && !pushes.isEmpty)
      let streams = pushes.compactMap { $0["stream"] as? Int }
      // Streams of the client have odd numbers: one is missing, or its fields are.
      #expect(streams.count < (streams.max() ?? 0) / 2 + 1 || pushes.contains { $0["uncertain"] != nil })
    }
  }

  /// Texts of records that say who sent what to whom.
  private func secrets(of records: [[String: Any]]) -> Set<String> {
    var secrets: Set<String> = []
    let names = [
      "token", "topic", "apns_id", "apns_unique_id", "collapse_id", "channel_id", "request_id", "bundle", "client",
    ]
    for record in records {
      for name in names {
        guard let text = record[name] as? String else { continue }
        // The end of a topic that belongs to a push type stays, and ports do.
        let ends = [".voip", ".complication", ".push-type.liveactivity", ".location-query", ".voip-ptt"]
        let end = ends.first { text.hasSuffix($0) } ?? ""
        secrets.insert(name == "client" ? String(text.prefix { $0 != ":" }) : String(text.dropLast(end.count)))
      }
      // Tokens as bytes.
      let token = record["provider_token"] as? [String: Any] ?? [:]
      secrets.formUnion([token["key_id"], token["team_id"]].compactMap { $0 as? String })
      for header in record["headers"] as? [[String]] ?? []
      where header.count == 2 && header[1].contains(where: \.isLetter) {
        secrets.insert(header[1])
      }
      let aps = (record["payload"] as? [String: Any])?["aps"] as? [String: Any]
      let alert = aps?["alert"]
      let texts = [alert as? String] + ["title", "body"].map { (alert as? [String: Any])?[$0] as? String }
      secrets.formUnion(texts.compactMap { $0 }.filter { $0.contains { $0.isLetter && $0 != "x" } })
    }
    return secrets.filter { $0.utf8.count >= 6 }
  }

  /// A text as it is, in hexadecimal digits, the bytes that it has them of, in Base64 from each place, and in percents.
  private static func forms(of text: [UInt8]) -> [[UInt8]] {
    func hex(_ format: String) -> [UInt8] { Array(text.map { String(format: format, $0) }.joined().utf8) }
    var forms = [text, hex("%02x"), hex("%02X"), hex("%%%02x"), hex("%%%02X")]
    let digits = text.filter { $0 != UInt8(ascii: "-") }
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
    }
    if bytes.count * 2 == digits.count, bytes.count >= 8, Set(bytes).count > 1 { forms.append(bytes) }
    for shift in 0..<3 {
      let encoded = Array(Data([UInt8](repeating: 0, count: shift) + text).base64EncodedData())
      // The first and the last group depend on what is around.
      let inner = encoded.dropFirst(shift == 0 ? 0 : 4).dropLast(4)
      if inner.count >= 8 { forms.append(Array(inner)) }
    }
    return forms
  }
}
