import Foundation
import TestSupport
import Testing

/// The dissector in tshark beside `decode`, whose records of the traces were checked against other decoders.
@Suite("dissector", .waiting, .enabled(if: ExternalTool.isInstalled("tshark"), "needs tshark"))
struct DissectorCommandTests {
  /// What a dissector of Wireshark cannot show of a trace without gaps and malformed bytes; it must not show anything
  /// else than `decode` all the same.
  private static let exceptions = [
    "tls-secrets-behind.pcapng": "Wireshark takes secrets only before their packets",
    "tls13-mid-session.pcap": "Wireshark begins TLS 1.3 with its handshake",
    "tls10-shuffled-duplicated.pcap": "Wireshark loses TLS over repeated segments that are out of order",
  ]

  private static let captures: [String] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: Command.traces.path)) ?? []
    let endings = ["pcap", "pcapng", "pcap.gz", "pcap.zst"]
    return names.filter { name in endings.contains { name.hasSuffix("." + $0) } }.sorted()
  }()

  /// The fields of one direction of a connection, each with its values in their order. What crossed in the other
  /// direction has no order beside them: `decode` writes an error response after the notifications that it discards.
  private typealias Values = [String: [String]]

  private static let fields = [
    "apns.command", "apns.identifier", "apns.expiration", "apns.priority", "apns.token", "apns.payload_length",
    "apns.payload", "apns.status", "apns.feedback.timestamp",
  ]

  /// What tshark shows, by connection and direction.
  private func shown(_ name: String, _ command: Command, filter: String = "apns") throws -> [Values] {
    let keys = Command.traces.appending(path: name + ".keys").path
    var arguments = [
      "-X", "lua_script:\(command.folder.path)/apns.lua", "-r", Command.traces.appending(path: name).path,
      "-o", "tcp.reassemble_out_of_order:TRUE", "-T", "fields", "-E", "aggregator=\u{1}", "-Y", filter,
      "-e", "tcp.stream", "-e", "tcp.srcport",
    ]
    if FileManager.default.fileExists(atPath: keys) { arguments += ["-o", "tls.keylog_file:\(keys)"] }
    for field in Self.fields { arguments += ["-e", field] }
    // 2: a file that is cut.
    let output = try ExternalTool.run("tshark", arguments, statuses: [0, 2])
    var streams: [ArraySlice<Substring>: Values] = [:]
    for line in String(decoding: output, as: UTF8.self).split(separator: "\n") {
      let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
      for (field, values) in zip(Self.fields, columns.dropFirst(2)) where !values.isEmpty {
        streams[columns.prefix(2), default: [:]][field, default: []] +=
          values.split(separator: "\u{1}").map(String.init)
      }
    }
    return Array(streams.values)
  }

  /// What `decode` wrote, by connection and direction, as tshark writes it; and whether something is missing or malformed.
  private func decoded(_ name: String) throws -> (connections: [Values], isDamaged: Bool) {
    let text = try String(contentsOf: Command.traces.appending(path: name + ".jsonl"), encoding: .utf8)
    var connections: [[Int]: Values] = [:]
    var isDamaged = false
    for line in text.split(separator: "\n") {
      let record = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      let type = record["type"] as? String ?? ""
      isDamaged = isDamaged || type == "gap" || type == "malformed"
      guard ["notification", "error_response", "feedback"].contains(type), let number = record["connection"] as? Int
      else {
        continue
      }
      func note(_ field: String, _ value: String?) {
        guard let value, !value.isEmpty else { return }
        connections[[number, type == "notification" ? 0 : 1], default: [:]]["apns." + field, default: []].append(value)
      }
      for field in ["command", "identifier", "priority", "status", "payload_length"] {
        note(field, (record[field] as? Int).map(String.init))
      }
      note("token", record["token"] as? String)
      note("expiration", (record["expiration"] as? Int).map(Self.time))
      note("feedback.timestamp", (record["timestamp"] as? Int).map(Self.time))
    }
    return (Array(connections.values), isDamaged)
  }

  /// "Nov 21, 2026 00:33:28.000000000 UTC".
  private static func time(_ seconds: Int) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "MMM d, yyyy HH:mm:ss"
    // tshark writes days with two places, and a blank before the first nine.
    let text = formatter.string(from: Date(timeIntervalSince1970: TimeInterval(seconds)))
    let padded = text.replacing(/^(\w{3}) (\d),/) { "\($0.1)  \($0.2)," }
    return "\(padded).000000000 UTC"
  }

  /// Connections in an order of their own: tshark numbers them otherwise.
  private func sorted(_ connections: [Values], _ field: String) -> [[String]] {
    connections.compactMap { $0[field] }.sorted { $0.joined(separator: " ") < $1.joined(separator: " ") }
  }

  private func counts(_ connections: [Values], _ field: String) -> [String: Int] {
    connections.reduce(into: [:]) { counts, values in
      for value in values[field] ?? [] { counts[value, default: 0] += 1 }
    }
  }

  @Test("tshark shows each field of each connection as decode writes it", arguments: some(12, of: captures))
  func sameAsDecode(name: String) throws {
    try Command.inFolder { command in
      try command.write(Array(command.run("dissector").output.utf8), "apns.lua")
      let (wanted, isDamaged) = try decoded(name)
      let found = try shown(name, command)
      for field in Self.fields where field != "apns.payload" {
        if isDamaged || Self.exceptions[name] != nil {
          // Never anything that decode does not have.
          let most = counts(wanted, field)
          for (value, count) in counts(found, field) {
            #expect(count <= most[value] ?? 0, "\(field) \(value)")
          }
        } else {
          #expect(sorted(found, field) == sorted(wanted, field), "\(field)")
        }
      }
      // Payloads that are there have their text.
      #expect(
        counts(found, "apns.payload").values.reduce(0, +)
          == counts(found, "apns.payload_length")
          .filter { $0.key != "0" }.values.reduce(0, +))
    }
  }

  @Test("The comparison is of many traces, and the exceptions are needed")
  func comparison() throws {
    let whole = try Self.captures.filter { try !decoded($0).isDamaged && Self.exceptions[$0] == nil }
    #expect(whole.count >= 25)
    #expect(try whole.contains { try decoded($0).connections.contains { $0["apns.status"] != nil } })
    #expect(try whole.contains { try decoded($0).connections.contains { $0["apns.feedback.timestamp"] != nil } })
    for name in Self.exceptions.keys { #expect(Self.captures.contains(name)) }
  }

  @Test("Fields select packets: a status, an identifier, a token, a text of a payload")
  func filters() throws {
    try Command.inFolder { command in
      try command.write(Array(command.run("dissector").output.utf8), "apns.lua")
      func packets(_ filter: String) throws -> [Values] { try shown("plain-error.pcap", command, filter: filter) }
      #expect(try packets("apns.status == 8").flatMap { $0["apns.identifier"] ?? [] } == ["8"])
      #expect(try packets("apns.identifier == 8 && apns.payload").flatMap { $0["apns.command"] ?? [] } == ["1"])
      #expect(try packets("apns.token[0:2] == 43:bf").flatMap { $0["apns.identifier"] ?? [] } == ["8"])
      #expect(
        try packets(#"apns.payload contains "Ciao #3 à""#).flatMap { $0["apns.payload"] ?? [] } == [
          #"{"aps":{"alert":"Ciao #3 à è","badge":3,"sound":"default"},"acme2":["bang","whiz"]}"#
        ])
      #expect(try packets("apns.status == 7").isEmpty)
    }
  }

  @Test("Malformed bytes have their reason, and its words are those of decode")
  func malformed() throws {
    try Command.inFolder { command in
      try command.write(Array(command.run("dissector").output.utf8), "apns.lua")
      let output = try ExternalTool.run(
        "tshark",
        [
          "-X", "lua_script:\(command.folder.path)/apns.lua", "-r",
          Command.traces.appending(path: "items-that-do-not-fit.pcap").path, "-Y", "_ws.expert && apns.malformed", "-T",
          "fields", "-e", "apns.malformed",
        ])
      let text = String(decoding: output, as: UTF8.self)
      let records = try String(
        contentsOf: Command.traces.appending(path: "items-that-do-not-fit.pcap.jsonl"), encoding: .utf8)
      var reasons = 0
      for line in text.split(separator: "\n") {
        for reason in line.split(separator: ",") where reason.contains("overruns") || reason.contains("cut short") {
          #expect(records.contains(reason), "\(reason)")
          reasons += 1
        }
      }
      #expect(reasons > 3)
    }
  }

  @Test("Ports are preferences, in clear and within TLS")
  func ports() throws {
    try Command.inFolder { command in
      try command.write(Array(command.run("dissector").output.utf8), "apns.lua")
      let output = try ExternalTool.run(
        "tshark",
        [
          "-X", "lua_script:\(command.folder.path)/apns.lua", "-r",
          Command.traces.appending(path: "plain-error.pcap").path, "-o", "apns.gateway_ports:12000-12010,4000",
          "-Y", "apns.status", "-T", "fields", "-e", "apns.status",
        ])
      // The first bytes tell it on any port.
      #expect(String(decoding: output, as: UTF8.self) == "8\n")
    }
  }
}
