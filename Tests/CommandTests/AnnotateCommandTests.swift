import Foundation
import TestSupport
import Testing

@Suite("annotate", .waiting)
struct AnnotateCommandTests {
  /// Captures among the traces, with their keys.
  private static let captures = try? FileManager.default.contentsOfDirectory(atPath: Command.traces.path)
    .filter { $0.contains(".pcap") && !$0.hasSuffix(".jsonl") && !$0.hasSuffix(".keys") }.sorted()

  private func keys(_ trace: String, in command: Command) throws -> [String] {
    let keys = "\(trace).keys"
    guard FileManager.default.fileExists(atPath: Command.traces.appending(path: keys).path) else { return [] }
    try command.trace(keys)
    return ["--keys", keys]
  }

  private func annotate(_ trace: String, in command: Command) throws -> [String] {
    try command.trace(trace)
    let keys = try keys(trace, in: command)
    let outcome = try command.run(["annotate", trace, "--output", "out.pcapng"] + keys)
    #expect(outcome.status == 0 && outcome.output == "", "\(outcome.errors)")
    return keys
  }

  /// Packet numbers and comments as Wireshark reads them.
  private func comments(in command: Command, file: String = "out.pcapng") throws -> [Int: String] {
    let text = try ExternalTool.run(
      "tshark",
      [
        "-r", command.folder.appending(path: file).path, "-Y", "pkt_comment", "-T", "fields", "-e", "frame.number",
        "-e",
        "frame.comment",
      ])
    var comments: [Int: String] = [:]
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: "\t", maxSplits: 1)
      if parts.count == 2, let number = Int(parts[0]) { comments[number] = String(parts[1]) }
    }
    return comments
  }

  private func records(_ arguments: [String], in command: Command) throws -> [[String: Any]] {
    try command.run(["decode"] + arguments).lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  /// The packets that something is to be said about, found in the records again; and how many notifications were
  /// discarded and never sent again.
  private func expected(_ records: [[String: Any]]) throws -> (packets: Set<Int>, neverAgain: Int) {
    var packets: Set<Int> = []
    var waiting: [String: Int] = [:]
    for record in records {
      guard let packet = record["packet"] as? Int, let type = record["type"] as? String else { continue }
      if type == "error_response" || type == "malformed" || record["problem"] != nil { packets.insert(packet) }
      guard type == "notification" else { continue }
      let token = record["token"] as? String ?? ""
      let payload = record["payload"] ?? record["payload_base64"] ?? ""
      let json = try JSONSerialization.data(withJSONObject: payload, options: [.sortedKeys, .fragmentsAllowed])
      let content = token + String(decoding: json, as: UTF8.self)
      if let count = waiting[content], record["problem"] == nil {
        packets.insert(packet)
        waiting[content] = count > 1 ? count - 1 : nil
      }
      guard let fate = record["fate"] as? String, fate == "rejected" || fate == "discarded" else { continue }
      packets.insert(packet)
      if fate == "discarded", record["problem"] == nil, !token.isEmpty { waiting[content, default: 0] += 1 }
    }
    return (packets, waiting.values.reduce(0, +))
  }

  @Test(
    "Wireshark shows a comment at every notification that was refused, lost, broken or sent again",
    .enabled(if: ExternalTool.isInstalled("tshark")), arguments: some(10, of: captures ?? []))
  func everyComment(trace: String) throws {
    try Command.inFolder { command in
      let keys = try annotate(trace, in: command)
      let records = try records([trace] + keys, in: command)
      let expected = try expected(records)
      let comments = try comments(in: command)
      #expect(Set(comments.keys) == expected.packets)
      let never = comments.values.flatMap { $0.split(separator: "\\n") }.filter { $0.hasPrefix("error response") }
        .compactMap { $0.firstMatch(of: #/([0-9]+) of them not seen again/#)?.output.1 }
        .reduce(0) { $0 + (Int($1) ?? 0) }
      #expect(never == expected.neverAgain)
    }
  }

  /// But for the name and format of the file, and where it had to be read from.
  @Test("The copy has the records of the original, whatever its format", arguments: some(10, of: captures ?? []))
  func sameRecords(trace: String) throws {
    try Command.inFolder { command in
      let keys = try annotate(trace, in: command)
      func lines(_ file: String) throws -> [String] {
        try command.run(["decode", file] + keys).lines.filter { !$0.hasPrefix(#"{"type":"capture","#) }
      }
      let original = try lines(trace)
      #expect(try lines("out.pcapng") == original && !original.isEmpty)
    }
  }

  @Test("A comment says what was refused, how many were lost with it, and what became of them")
  func texts() throws {
    try Command.inFolder { command in
      _ = try annotate("plain-error.pcap", in: command)
      let comments = try comments(in: command)
      #expect(comments[18] == "8 invalid token: #7 refused, 26 after it discarded, all sent again: 26 open")
      #expect(comments[20] == "#8 discarded after #7 (8 invalid token), sent again in packet 80")
      #expect(comments[80] == "#0 repeats #8 of connection 1 (packet 20), which was discarded")
      _ = try annotate("known-bad-and-errors.pcap", in: command)
      let others = try self.comments(in: command)
      #expect(
        others[16]?.components(separatedBy: #"\n"#) == [
          "8 invalid token: #1 refused",
          "7 invalid payload size: #3 refused, 2 after it discarded, 1 of them not seen again: 2 open",
          "#4 to #5 discarded after #3 (7 invalid payload size), 1 sent again in packet 29, 1 not seen again",
        ])
      #expect(
        others[30]
          == "error response 10 shutdown: #1 accepted, 3 after it discarded, 1 of them not seen again: "
          + "1 accepted twice, 2 open")
      #expect(others[36] == "#0 to #1 repeat discarded ones, first #2 of connection 3 (packet 27)")
    }
  }

  @Test("Outcomes in comments are those of follow, lost ones among them") func outcomes() throws {
    try Command.inFolder { command in
      _ = try annotate("tls-incident.pcap", in: command)
      let comments = try comments(in: command)
      #expect(
        comments[13]
          == "error response 8 invalid token: #70 refused, 229 after it discarded, all sent again: "
          + "109 recovered, 119 open, 1 rejected")
      #expect(comments[28]?.hasSuffix("119 after it discarded, all sent again: 119 open") == true)
    }
  }

  @Test("Fewer comments say the same of what was sent again") func limit() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap")
      let outcome = try command.run(
        "annotate", "known-bad-and-errors.pcap", "--output", "out.pcapng", "--max-comments", "6")
      #expect(outcome.status == 0)
      #expect(outcome.errors.contains("further records have no comments (--max-comments)"), "\(outcome.errors)")
      let comments = try comments(in: command)
      #expect(comments.values.contains { $0.contains("1 sent again in packet 29, 1 not seen again") })
      #expect(!comments.keys.contains { $0 > 16 })
    }
  }

  @Test("A pipe is read whole before the copy is written, and compressed captures are read") func inputs() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let piped = try command.shell("cat plain-error.pcap | $apnscope annotate - --output a.pcapng")
      #expect(piped.status == 0, "\(piped.errors)")
      let packed = try command.shell(
        "gzip -k plain-error.pcap && $apnscope annotate plain-error.pcap.gz --output b.pcapng && cmp a.pcapng b.pcapng")
      #expect(packed.status == 0, "\(packed.errors)")
    }
  }

  @Test(
    "An input or output that cannot be used is refused, and nothing is left of it",
    arguments: [
      (["nosuch.pcap", "--output", "out.pcapng"], 66, "No such file"),
      (["responses.bin", "--output", "out.pcapng"], 65, "is not a packet capture"),
      (["plain-error.pcap", "--output", "plain-error.pcap"], 64, "plain-error.pcap"),
      (["plain-error.pcap", "--output", "nosuch/out.pcapng"], 74, "No such file"),
      (["plain-error.pcap"], 64, "--output"), ([".", "--output", "out.pcapng"], 64, "folder"),
      (["plain-error.pcap", "--output", "out.pcapng", "--max-comments", "0"], 64, "--max-comments"),
    ])
  func refused(arguments: [String], status: Int32, text: String) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      try command.trace("responses.bin")
      try command.write(Array("before".utf8), "out.pcapng")
      let original = try Data(contentsOf: command.folder.appending(path: "plain-error.pcap"))
      let outcome = try command.run(["annotate"] + arguments)
      #expect(outcome.status == status && outcome.errors.contains(text), "\(outcome.errors)")
      #expect(try command.read("out.pcapng") == "before")
      #expect(try Data(contentsOf: command.folder.appending(path: "plain-error.pcap")) == original)
      let names = try FileManager.default.contentsOfDirectory(atPath: command.folder.path)
      #expect(!names.contains { $0.hasSuffix(".part") })
    }
  }
}
