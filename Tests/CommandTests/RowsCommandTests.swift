import Foundation
import TestSupport
import Testing

/// Rows in a stated order, some fields of records, and files per type.
@Suite("rows and fields", .waiting)
struct RowsCommandTests {
  @Test(
    "The table's rows are in the order of time",
    arguments: ["plain-error.pcap", "loss-reorder.pcap.gz", "known-bad-and-errors.pcap"])
  func order(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      for options in ["", "--no-fates"] {
        let outcome = try command.shell("$apnscope decode --format table \(options) \(trace)")
        #expect(outcome.status == 0 && outcome.errors == "")
        let times = outcome.lines.dropFirst(2).dropLast().map { $0.prefix(26) }.filter { !$0.hasPrefix("-") }
        #expect(times.count > 10 && times == times.sorted(), "\(options)")
      }
      let piped = try command.shell("cat \(trace) | $apnscope decode --format table -")
      let times = piped.lines.dropFirst(2).dropLast().map { $0.prefix(26) }.filter { !$0.hasPrefix("-") }
      #expect(times.count > 10 && times == times.sorted())
    }
  }

  @Test("An error's row stands where it came, with the counts that its connection's end told") func error() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let file = try command.run("decode", "--format", "table", "plain-error.pcap")
      let row = try #require(file.lines.firstIndex { $0.contains("  error         status 8") })
      #expect(file.lines[row].hasSuffix("names #7  7 accepted  26 discarded  after 30.7 ms"))
      #expect(file.lines[row - 1].contains("notification  #33  discarded"))
      // Of a pipe it is not known how many more come; the ranges tell.
      let piped = try command.shell("cat plain-error.pcap | $apnscope decode --format table -")
      #expect(piped.output.contains("names #7  7 accepted  after 30.7 ms\n"))
      #expect(piped.output.contains("  fate          #8 to #33  discarded\n"))
    }
  }

  @Test("JSON Lines into a folder: the lines of one stream, by type") func files() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let stream = try command.run("decode", "plain-error.pcap")
      let outcome = try command.run("decode", "--output", "records/", "plain-error.pcap")
      #expect(outcome.status == 0 && outcome.output == "")
      let types = [
        "capture", "notification", "error_response", "fate", "feedback", "gap", "malformed", "capture_loss",
        "delivery", "connection", "summary", "response", "goaway", "reset", "settings", "channel_request", "device",
        "local_push",
      ]
      let names = try FileManager.default.contentsOfDirectory(atPath: command.folder.appending(path: "records").path)
      #expect(names.sorted() == types.map { "\($0).jsonl" }.sorted())
      for type in types {
        let expected = stream.lines.filter { $0.hasPrefix(#"{"type":"\#(type)""#) }.map { $0 + "\n" }.joined()
        #expect(try command.read("records/\(type).jsonl") == expected, "\(type)")
      }
      let table = try command.run("decode", "--format", "table", "--output", "records/", "plain-error.pcap")
      #expect(table.status == 64 && table.errors.contains("a table is written to one file"))
    }
  }

  @Test("Some fields, in every format") func fields() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      func decode(_ format: String, _ fields: String) throws -> Outcome {
        try command.run("decode", "--format", format, "--type", "notification", "--fields", fields, "plain-error.pcap")
      }
      let csv = try decode("csv", "fate,identifier")
      #expect(csv.lines.count == 67)
      #expect(csv.lines[0] == "fate,identifier" && csv.lines[8] == "rejected,8")
      let table = try decode("table", "fate,identifier")
      #expect(table.lines[0] == "fate\tidentifier" && table.lines[8] == "rejected\t8")
      let json = try decode("jsonl", "identifier,fate,tls_version")
      #expect(json.lines.count == 66)
      #expect(json.lines[7] == #"{"type":"notification","fate":"rejected","identifier":8}"#)
      // Connections have an end, and nothing of the others; the type alone is in every record.
      let ends = try decode("jsonl", "end")
      #expect(
        ends.lines == [
          #"{"type":"connection","end":"server_fin"}"#, #"{"type":"connection","end":"client_fin"}"#,
        ])
      #expect(try decode("jsonl", "type").lines.count == 70)
      let payload = try decode("csv", "payload")
      #expect(payload.lines[0] == "payload,payload_base64" && payload.lines.count == 67)
      let unknown = try decode("csv", "fate,colour")
      #expect(unknown.status == 64 && unknown.errors.contains("unknown field 'colour'. Available: type, schema,"))
    }
  }

  @Test("Some fields into a folder: each file has those of its type") func fieldFiles() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      for format in ["csv", "jsonl"] {
        let outcome = try command.run(
          "decode", "--format", format, "--fields", "fate,status,identifier", "--output", "records/", "plain-error.pcap"
        )
        #expect(outcome.status == 0 && outcome.errors == "")
      }
      let notifications = try command.read("records/notification.csv").split(separator: "\n")
      #expect(notifications.count == 67 && notifications[0] == "fate,identifier,status")
      // Over HTTP/2 the status is the notification's.
      #expect(notifications[8] == "rejected,8,")
      #expect(try command.read("records/error_response.csv") == "status,identifier\n8,8\n")
      #expect(try command.read("records/capture.csv") == "")
      let objects = try command.read("records/notification.jsonl").split(separator: "\n")
      #expect(objects.count == 66 && objects[7] == #"{"type":"notification","fate":"rejected","identifier":8}"#)
      #expect(
        try command.read("records/error_response.jsonl") == #"{"type":"error_response","status":8,"identifier":8}"#
          + "\n")
      #expect(try command.read("records/connection.jsonl") == "")
    }
  }

  @Test("Fields of tls are those of its columns") func tlsFields() throws {
    try Command.inFolder { command in
      try command.trace("tls-late-error.pcap.gz")
      try command.trace("tls-late-error.pcap.gz.keys")
      func decode(_ format: String, _ fields: String) throws -> [String] {
        try command.run(
          "decode", "--keys", "tls-late-error.pcap.gz.keys", "--format", format, "--fields", fields,
          "tls-late-error.pcap.gz"
        ).lines
      }
      #expect(try decode("jsonl", "tls_version,tls_alert") == [#"{"type":"connection","tls":{"version":"TLS 1.2"}}"#])
      #expect(try decode("csv", "tls_version") == ["tls_version", "TLS 1.2"])
      #expect(try decode("csv", "tls")[0].hasPrefix("tls_version,tls_cipher_suite,"))
    }
  }

  @Test("inspect lists connections by their start, or by what cost most") func sorted() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap")
      func connections(_ options: String...) throws -> [[String: Any]] {
        let outcome = try command.shell(
          "$apnscope inspect --format json \(options.joined(separator: " ")) known-bad-and-errors.pcap")
        let report = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
        return try #require(report?["connections"] as? [[String: Any]])
      }
      func lost(_ row: [String: Any]) -> Int { (row["discarded"] as? Int ?? 0) + (row["unknown"] as? Int ?? 0) }
      let byStart = try connections()
      #expect(byStart.compactMap { $0["connection"] as? Int } == Array(1...byStart.count))
      let byCost = try connections("--sort", "cost")
      #expect(byCost.map(lost) == byStart.map(lost).sorted(by: >))
      #expect(byCost.map(lost) != byStart.map(lost))
      #expect(try command.run("inspect", "--sort", "size", "known-bad-and-errors.pcap").status == 64)
    }
  }
}
