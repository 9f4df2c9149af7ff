import LoadTest
import TestSupport
import Testing

@testable import apnscope

/// Numbers, times and names as people type them.
@Suite("what people type")
struct TypedQuantityTests {
  @Test(
    "A rate is per second unless it says otherwise",
    arguments: [
      ("50k", 50_000), ("50000", 50_000), ("50k/s", 50_000), ("1.5M", 1.5e6), ("600/m", 10), ("0.5", 0.5),
      ("36k/h", 10), ("1e3", 1_000),
    ] as [(String, Double)])
  func rates(text: String, perSecond: Double) throws {
    #expect(try Rate.parse(text).perSecond == perSecond)
    let stage = try StageArgument.parse("10s:0..\(text)").stage
    #expect(stage.length == 10 && stage.from == 0 && stage.to == perSecond)
    #expect(
      try StageArgument.parse("1m30s:\(text)").stage == Schedule.Stage(length: 90, from: perSecond, to: perSecond))
  }

  @Test(
    "Times join units from long to short",
    arguments: [
      ("1m30s", Duration.seconds(90)), ("1h30m", .seconds(5_400)), ("2h0.5m", .seconds(7_230)),
      ("1d1h1m1s1ms1us1ns", .seconds(90_061) + .nanoseconds(1_001_001)), ("5µs", .microseconds(5)),
      ("250ms", .milliseconds(250)), ("100d", .seconds(8_640_000)),
    ] as [(String, Duration)])
  func times(text: String, duration: Duration) throws {
    #expect(try TimeSpan.parse(text).duration == duration)
    let again = TimeSpan(duration).defaultValueDescription
    #expect(try TimeSpan.parse(again).duration == duration)
  }

  @Test(
    "Sizes have units", arguments: [("2KB", 2_000...2_000), ("100..2KiB", 100...2_048), ("1kB..1KiB", 1_000...1_024)])
  func sizes(text: String, bytes: ClosedRange<Int>) throws { #expect(try ByteRange.parse(text).bytes == bytes) }

  @Test(
    "A gateway without a port listens on 2195",
    arguments: [
      ("localhost", "localhost", 2195), ("localhost:7", "localhost", 7), ("127.0.0.1", "127.0.0.1", 2195),
      ("::1", "::1", 2195), ("[::1]", "::1", 2195), ("[::1]:9", "::1", 9),
      ("gateway.example.com", "gateway.example.com", 2195),
    ])
  func gateways(text: String, host: String, port: Int) throws {
    let address = try GatewayArgument.parse(text).address
    #expect(address.host == host && address.port == port)
  }

  @Test(
    "What is none says what is expected, with an example, and what is likely to be meant",
    arguments: [
      (["--for", "2"], "a time, e.g. 250ms, 2s, 1m30s or 1h, up to 100d; did you mean 2s?"),
      (["--for", "1m30"], "did you mean 1m30s?"), (["--for", "30s1m"], "a time, e.g."),
      (["--for", "1s1s"], "a time, e.g."),
      (["--for", "s"], "a time, e.g."), (["--for=-1s"], "a time, e.g."),
      (["--rate", "50k/"], "a rate, e.g. 500/s, 200k/s or 600/m"), (["--rate", "50k/x"], "e.g. 50k, is per second"),
      (["--rate", "fast"], "a rate, e.g."), (["--rate", "0"], "--rate must be more than 0."),
      (["--stage", "10:50k"], "its time needs a unit"),
      (["--connections", "many"], "a count, e.g. 1000, 20k or 10M"), (["--connections", "1.5"], "a count, e.g."),
      (["--connections", "0"], "--connections must be 1 to 100k (got 0)."),
      (["--connections", "101k"], "1 to 100k (got 101000)."), (["--threads", "1k"], "1 to 256 (got 1000)."),
      (["--max-attempts", "0"], "--max-attempts must be at least 1 (got 0)."),
      (["--gateway", "localhost:"], "HOST or HOST:PORT, e.g. localhost"),
      (["--gateway", "localhost:0"], "from 1 to 65535"),
      (["--gateway", "localhost:65536"], "from 1 to 65535"), (["--gateway", ""], "HOST or HOST:PORT"),
      (["--gateway", "2195"], "did you mean localhost:2195?"), (["--gateway", ":2195"], "HOST or HOST:PORT"),
      (["--gateway", "https://localhost:2195/x"], "did you mean localhost:2195?"), (["--gateway", "[::1"], "HOST or"),
      (["--faults", "missing-token="], "shares, e.g."), (["--faults", "payload=badge_type"], "shares, e.g."),
    ])
  func refused(arguments: [String], text: String) {
    do {
      _ = try Load.parse(["--plain"] + arguments)
      Issue.record("\(arguments) is read")
    } catch {
      #expect(Load.message(for: error).contains(text), "\(Load.message(for: error))")
    }
  }

  private func plan(_ arguments: String...) throws -> LoadPlan {
    try Load.parse(["--plain", "--gateway", "127.0.0.1"] + arguments).loadPlan()
  }

  @Test("Options of a load take what help promises")
  func options() throws {
    let plan = try plan(
      "--connections", "1k", "--threads", "2", "--max-attempts", "1k", "--payload", "2KB", "--token-length", "32B",
      "--rate", "50k", "--for", "1m30s", "--faults", "missing-token=1%,oversize=1e-5", "--priority", "10=90%,5=10%")
    #expect(plan.connections.count == 1_000 && plan.threads == 2 && plan.maximumAttempts == 1_000)
    #expect(plan.workload.payload == .sizes(.init(2_000...2_000)) && plan.workload.tokenLength == 32)
    #expect(plan.duration == .seconds(90))
    guard case .scheduled(let schedule, _) = plan.pace else {
      Issue.record("\(plan.pace)")
      return
    }
    #expect(schedule.count(at: 10) == Schedule.constant(50_000).count(at: 10))
    #expect(plan.workload.faults == [.missingToken: 0.01, .oversize: 1e-5])
    #expect(plan.workload.priorities == .init([(10, 0.9), (5, 0.1)]))
  }

  @Test("An expiration with a plus is so long after the start of the run; '+3600' was the year 1970")
  func expirations() throws {
    #expect(try plan("--expiration", "+1h").workload.expirations == .init(.after(seconds: 3_600)))
    #expect(try plan("--expiration", "+3600").workload.expirations == .init(.after(seconds: 3_600)))
    #expect(
      try plan("--expiration", "+1m30s=1,none=2,7=3").workload.expirations
        == .init([(.after(seconds: 90), 1), (nil, 2), (7, 3)]))
    for text in ["+", "1h", "+1ms", "-1h", "+-1s", "4294967296"] {
      #expect(throws: (any Error).self, "\(text)") { try plan("--expiration=\(text)") }
    }
  }

  @Test("A fault without a share is refused: it meant all notifications")
  func faults() throws {
    let error = #expect(throws: (any Error).self) { try plan("--faults", "missing-token") }
    #expect(error.map { Load.message(for: $0) }?.contains("e.g. missing-token=1e-4") == true)
    #expect(throws: (any Error).self) { try plan("--faults", "oversize=0.1,missing-token") }
  }

  @Test(
    "A command that is misspelt or abbreviated is suggested",
    arguments: [
      ("inspekt", "Did you mean 'inspect'?"), ("Load", "Did you mean 'load'?"), ("sim", "Did you mean 'simulate'?"),
      ("dec", "Did you mean 'decode'?"), ("hlep", "Did you mean 'help'?"), ("repot", "Did you mean 'report'?"),
      ("c", "Did you mean 'compare' or 'capacity'?"), ("frobnicate", "Available: decode, inspect, "),
      ("", "Available: decode, "), ("/dev/null", "It is a file: use 'apnscope inspect'"),
    ])
  func commands(typed: String, text: String) {
    let names = Apnscope.configuration.subcommands.map { $0._commandName } + ["help"]
    #expect(Apnscope.suggestion(for: typed, of: names).hasPrefix(text), "\(typed)")
  }
}

/// The same as processes.
@Suite("what people type, as processes", .waiting)
struct TypedCommandTests {
  @Test(
    "An unknown command ends with a suggestion: 64",
    arguments: [
      (["inspekt", "x"], "apnscope: Unknown command 'inspekt'. Did you mean 'inspect'?"),
      (["help", "lod"], "Did you mean 'load'?"), (["sim", "--plain"], "Did you mean 'simulate'?"),
    ])
  func unknown(arguments: [String], text: String) throws {
    try Command.inFolder { command in
      let outcome = try RunningProcess(Command.path, arguments, in: command.folder).end()
      #expect(outcome.status == 64 && outcome.output == "")
      #expect(outcome.errors.contains(text), "\(outcome.errors)")
      #expect(outcome.errors.hasSuffix("See 'apnscope --help' for more information.\n"), "\(outcome.errors)")
    }
  }

  @Test("Forms that people type are printed as forms that can be read back")
  func plan() throws {
    try Command.inFolder { command in
      let first = try command.run(
        "load", "--plain", "--gateway", "localhost", "--rate", "50k", "--for", "1m30s", "--connections", "1k",
        "--payload", "100..2KB", "--expiration", "+1h=3,none", "--faults", "missing-token=1%", "--print-plan")
      #expect(first.status == 0, "\(first.errors)")
      for line in [
        "gateway = \"localhost:2195\"", "rate = \"50000.0/s\"", "for = \"90s\"", "connections = 1000",
        "payload = \"100..2000\"", "expiration = \"+3600s=3.0,none=1.0\"", "faults = \"missing-token=0.01\"",
      ] { #expect(first.lines.contains(line), "\(line) is not in \(first.output)") }
      try command.write(Array(first.output.utf8), "plan.toml")
      let second = try command.run("load", "--plan", "plan.toml", "--print-plan")
      #expect(second.output == first.output, "\(second.errors)")
    }
  }

  @Test("'--expiration +1h' of a load is an hour after its start for the gateway, and on the wire")
  func expiration() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--no-feedback", "--devices-offline", "100%"], in: command)
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--plain", "--gateway", "localhost:\(simulator.gateway)", "--count", "1k", "--rate", "50k",
          "--expiration", "+1h", "--output", "run.json",
        ] + LoadProcess.patience, in: command.folder)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let ledger = try simulator.stop()
      // All wait for their devices, but what has expired when it comes: 3600, in 1970, had.
      #expect(ledger.gateway.accepted == 1_000 && ledger.devices.expired == 0)
      #expect(try LoadProcess.result(in: command).plan["expiration"] == .text("+3600s"))
    }
  }
}
