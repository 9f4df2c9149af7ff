import Foundation
import TestSupport
import Testing

@Suite("usage", .waiting)
struct UsageTests {
  @Test(
    "What cannot be meant is a usage error",
    arguments: [
      ["decode"], ["inspect"], ["decode", "--frobnicate", "a"], ["decode", "--format", "xml", "a"],
      ["decode", "--port", "2195", "a"], ["decode", "--port", "0=gateway", "a"],
      ["decode", "--port", "1=unknown", "a"],
      ["decode", "--stream", "client", "a"], ["decode", "--max-frame-length", "0", "a"],
      ["decode", "--max-connections", "many", "a"], ["decode", "-", "-"],
      ["decode", "--format", "table", "--output", "records/", "a"],
      ["inspect", "--rows", "-1", "a"], ["explain", "a"], ["decode", "--pass-phrase-file", "phrase", "a"],
      ["inspect", "--export-keys", "keys", "a"], ["decode", "--max-key-log-lines", "0", "a"],
    ])
  func usage(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try command.run(arguments)
      #expect(outcome.status == 64)
      #expect(outcome.output == "")
      #expect(outcome.errors.contains("Usage:") || outcome.errors.contains("--help"))
    }
  }

  @Test(
    "What is found to be wrong only later ends with the usage of its command as well",
    arguments: [
      (["load", "--plain", "--faults", "foo=1"], "Available: invalid-token, "),
      (["load", "--plain", "--faults", "malfromed=1"], "Did you mean 'malformed'?"),
      (["load", "--plain", "--payload", "1"], "20 to 61439"),
      (["load", "--plain", "--gateway", "192.0.2.1:2195"], "--allow-remote"),
      (["load", "--plain", "--stage", "1s:5/s", "--warm-up", "1s"], "--warm-up"),
      (["load", "--plain", "--for", "0s"], "--for"),
      (["load", "--plain", "--threshold", "send_lag_p99<5"], "no unit"),
      (["capacity", "--plain", "--payload", "1"], "20 to 61439"),
      (["decode", "--filter", "foo bar", "plain-error.pcap"], "foo bar"),
      (["history", "runs.sqlite", "--figure", "speed"], "Available: accepted_per_s, "),
    ])
  func late(arguments: [String], text: String) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try RunningProcess(Command.path, arguments, in: command.folder).end()
      #expect(outcome.status == 64 && outcome.output == "")
      #expect(outcome.errors.hasPrefix("apnscope: ") && outcome.errors.contains(text), "\(outcome.errors)")
      #expect(outcome.errors.contains("\nUsage: apnscope \(arguments[0]) "), "\(outcome.errors)")
      #expect(outcome.errors.hasSuffix("\n  See 'apnscope \(arguments[0]) --help' for more information.\n"))
    }
  }

  @Test(
    "An unknown option is named before anything else, with the one that means the same here",
    arguments: [
      (["load", "--rps", "5"], "'--rps'. Did you mean '--rate'?"),
      (["load", "--plain", "--duration=10s"], "'--duration'. Did you mean '--for'?"),
      (["load", "--users", "5"], "'--users'. Did you mean '--connections'?"),
      (["load", "--ramp", "5"], "'--ramp'. Did you mean '--stage'?"),
      (["load", "--conections", "5"], "'--conections'. Did you mean '--connections'?"),
      (["decode", "--keylog", "k", "a.pcap"], "'--keylog'. Did you mean '--keys'?"),
      (["simulate", "--listen", "127.0.0.1:0"], "'--listen'. Did you mean '--gateway'?"),
      (["load", "--frobnicate"], "Unknown option '--frobnicate'.\n"),
    ])
  func unknownOption(arguments: [String], text: String) throws {
    try Command.inFolder { command in
      let outcome = try command.run(arguments)
      #expect(outcome.status == 64 && outcome.output == "")
      #expect(
        outcome.errors.hasPrefix("apnscope: Unknown option ") && outcome.errors.contains(text), "\(outcome.errors)")
    }
  }

  @Test(
    "What is to be read and is not there is 66, and how an identity is made is said",
    arguments: [
      (["load", "--identity", "nosuch"], 66, "'apnscope identity --directory nosuch --topic TOPIC' makes it"),
      (["capacity", "--identity", "nosuch", "--dry-run"], 66, "nosuch: No such file"),
      (["load", "--identity", "ids", "--ca", "nosuch.pem"], 66, "nosuch.pem: No such file"),
      (["load", "--identity", "ids", "--topic", "foo"], 64, "it has \(SimulatorProcess.topic)."),
      (["load", "--identity", "ids", "--keylog", "no/where"], 74, "no/where: No such file"),
    ])
  func identities(arguments: [String], status: Int, text: String) throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try RunningProcess(
        Command.path, arguments + ["--gateway", "127.0.0.1:1", "--give-up", "200ms"], in: command.folder
      ).end()
      #expect(outcome.status == Int32(status), "\(outcome.errors)")
      #expect(outcome.errors.contains(text), "\(outcome.errors)")
    }
  }

  @Test("--version is a version") func version() throws {
    try Command.inFolder { command in
      let outcome = try command.run("--version")
      #expect(outcome.status == 0)
      // In brackets the commit, which only the scripts build in.
      #expect(
        try #/\d+\.\d+\.\d+( \([0-9a-f]{7,40}\+?\))?\n/#.wholeMatch(in: outcome.output) != nil, "\(outcome.output)")
    }
  }

  static let readingOptions = [
    "--filter", "--port", "--vxlan-port", "--stream", "--max-frame-length", "--max-token-length",
    "--max-payload-length",
    "--max-packet-length", "--max-block-length", "--max-hex-dump-length", "--max-fragmented-datagrams",
    "--max-encapsulation",
    "--max-buffered-bytes", "--max-total-buffered-bytes", "--max-connections", "--gap-patience", "--start-patience",
    "--max-identifier-runs", "--max-write-times", "--max-held-responses", "--max-fate-ranges", "--keys", "--server-key",
    "--pass-phrase-file", "--max-handshake-length", "--max-held-tls-bytes", "--max-tls-candidates",
    "--max-missing-records", "--max-opening-attempts", "--max-key-log-lines", "--max-secrets-length",
  ]

  static let simulateOptions = [
    "--gateway", "--feedback", "--no-feedback", "--threads", "--identity", "--plain", "--plain-topic", "--tls",
    "--ciphers", "--tls13-suites", "--client-certificate", "--allow-revoked", "--tickets", "--resume", "--keylog",
    "--payload-limit", "--token-length", "--any-priority", "--malformed", "--reject", "--response-delay",
    "--response-pieces", "--response-piece-delay", "--response-identifier", "--response-ending", "--shutdown-after",
    "--seed", "--read-rate", "--read-pause-every", "--read-pause", "--receive-buffer", "--accept-then-close",
    "--wrong-environment", "--handshake-failure", "--connection-limit", "--reconnect-limit", "--reconnect-refusal",
    "--idle-close", "--lifetime", "--devices-offline", "--devices-uninstalled", "--devices-unknown", "--devices-file",
    "--devices-online-after", "--feedback-list", "--feedback-ragged", "--feedback-never-closes", "--for", "--history",
    "--ledger",
    "--log", "--metrics", "--handshake-timeout", "--frame-timeout", "--linger", "--feedback-timeout",
    "--max-frame-length", "--max-connections", "--max-connection-memory", "--max-listed-connections", "--max-stored",
    "--max-stored-bytes", "--settings",
  ]

  private static let helped: [(subcommand: String, options: [String])] = [
    ("decode", readingOptions + ["--format", "--output", "--strict", "--export-keys"]),
    (
      "follow",
      readingOptions + ["--format", "--output", "--strict", "--outcome", "--type", "--repeat-after", "--max-memory"]
    ),
    ("redact", readingOptions + ["--output", "--redact-key", "--keep-addresses", "--max-memory"]),
    ("inspect", readingOptions + ["--format", "--rows", "--strict", "--max-listed", "--max-remembered"]),
    ("simulate", simulateOptions),
    ("load", ["--payload-from", "--behind", "--rate-per-connection", "--metrics"]),
    ("merge", ["--output", "--format", "--ledger", "--threshold", "--allow-missing", "--max-results"]),
    (
      "identity",
      [
        "--directory", "--topic", "--key", "--server-name", "--authority-name", "--authority-organization",
        "--pkcs12-legacy", "--pass-phrase-file", "--revoked", "--expired", "--days", "--force",
      ]
    ),
  ]

  @Test("--help mentions every option, and explains it", arguments: helped)
  func help(subcommand: String, options: [String]) throws {
    try Command.inFolder { command in
      let outcome = try command.run(subcommand, "--help")
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
      for option in options {
        let line = try #require(
          // Short names stand before long ones.
          outcome.lines.firstIndex { $0.hasPrefix("  \(option)") || $0.dropFirst("  -x, ".count).hasPrefix(option) },
          "\(option) is not in the help")
        // The explanation stands on the same line, or on the next when the option's name is long.
        let text = outcome.lines[line].dropFirst(2 + option.count) + outcome.lines[line + 1]
        #expect(text.filter(\.isLetter).count > 20, "\(option) is not explained")
      }
    }
  }

  @Test("The first help names the exit codes and the subcommands") func overview() throws {
    try Command.inFolder { command in
      let outcome = try command.run("--help")
      #expect(outcome.status == 0)
      for text in ["decode", "inspect", "simulate", "identity", "64", "65", "66", "74", "130"] {
        #expect(outcome.output.contains(text))
      }
    }
  }
}

/// What a newcomer reads first.
@Suite("help", .waiting)
struct HelpTests {
  @Test("No line of any help is longer than a terminal is wide")
  func width() throws {
    try Command.inFolder { command in
      for name in [""] + (try SelfDescription.read(command).subcommands.map(\.commandName)) {
        let outcome = try command.shell("COLUMNS=80 $apnscope \(name) --help")
        #expect(outcome.status == 0)
        #expect(outcome.lines.filter { $0.count > 80 } == [], "\(name)")
      }
    }
  }

  @Test("Every help has examples, none is broken by the end of a line, and their options are known")
  func examples() throws {
    try Command.inFolder { command in
      let description = try SelfDescription.read(command)
      let known = Dictionary(uniqueKeysWithValues: description.subcommands.map { ($0.commandName, $0.options) })
      for program in [description.command] + description.subcommands {
        let arguments = program.commandName == "apnscope" ? "" : program.commandName
        let help = try command.shell("COLUMNS=80 $apnscope \(arguments) --help").lines
        #expect(!program.examples.isEmpty, "\(program.commandName)")
        for example in program.examples {
          #expect(help.contains { $0.trimmingCharacters(in: .whitespaces) == example }, "\(example)")
          // A manual page indents them by five.
          #expect(example.count <= 75, "\(example)")
          // Only what is this command's, not what is behind a pipe.
          let words = example.prefix { $0 != "|" }.split(separator: " ").map(String.init)
          let options = try #require(known[words[1]], "\(example)")
          for word in words where word.hasPrefix("--") && word != "--" {
            #expect(options.contains(word), "\(word) in: \(example)")
          }
        }
      }
    }
  }

  @Test("Every help says its exit codes, and every option is explained in a sentence")
  func complete() throws {
    try Command.inFolder { command in
      let description = try SelfDescription.read(command)
      for program in [description.command] + description.subcommands {
        #expect(program.discussion?.contains("Exit codes: 0 ") == true, "\(program.commandName)")
        for argument in program.arguments ?? [] where argument.shouldDisplay {
          #expect((argument.abstract ?? "").contains { $0 == "." || $0 == ")" }, "\(argument)")
        }
        // The library looks for this only in debug builds.
        let names = (program.arguments ?? []).flatMap { ($0.names ?? []).map(\.typed) }
        #expect(Set(names).count == names.count, "two options of \(program.commandName) have one name")
      }
    }
  }

  @Test("The first session in the first help works when it is copied", .timeLimit(.minutes(2)))
  func firstSession() throws {
    try Command.inFolder { command in
      let discussion = try #require(try SelfDescription.read(command).command.discussion)
      let lines = discussion.components(separatedBy: "\n")
      var session = Array(lines.drop { !$0.contains("first session") }.dropFirst().prefix { $0.hasPrefix("  ") })
      #expect(session.count == 5, "\(lines)")
      // Ports of its own, and not so long; otherwise as it stands there.
      session = session.map {
        $0.replacingOccurrences(of: "simulate ", with: "simulate --gateway 127.0.0.1:$port --no-feedback ")
          .replacingOccurrences(of: "load ", with: "load --gateway 127.0.0.1:$port ")
          .replacingOccurrences(of: "--for 10s", with: "--for 1s")
          .replacingOccurrences(of: "every=5000", with: "every=2000")
      }
      // The load is typed when the gateway says that it listens.
      let place = try #require(session.firstIndex { $0.contains("simulate ") })
      try #require(session[place].hasSuffix("&"))
      session[place] = """
        \(session[place].dropLast())> gateway.txt &
        for ((tenths = 0; tenths < 600; tenths++)); do grep -qs '^gateway ' gateway.txt && break; sleep 0.1; done
        """
      let port = Int.random(in: 20_000..<30_000)
      let outcome = try command.shell(
        """
        mkdir bin && ln -s "$apnscope" bin/apnscope && PATH=$PWD/bin:$PATH; port=\(port); set -m
        \(session.joined(separator: "\n"))
        """)
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("✓ generated = accepted + rejected + unknown + abandoned"))
      #expect(try command.read("report/report.html").contains("</html>"))
    }
  }
}
