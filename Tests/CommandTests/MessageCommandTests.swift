import Foundation
import TestSupport
import Testing

/// Recordings of the device channel and of local push, through the command.
@Suite("recordings of messages to devices", .waiting)
struct MessageCommandTests {
  private static let traces = ["messages-devices.pcap", "messages-local-push.pcap"]

  private func count(_ type: String, in output: String) -> Int {
    output.split(separator: "\n").count { $0.hasPrefix(#"{"type":"\#(type)""#) }
  }

  @Test("decode has the messages in every format, and selects them by type")
  func formats() throws {
    try Command.inFolder { command in
      for (trace, type, number) in [(Self.traces[0], "device", 15), (Self.traces[1], "local_push", 21)] {
        try command.trace(trace)
        let lines = try command.run("decode", trace)
        #expect(lines.status == 0 && count(type, in: lines.output) == number, "\(lines.output)")
        let selected = try command.run("decode", "--type", type, trace)
        #expect(count(type, in: selected.output) == number && count("gap", in: selected.output) == 0)
        let csv = try command.run("decode", "--format", "csv", trace)
        #expect(csv.lines.count { $0.hasPrefix(type + ",") } == number)
        let table = try command.run("decode", "--format", "table", trace)
        let word = "  " + type.replacing("_", with: " ") + " "
        #expect(table.lines.count { $0.contains(word) } == number)
        let files = try command.run("decode", "--format", "csv", "--output", "\(type)/", trace)
        #expect(files.status == 0)
        #expect(try command.read("\(type)/\(type).csv").split(separator: "\n").count == number + 1)
        for threads in ["1", "4"] {
          #expect(try command.run("decode", "--threads", threads, trace).output == lines.output)
        }
      }
    }
  }

  @Test("A stated port reads a connection from its middle on, and another meaning of a port is refused")
  func ports() throws {
    try Command.inFolder { command in
      try command.trace(Self.traces[0])
      // Without the handshake and the first message of each end.
      let capture = try Data(contentsOf: command.folder.appending(path: Self.traces[0]))
      var place = 24
      for _ in 0..<5 {
        place += 16 + capture[(place + 8)..<(place + 12)].reversed().reduce(0) { $0 << 8 | Int($1) }
      }
      try command.write(Array(capture[..<24] + capture[place...]), "middle.pcap")
      let stated = try command.run("decode", "--port", "5224=devices", "middle.pcap")
      #expect(count("device", in: stated.output) == 13, "\(stated.output)")
      let wrong = try command.run("decode", "--port", "5224=device", "middle.pcap")
      #expect(wrong.status == 64)
    }
  }

  @Test("inspect counts acknowledgements and says what is proven missing")
  func inspect() throws {
    try Command.inFolder { command in
      for trace in Self.traces { try command.trace(trace) }
      let devices = try command.run("inspect", Self.traces[0])
      #expect(devices.status == 0 && devices.output.contains("devices        2 connections, 15 messages"))
      #expect(devices.output.contains("1 notification was not acknowledged by devices"), "\(devices.output)")
      #expect(!devices.output.contains("no notifications or feedback found"))
      let push = try command.run("inspect", Self.traces[1])
      #expect(push.output.contains("local push     2 connections, 21 messages"))
      #expect(push.output.contains("1 request of local push was acknowledged later than after 10 s"), "\(push.output)")
      #expect(push.output.contains("1 request of local push was not acknowledged within 10 s"))
      #expect(push.output.contains("sent nothing for over 30 s"))
      let document = try JSONSerialization.jsonObject(
        with: Data(try command.run("inspect", "--format", "json", Self.traces[0]).output.utf8))
      let counts = try #require((document as? [String: Any])?["devices"] as? [String: Int])
      #expect(counts["deliveries"] == 5 && counts["acknowledged"] == 4 && counts["unacknowledged"] == 1)
      #expect(counts["connections"] == 2 && counts["stored"] == 1 && counts["repeated"] == 1)
    }
  }

  @Test("Parts of a recording are inspected and merged like the whole")
  func merge() throws {
    try Command.inFolder { command in
      for trace in Self.traces { try command.trace(trace) }
      let whole = try command.run(["inspect", "--format", "json"] + Self.traces)
      for (place, trace) in Self.traces.enumerated() {
        let part = try command.run("inspect", "--format", "json", "--output", "\(place).json", trace)
        #expect(part.status == 0, "\(part.errors)")
      }
      let merged = try command.run("merge", "--format", "json", "0.json", "1.json")
      #expect(merged.status == 0, "\(merged.errors)")
      func counts(_ text: String, _ name: String) throws -> [String: Double] {
        let document = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        return try #require(document?[name] as? [String: Double])
      }
      for name in ["devices", "local_push"] {
        #expect(try counts(merged.output, name) == counts(whole.output, name))
      }
    }
  }

  @Test("A report of saved records has the findings of the recording")
  func report() throws {
    try Command.inFolder { command in
      for (trace, words) in zip(Self.traces, ["not acknowledged by devices", "later than after 10 s"]) {
        try command.trace(trace)
        for (input, output) in [(trace, "page"), ("\(trace).jsonl", "saved")] {
          if input != trace {
            #expect(try command.run("decode", "--output", input, trace).status == 0)
          }
          let page = try command.run("report", "--output", output, input)
          #expect(page.status == 0, "\(page.errors)")
          #expect(try command.read("\(output)/report.md").contains(words), "\(input)")
        }
      }
    }
  }

  @Test("follow says that it leaves messages out, and redact that it writes no such connection")
  func others() throws {
    try Command.inFolder { command in
      for trace in Self.traces {
        try command.trace(trace)
        let follow = try command.run("follow", trace)
        #expect(follow.status == 0 && follow.errors.contains("to devices are not followed"), "\(follow.errors)")
        let redact = try command.run("redact", "--output", "out.pcapng", trace)
        #expect(redact.status == 65 && redact.errors.contains("2 of other protocols"), "\(redact.errors)")
      }
    }
  }
}
