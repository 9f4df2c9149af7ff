import Foundation
import TestSupport
import Testing

/// Records that are asked for, as typed.
@Suite("selections", .waiting)
struct SelectionCommandTests {
  private static let token = "43bfa4e90318ff59"

  @Test("decode follows one token: its notification, the response to it, its connection") func token() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("decode", "--token", Self.token, "plain-error.pcap")
      #expect(outcome.status == 0 && outcome.errors == "")
      #expect(
        outcome.lines.map { $0.split(separator: "\"")[3] } == [
          "capture", "notification", "error_response", "connection", "summary",
        ])
      #expect(outcome.lines[0].hasSuffix(#","selection":["--token=\#(Self.token)"]}"#))
      #expect(outcome.lines[4].contains(#""connections":1,"notifications":1,"error_responses":1,"#))
      // Capitals are digits, too.
      let capitals = try command.run("decode", "--token", Self.token.uppercased(), "plain-error.pcap")
      #expect(capitals.output == outcome.output)
    }
  }

  @Test(
    "Times are typed in several ways",
    arguments: [
      "--from 2026-11-21T00:32:58.405Z --to 2026-11-21T00:32:58.408Z", "--from 00:32:58.405 --to 00:32:58.408",
      "--from 8.857ms --to +11.857ms", "--from 2026-11-21T00:32:58.405 --to 00:32:58.408",
    ])
  func times(options: String) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.shell("$apnscope decode \(options) plain-error.pcap")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let notifications = outcome.lines.filter { $0.contains(#""type":"notification""#) }
      #expect(notifications.count == 3)
      #expect(notifications.first?.contains("00:32:58.405233000Z") == true)
    }
  }

  @Test("What is asked of standard input and known only at its end takes --fates") func standardInput() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      for option in ["--fate rejected", "--status 8", "--topic x"] {
        let refused = try command.shell("cat plain-error.pcap | $apnscope decode \(option) -")
        #expect(refused.status == 64 && refused.errors.contains("add --fates, which waits"))
      }
      let responses = try command.shell("cat plain-error.pcap | $apnscope decode --status 8 --type error_response -")
      #expect(responses.lines.count { $0.contains(#""type":"error_response""#) } == 1)
      #expect(responses.lines.contains(#"{"type":"fate","connection":1,"first":7,"last":7,"fate":"rejected"}"#))
      let file = try command.run("decode", "--fate", "rejected", "plain-error.pcap")
      let waited = try command.shell("cat plain-error.pcap | $apnscope decode --fates --fate rejected -")
      #expect(waited.lines.dropFirst() == file.lines.dropFirst())
      // An inspection has to wait for its end anyway.
      let inspected = try command.shell("cat plain-error.pcap | $apnscope inspect --fate rejected -")
      #expect(inspected.status == 0 && inspected.output.contains("\nnotifications  1 (1 command 1)\n"))
    }
  }

  @Test("inspect says what its figures are of") func inspect() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("inspect", "--fate", "discarded", "--connection", "1", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(
        outcome.output.contains(
          "\n  selected: --connection=1 --fate=discarded; all figures below are of these records\n"))
      #expect(outcome.output.contains("\nfates          0 accepted, 0 rejected, 26 discarded, 0 unknown\n"))
      let json = try command.run("inspect", "--format", "json", "--connection", "1", "plain-error.pcap")
      #expect(json.output.contains(#""selection":["--connection=1"]"#) || json.output.contains(#""--connection=1""#))
      let nothing = try command.run("inspect", "--connection", "9", "plain-error.pcap")
      #expect(nothing.output.contains("no notification, error response or feedback is selected"))
      #expect(nothing.output.contains("notifications  0\n"))
    }
  }

  @Test("A report of records selects as one of the recording does") func report() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      #expect(try command.run("decode", "--output", "all.jsonl", "plain-error.pcap").status == 0)
      #expect(try command.shell("cat plain-error.pcap | $apnscope decode - > piped.jsonl").status == 0)
      #expect(
        try command.run("decode", "--fate", "discarded", "--output", "some.jsonl", "plain-error.pcap").status == 0)
      var pages: [String] = []
      for (options, input) in [
        ("--fate discarded", "plain-error.pcap"), ("--fate discarded", "all.jsonl"),
        ("--fate discarded", "piped.jsonl"), ("", "some.jsonl"),
      ] {
        let outcome = try command.shell("$apnscope report \(options) --output page \(input)")
        #expect(outcome.status == 0 && outcome.errors == "", "\(input): \(outcome.errors)")
        let page = try command.read("page/report.md")
        #expect(page.contains("`--fate=discarded`"), "\(input)")
        pages.append(page.split(separator: "\n").first { $0.contains(" notifications: ") }.map(String.init) ?? "")
      }
      #expect(Set(pages).count == 1 && pages[0].contains("0 accepted, 0 rejected, 26 discarded, 0 unknown"), "\(pages)")
    }
  }

  @Test(
    "What cannot be asked for is refused",
    arguments: [
      ("--from yesterday", "a time as"), ("--from 25:00", "a time as"), ("--token xyz", "hexadecimal digits"),
      ("--fate lost", "accepted"), ("--type summary", "notification"), ("--status 1000", "1000"),
      ("--identifier -1", "identifier"), ("--connection 3..1", "whole number"), ("--limit 0", "must be at least 1"),
      ("--to 5", "5s"), ("--from 2s --to 2s", "--to must be later than --from"),
      ("--from 23:00 --to 01:00", "give the date of another day"),
    ])
  func refused(options: String, complaint: String) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.shell("$apnscope decode \(options) plain-error.pcap")
      #expect(outcome.status == 64 && outcome.output == "")
      #expect(outcome.errors.contains(complaint), "\(outcome.errors)")
    }
  }
}
