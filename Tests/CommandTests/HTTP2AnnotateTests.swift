import Foundation
import TestSupport
import Testing

/// `annotate` of HTTP/2: comments, and copies without the signatures of provider tokens.
@Suite("annotate over HTTP/2", .waiting)
struct HTTP2AnnotateTests {
  private static let archive = Command.traces.appending(path: "http2-clients.tar.zst")
  /// Recordings in clear, the last two with lost segments.
  private static let inClear = [
    "34_h2load_h2c", "43_frames_h2c", "v55_client_segment_lost_h2c", "v63_cleartext_pushy_segment_lost",
  ]

  private func unpack(_ name: String, in command: Command) throws -> String {
    let unpacked = try command.shell("tar --zstd -xf '\(Self.archive.path)' open/\(name)")
    #expect(unpacked.status == 0, "\(unpacked.errors)")
    return "open/\(name)/capture.pcap"
  }

  /// The signatures that Wireshark finds in a capture.
  private func shown(_ file: String, in command: Command) throws -> Set<String> {
    let decoded = try command.run("decode", "--type", "connection", file)
    let ports = Set(decoded.output.matches(of: /"server":"[^"]*:(\d+)"/).map { String($0.1) })
    let path = command.folder.appending(path: file).path
    let text = try ExternalTool.run(
      "tshark",
      ["-r", path] + ports.flatMap { ["-d", "tcp.port==\($0),http2"] } + [
        "-Y", "http2", "-T", "fields", "-e", "http2.header.value",
      ])
    let all = String(decoding: text, as: UTF8.self)
    return Set(all.matches(of: /eyJ[\w-]+\.eyJ[\w-]+\.([\w-]{40,})/).map { String($0.1) })
  }

  @Test(
    "A signature in clear is in no copy, and Wireshark reads the copy",
    .enabled(if: ExternalTool.isInstalled("tshark")), arguments: some(2, of: inClear))
  func signatures(name: String) throws {
    try Command.inFolder { command in
      let file = try unpack(name, in: command)
      let copied = try command.run("annotate", file, "--output", "copy.pcapng")
      #expect(copied.status == 0 && copied.errors.contains("filler replaces signatures"), "\(copied.errors)")
      let (before, after) = (try shown(file, in: command), try shown("copy.pcapng", in: command))
      // It finds them, or the test says nothing.
      #expect(!before.isEmpty && !after.isEmpty)
      #expect(before.isDisjoint(with: after))
      #expect(after.allSatisfy { $0.allSatisfy { "xoAX".contains($0) } }, "\(after)")
      let bytes = try Data(contentsOf: command.folder.appending(path: "copy.pcapng"))
      let truth = try command.read("open/\(name)/truth.json")
      for secret in truth.matches(of: /eyJ[\w-]+\.[\w-]+\.([\w-]{40,})/).map({ String($0.1) }) {
        #expect(bytes.range(of: Data(secret.utf8)) == nil)
      }
      func count(_ file: String, _ filter: String) throws -> Int {
        let path = command.folder.appending(path: file).path
        let lines = try ExternalTool.run(
          "tshark", ["-r", path, "-o", "tcp.check_checksum:TRUE", "-Y", filter, "-T", "fields", "-e", "frame.len"])
        return String(decoding: lines, as: UTF8.self).split(separator: "\n").count
      }
      #expect(try count(file, "frame") == count("copy.pcapng", "frame"))
      #expect(try count(file, "tcp.checksum.status == 0") == count("copy.pcapng", "tcp.checksum.status == 0"))
      let known = try command.run("decode", file).lines.dropFirst()
      #expect(try command.run("decode", "copy.pcapng").lines.dropFirst() == known)
    }
  }

  /// A provider in clear whose tokens are literals that are not Huffman-coded, in small segments.
  private static func smallSegments(_ signature: String, length: Int) -> [RecordedConversation.Step] {
    let jwt = "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ.eyJpc3MiOiJERUYxMjNHSElKIiwiaWF0IjoxNzk1NTc4NTUxfQ."
    let fields = [
      ("authorization", "bearer \(jwt)\(signature)"), ("x-note", "a note"), ("apns-topic", "com.example.tide"),
    ]
    let pushes = [UInt8](arrayLiteral: 1, 3, 5).flatMap { HTTP2Bytes.push($0, fields) }
    let bytes = HTTP2Bytes.preface + pushes
    let pieces = stride(from: 0, to: bytes.count, by: length).map {
      RecordedConversation.Step(side: .client, bytes: Array(bytes[$0..<min($0 + length, bytes.count)]))
    }
    let answers = [UInt8](arrayLiteral: 1, 3, 5).flatMap { HTTP2Bytes.answer($0) }
    return pieces + [.init(side: .server, bytes: HTTP2Bytes.settings + answers)]
  }

  @Test(
    "Whichever segment is missing, no part of a signature is left in the copy, and it is read as before",
    arguments: some(3, of: [61, 100, 173, 250, 400]))
  func losses(length: Int) throws {
    let signature = "QWxsYW5kTm90aGluZ0VsZU1hdHRlcnNTaWduYXR1cmVIZXJlMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3Bx"
    try Command.inFolder { command in
      var recording = RecordedConversation()
      recording.steps = Self.smallSegments(signature, length: length)
      let whole = SegmentedRecording(recording)
      var found = 0
      for removed in -1..<whole.pieces.count - 1 {
        var lossy = whole
        if removed >= 0 { lossy.pieces.remove(at: removed) }
        try command.write(RecordingCapture.file(of: lossy, serverPort: 443), "lossy.pcap")
        let copied = try command.run("annotate", "lossy.pcap", "--output", "copy.pcapng")
        #expect(copied.status == 0, "\(copied.errors)")
        let known = try command.run("decode", "lossy.pcap").lines.dropFirst()
        #expect(try command.run("decode", "copy.pcapng").lines.dropFirst() == known, "without \(removed)")
        let before = try Data(contentsOf: command.folder.appending(path: "lossy.pcap"))
        let after = try Data(contentsOf: command.folder.appending(path: "copy.pcapng"))
        for start in stride(from: 0, to: signature.count - 8, by: 4) {
          let part = Data(signature.dropFirst(start).prefix(8).utf8)
          if before.range(of: part) != nil { found += 1 }
          #expect(after.range(of: part) == nil, "without \(removed)")
        }
      }
      // Large segments are few, and some have no part of it.
      #expect(found > 50)
    }
  }

  @Test("What a filter leaves out is copied without signatures, too", .enabled(if: ExternalTool.isInstalled("tshark")))
  func filter() throws {
    try Command.inFolder { command in
      let file = try unpack("43_frames_h2c", in: command)
      let copied = try command.run("annotate", file, "--filter", "udp", "--output", "copy.pcapng")
      #expect(copied.status == 0, "\(copied.errors)")
      #expect(try shown(file, in: command).isDisjoint(with: shown("copy.pcapng", in: command)))
      #expect(copied.errors.contains("filler replaces signatures"))
    }
  }

  @Test(
    "Notifications that were rejected or discarded, answers that reject, GOAWAY and RST_STREAM have comments",
    .enabled(if: ExternalTool.isInstalled("tshark")),
    arguments: ["20_node_apn_faults", "28_pushy_goaway", "42_frames_cancel", "03_aioapns_pool_goaway"])
  func comments(name: String) throws {
    try Command.inFolder { command in
      let file = try unpack(name, in: command)
      let input = [file, "--keys", "open/\(name)/keys.log"]
      #expect(try command.run(["annotate", "--output", "copy.pcapng"] + input).status == 0)
      let text = try ExternalTool.run(
        "tshark",
        [
          "-r", command.folder.appending(path: "copy.pcapng").path, "-Y", "pkt_comment", "-T", "fields", "-e",
          "frame.number", "-e", "frame.comment",
        ])
      var comments: [Int: String] = [:]
      for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
        let parts = line.split(separator: "\t", maxSplits: 1)
        if parts.count == 2, let number = Int(parts[0]) { comments[number] = String(parts[1]) }
      }
      let records = try command.run(["decode"] + input).lines.map {
        try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
      }
      var expected: Set<Int> = []
      for record in records {
        guard let packet = record["packet"] as? Int, let type = record["type"] as? String else { continue }
        let comment = comments[packet] ?? ""
        let fate = record["fate"] as? String
        if type == "notification", fate == "rejected" || fate == "discarded" {
          expected.insert(packet)
          #expect(comment.contains("#\(record["index"] as? Int ?? -1)") || comment.contains(" to #"), "\(comment)")
          if let reason = record["reason"] as? String { #expect(comment.contains(reason)) }
        }
        if type == "goaway" { #expect(comment.contains("GOAWAY")) }
        if type == "reset" { #expect(comment.contains("RST_STREAM")) }
        if type == "response", let status = record["status"] as? Int, status >= 300 {
          expected.insert(packet)
          #expect(comment.contains("answer \(status)"), "\(comment)")
        }
        if type == "goaway" || type == "reset" { expected.insert(packet) }
      }
      #expect(!expected.isEmpty && Set(comments.keys).isSuperset(of: expected))
    }
  }
}
