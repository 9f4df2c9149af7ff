import Foundation
import TestSupport
import Testing

/// Recordings in which nothing of the protocol can be read: no command says that all is well.
@Suite("Nothing read", .waiting)
struct NothingReadTests {
  private static let encrypted = "1 of 1 connections is encrypted; give --keys with the secrets"

  private func page(_ command: Command, _ arguments: String, status: Int32 = 0) throws -> String {
    let outcome = try command.shell("$apnscope report \(arguments) --output out")
    #expect(outcome.status == status, "\(outcome.errors)")
    return try command.read("out/report.md")
  }

  private func expectNoPraise(_ text: String) {
    for words in [
      "nothing was lost", "worth a look", "findings       none", "loss: none", "✓", "No error response came",
    ] {
      #expect(!text.contains(words), "\(words) in \(text)")
    }
  }

  /// `report Traces/tls-late-error.pcap.gz`: 137 were lost, and the page said in green that nothing was.
  @Test("Without its keys a trace has findings and no verdict", arguments: ["tls-late-error.pcap.gz", "tls13.pcap"])
  func keysMissing(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let inspected = try command.run("inspect", trace)
      #expect(inspected.status == 0)
      #expect(inspected.output.contains(Self.encrypted))
      #expect(inspected.output.contains("loss: unknown, because nothing was read"))
      expectNoPraise(inspected.output)
      let text = try page(command, trace)
      #expect(text.contains(Self.encrypted) && text.contains("No APNs traffic was found"))
      expectNoPraise(text)
      // And so from its records.
      #expect(try command.shell("$apnscope decode \(trace) > a.jsonl").status == 0)
      let told = try page(command, "a.jsonl")
      #expect(told.contains(Self.encrypted))
      expectNoPraise(told)
    }
  }

  @Test("--strict means the same to decode, inspect and report, and says that nothing was read")
  func strict() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "good.pcap")
      try command.trace("tls13.pcap", as: "closed.pcap")
      try command.trace("snap-length-120.pcap", as: "cut.pcap")
      for (file, status) in [("good.pcap", 0), ("closed.pcap", 65), ("cut.pcap", 65)] as [(String, Int32)] {
        #expect(try command.run("decode", "--strict", "--output", "\(file).jsonl", file).status == status, "\(file)")
        #expect(try command.run("inspect", "--strict", file).status == status, "\(file)")
        for input in [file, "\(file).jsonl"] {
          let outcome = try command.shell("$apnscope report --strict \(input) --output out.\(input)")
          #expect(outcome.status == status, "\(input)")
          #expect(try command.read("out.\(input)/report.md").hasPrefix("# Trace: "), "\(input)")
        }
        #expect(try command.run("inspect", file).status == 0)
      }
      let closed = try command.run("inspect", "--strict", "closed.pcap")
      #expect(closed.errors == "apnscope: no notifications or feedback found\n")
      // Nothing is missing of a capture without packets, and nothing was read.
      try command.write(
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0], "empty.pcap")
      for line in ["decode", "inspect", "report --output out"] {
        #expect(try command.shell("$apnscope \(line) empty.pcap").status == 0, "\(line)")
        #expect(try command.shell("$apnscope \(line) --strict empty.pcap").status == 65, "\(line)")
      }
      #expect(try command.shell("$apnscope decode empty.pcap > empty.jsonl").status == 0)
      #expect(try command.shell("$apnscope report --strict --output out empty.jsonl").status == 65)
    }
  }

  /// `inspect --filter 'tcp port 9999'`: "findings none".
  @Test("A filter that matches nothing is said to") func filter() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      for subcommand in ["decode", "inspect"] {
        let outcome = try command.run(subcommand, "--filter", "tcp port 9999", "plain-error.pcap")
        #expect(outcome.status == 0)
        #expect(outcome.errors == "apnscope: plain-error.pcap: the filter matches none of the 146 packets\n")
        expectNoPraise(outcome.output)
        #expect(try command.run(subcommand, "--strict", "--filter", "tcp port 9999", "plain-error.pcap").status == 65)
      }
      let text = try page(command, "--filter 'tcp port 9999' plain-error.pcap")
      #expect(text.contains("the filter matches none of the 146 packets"))
      expectNoPraise(text)
    }
  }

  @Test("Partial records are said to be partial, by report - too") func partial() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap", as: "a.pcap")
      for filter in ["head -20", "grep -v '\"connection\",'", "grep -v '\"notification\",'"] {
        let outcome = try command.shell("$apnscope decode a.pcap | \(filter) | $apnscope report - --output out")
        #expect(outcome.status == 0)
        #expect(try command.read("out/report.md").contains("The records are incomplete: they have only "), "\(filter)")
      }
      #expect(try command.shell("$apnscope decode a.pcap | $apnscope report - --output whole").status == 0)
      #expect(try !command.read("whole/report.md").contains("partial"))
    }
  }

  @Test("inspect takes the limits on what it keeps") func limits() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap", as: "a.pcap")
      let one = try command.run("inspect", "--max-listed", "1", "--max-remembered", "1", "--format", "json", "a.pcap")
      let report = try #require(
        try JSONSerialization.jsonObject(with: Data(one.output.utf8)) as? [String: Any])
      #expect((report["connections"] as? [Any])?.count == 1)
      #expect((report["connections_not_listed"] as? Int) ?? 0 > 0)
      #expect((report["errors"] as? [Any])?.count == 1)
      #expect(try command.run("inspect", "--max-listed", "-1", "a.pcap").status == 64)
    }
  }
}
