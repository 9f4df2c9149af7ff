import Foundation
import TestSupport
import Testing

/// The file of `--settings`: TOML for all options.
@Suite("simulate --settings", .waiting)
struct SimulateSettingsTests {
  private func run(_ settings: String, _ arguments: String..., in command: Command) throws -> Outcome {
    try command.write(Array(settings.utf8), "s.toml")
    return try SimulateUsageTests.run(["--settings", "s.toml"] + arguments, in: command)
  }

  /// Values for what the help shows between angle brackets, and for the options that need another.
  private static let values = [
    "time": #""20ms""#, "bytes": "40000", "share": "0.25", "count": "3", "host:port": #""127.0.0.1:0""#, "number": "7",
    "topic": #""com.example.app""#, "rule": #"["every=5", "prefix=dead,status=7"]"#, "lengths": "[1, 2, 3]",
    "versions": "1.2", "--file": #""out""#, "--devices-file": #""devices""#, "--feedback-list": #""list""#,
    "--max-history": #""1MiB""#, "--identity": #""ids""#, "--ciphers": #""ECDHE+AESGCM""#,
    "--tls13-suites": #""TLS_AES_128_GCM_SHA256""#,
    "--client-certificate": #""optional""#, "--resume": #""ids""#, "--malformed": #""close""#,
    "--scheduling": #""normal""#, "--response-identifier": #""zero""#, "--response-ending": #""rst""#,
    "--token-length": #""32..64""#, "--trust": #""token""#, "--provider-key": #"["key.pem,KEY,TEAM"]"#,
    "--excess-streams": #""goaway""#, "--http2-rule": #"["renewal=off"]"#,
    "--http2-fault": #"["delay,time=1ms"]"#, "--http2-limit": #"["pings=5+1/s"]"#, "--color": #""never""#,
    "condition": #"["received>=0"]"#, "year": "2015", "rate": #""5/s""#, "time:share": #"["1h:5%"]"#,
    "time:time": #"["1h:1s", "1h:1s,silent,network=ship"]"#, "--local-push": #"["ship=127.0.0.1:0", "127.0.0.1:0"]"#,
    "--local-push-messages": #""messages""#,
  ]

  /// Names of options, and what stands for their value, from the help.
  private func options(_ command: Command) throws -> [(name: String, value: String?)] {
    let help = try command.run("simulate", "--help").output
    return help.matches(of: #/^  (?:-[a-zA-Z], )?--([a-z0-9-]+)(?: <([a-z:-]+)>)?/#.anchorsMatchLineEndings())
      .map { (String($0.output.1), $0.output.2.map(String.init)) }
  }

  /// Options that take the place of others, and are set on their own.
  private static let alternatives = ["identity", "plain", "no-feedback", "devices-file", "no-lint"]

  /// Those of HTTP/2, which others exclude.
  private static let http2 = [
    "http2", "trust", "provider-key", "streams", "excess-streams", "sandbox", "http2-rule", "http2-fault",
    "http2-limit", "http2-channels",
  ]

  @Test("Every option of the help can be set in it, with _ for - and in tables") func everyOption() throws {
    try SimulatorProcess.inFolder { command in
      let key = try RunningProcess(
        "openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "key.pem"],
        in: command.folder)
      #expect(try key.end().status == 0)
      try command.write(Array("00ff active\n".utf8), "devices")
      try command.write(Array(#"{"at_s": 1, "kind": "invite", "to": 1}"#.utf8), "messages")
      let options = try options(command).filter { !["settings", "help", "version"].contains($0.name) }
      #expect(options.count > 50)
      /// Lines of a file without a table, and of tables by their names.
      var (whole, tables): ([String], [String: [String]]) = ([], [:])
      var settings: [String] = []
      var linesOfHTTP2: [String] = []
      for option in options {
        var value = "true"
        if let name = option.value {
          value = try #require(
            Self.values["--\(option.name)"] ?? Self.values[name] ?? (name == "file" ? "\"\(option.name)\"" : nil),
            "\(option.name)")
        }
        let underscored = option.name.replacing("-", with: "_")
        let words = underscored.split(separator: "_", maxSplits: 1).map(String.init)
        if Self.http2.contains(option.name) {
          linesOfHTTP2.append("\(underscored) = \(value)")
        } else if Self.alternatives.contains(option.name) {
          settings.append("\(underscored) = \(value)")
          if words.count == 2 { settings.append("[\(words[0])]\n\(words[1]) = \(value)") }
        } else {
          whole.append("\(underscored) = \(value)")
          // The same in a table for the name's first word.
          if words.count == 2 { tables[words[0], default: []].append("\(words[1]) = \(value)") }
        }
      }
      #expect(linesOfHTTP2.count == Self.http2.count)
      settings.append(linesOfHTTP2.joined(separator: "\n"))
      settings.append(whole.joined(separator: "\n"))
      settings.append(tables.map { "[\($0)]\n" + $1.joined(separator: "\n") }.joined(separator: "\n"))
      for text in settings {
        // --for is on the command line, which wins.
        let mode = text.hasPrefix("identity") || text.hasPrefix("plain") ? [] : ["--identity", "ids"]
        try command.write(Array(text.utf8), "s.toml")
        let outcome = try SimulateUsageTests.run(["--settings", "s.toml"] + mode, in: command)
        #expect(outcome.status == 0, "\(text): \(outcome.errors)")
      }
    }
  }

  @Test("What it says holds: tables, lists and [[reject]]") func holds() throws {
    try SimulatorProcess.inFolder { command in
      let settings = """
        plain = true
        [response]
        delay = "1ms..5ms"
        pieces = [1, 2, 3]
        [devices]
        uninstalled = 1
        [[reject]]
        prefix = "00000005"
        status = 7
        [[reject]]
        every = 8
        """
      try command.write(Array(settings.utf8), "s.toml")
      let simulator = try SimulatorProcess(["--settings", "s.toml", "--plain"], in: command)
      for (first, response) in [
        (UInt32(1), Frames.response(7, 5)), (6, Frames.response(8, 9)), (10, Frames.response(2, Frames.marker)),
      ] {
        let provider = try PlainClient(simulator.gateway)
        try provider.send((first...10).flatMap { Frames.framed($0) } + Frames.known)
        #expect(try provider.receive() == response)
        provider.close()
      }
      let ledger = try simulator.stop()
      #expect(ledger.gateway.rejected == ["7": 1, "8": 1, "2": 1])
      #expect(ledger.gateway.accepted == 8)
      #expect(ledger.devices.uninstalled == 8)
      #expect(ledger.feedback.waiting == 8)
    }
  }

  @Test("The command line wins, also for what may be said several times") func commandLineWins() throws {
    try SimulatorProcess.inFolder { command in
      let settings = "plain = true\nshutdown_after = 2\nreject = [\"every=1,status=5\"]\npayload_limit = 0\n"
      try command.write(Array(settings.utf8), "s.toml")
      let simulator = try SimulatorProcess(
        [
          "--settings", "s.toml", "--plain", "--shutdown-after=4", "--reject", "prefix=dead", "--payload-limit", "100",
        ], in: command)
      let provider = try PlainClient(simulator.gateway)
      try provider.send((1...10).flatMap { Frames.framed($0) })
      #expect(try provider.receive() == Frames.response(10, 4))
      provider.close()
      let ledger = try simulator.stop()
      #expect(ledger.gateway.accepted == 4)
      #expect(ledger.gateway.discarded == 6)
      #expect(ledger.gateway.rejected.isEmpty)
    }
  }

  @Test(
    "What is typed also takes the place of what excludes it",
    arguments: [
      ("plain = true", ["--identity", "ids"]), ("identity = \"missing\"", ["--plain"]),
      ("plain = true\nno_feedback = true", ["--feedback", "127.0.0.1:0"]),
      ("plain = true\n[devices]\noffline = 0.5", ["--devices-file", "devices"]),
      ("plain = true\ndevices_file = \"missing\"", ["--devices-unknown", "1%"]),
    ])
  func alternatives(settings: String, typed: [String]) throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array("00ff active\n".utf8), "devices")
      try command.write(Array(settings.utf8), "s.toml")
      let outcome = try SimulateUsageTests.run(["--settings", "s.toml"] + typed, in: command)
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
    }
  }

  @Test("Several topics of a list are several uses of the option") func repeated() throws {
    try SimulatorProcess.inFolder { command in
      let settings = "identity = \"ids\"\nwrong_environment = [\"com.example.other\", \"com.example.app\"]\n"
      try command.write(Array(settings.utf8), "s.toml")
      let simulator = try SimulatorProcess(["--settings", "s.toml"], in: command)
      #expect(throws: (any Error).self) { try PythonProvider(folder: command.folder).send(simulator.gateway) }
      let gateway = try simulator.stop().gateway
      #expect(gateway.refused == 1)
      #expect(gateway.received == 0)
    }
  }

  @Test(
    "What cannot be used: 65, with the place or the name",
    arguments: some(
      6,
      of: [
        (
          "plain = true\nresponse_dely = \"1s\"\n",
          "s.toml: unknown setting 'response_dely'; did you mean 'response_delay'?"
        ),
        (
          "plain = true\n[response]\ndelai = \"1s\"\n",
          "s.toml: unknown setting 'response_delai'; did you mean 'response_delay'?"
        ),
        ("plain = true\nfrobnicate = 1\n", "s.toml: unknown setting 'frobnicate'"),
        ("plain = true\nsettings = \"t.toml\"\n", "s.toml: unknown setting 'settings'"),
        ("plain = true\nkeys = \"k\"\n", "s.toml: unknown setting 'keys'"),
        ("plain = true\nseed = \n", "s.toml:2:8: "), ("plain = true\n\n  = 3\n", "s.toml:3:3: "),
        ("plain = true\nplain = true\n", "s.toml:2:"), ("plain = \"yes\"\n", "s.toml: 'plain' is true or false"),
        ("plain = true\nseed = false\n", "s.toml: 'seed' takes a text or a number"),
        ("plain = true\nseed = \"many\"\n", "s.toml: The value 'many' is invalid for '--seed <number>'"),
        ("plain = true\nlinger = 5\n", "s.toml: The value '5' is invalid for '--linger <time>': expected a time, e.g."),
        (
          "plain = true\n[[reject]]\nevry = 5\n",
          "s.toml: The value 'evry=5' is invalid for '--reject <rule>': expected every=N"
        ),
        ("plain = true\nlinger = 2015-09-16\n", "s.toml: 'linger' takes a text or a number"),
        ("plain = true\nthreads = 0\n", "s.toml: --threads must be 1 to 256 (got 0)."),
        ("identity = \"ids\"\nplain = true\n", "s.toml: --identity and --plain exclude each other."),
      ]))
  func unusable(settings: String, message: String) throws {
    try Command.inFolder { command in
      let outcome = try run(settings, in: command)
      #expect(outcome.status == 65)
      #expect(outcome.errors.hasPrefix("apnscope: \(message)"), "\(outcome.errors)")
      #expect(outcome.output == "")
    }
  }

  @Test("Neither the file nor the command line says identity or plain: usage; no text: 65; a missing file: 66")
  func missing() throws {
    try Command.inFolder { command in
      #expect(try run("seed = 3\n", in: command).status == 64)
      #expect(try run("plain = true\n", in: command).status == 0)
      try command.write([0x70, 0xff, 0x0a], "binary.toml")
      let binary = try SimulateUsageTests.run(["--settings", "binary.toml"], in: command)
      #expect(binary.status == 65)
      #expect(binary.errors == "apnscope: binary.toml: is not UTF-8\n")
      let outcome = try SimulateUsageTests.run(["--settings", "missing.toml"], in: command)
      #expect(outcome.status == 66)
      #expect(outcome.errors == "apnscope: missing.toml: No such file or directory\n")
    }
  }
}
