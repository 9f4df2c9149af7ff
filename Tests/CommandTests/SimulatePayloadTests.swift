import Foundation
import TestSupport
import Testing

/// What the simulator says of payloads that a load makes.
@Suite("simulate: payloads", .waiting)
struct SimulatePayloadTests {
  private func load(_ arguments: [String], at port: Int, in command: Command) throws -> Outcome {
    try RunningProcess(
      Command.path,
      [
        "load", "--identity", "ids", "--gateway", "127.0.0.1:\(port)", "--count", "2k", "--connections", "1",
        "--markers", "off",
      ] + arguments + LoadProcess.patience, in: command.folder
    ).end()
  }

  @Test("The ledger counts the kinds that a load was asked for, and the rules that its payloads break")
  func counts() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let load = try load(
        [
          "--payload-kind", "alert=8,background=2", "--faults", "payload=badge_type:10%", "--expiration", "+1h",
        ], at: simulator.gateway, in: command)
      #expect(load.status == 0, "\(load.errors)")
      let ledger = try simulator.stop()
      let payloads = try #require(ledger.payloads)
      #expect(payloads.kinds.values.reduce(0, +) == ledger.gateway.received && ledger.gateway.received == 2_000)
      #expect(Set(payloads.kinds.keys) == ["alert", "background"])
      #expect(Set(payloads.lint.keys) == ["badge_type"])
      #expect((100...300).contains(payloads.lint["badge_type"] ?? 0))
    }
  }

  @Test(
    "Strict about payloads, the simulator refuses errors and nothing else",
    arguments: [("--strict-payloads", "1"), ("--strict-payloads=status=7", "7"), ("--settings=s.toml", "7")])
  func strict(option: String, status: String) throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array("[strict]\npayloads = \"status=7\"\n".utf8), "s.toml")
      let simulator = try SimulatorProcess([option], in: command)
      let load = try load(
        [
          "--payload-kind", "alert", "--faults", "payload=json_trailing_comma:1%,payload=badge_type:1%",
          "--expiration", "+1h",
        ], at: simulator.gateway, in: command)
      #expect(load.status == 0, "\(load.errors)")
      let ledger = try simulator.stop()
      let payloads = try #require(ledger.payloads)
      let refused = ledger.gateway.rejected[status] ?? 0
      #expect(refused > 0 && ledger.gateway.rejected.count == 1)
      #expect(payloads.lint["json_trailing_comma"] == refused)
      #expect(payloads.lint["badge_type"] ?? 0 > 0)
    }
  }

  @Test("Without judging there are no counts, and silent pushes with priority 10 are refused all the same")
  func off() throws {
    for options in [["--no-lint"], []] {
      try SimulatorProcess.inFolder { command in
        let simulator = try SimulatorProcess(options, in: command)
        let load = try load(
          ["--faults", "payload=silent_priority_10:1%", "--expiration", "+1h"], at: simulator.gateway, in: command)
        #expect(load.status == 0, "\(load.errors)")
        let ledger = try simulator.stop()
        let refused = ledger.gateway.rejected["1"] ?? 0
        #expect(refused > 0)
        #expect((ledger.payloads == nil) == !options.isEmpty)
        if let payloads = ledger.payloads { #expect(payloads.lint["silent_priority_10"] == refused) }
      }
    }
  }

  @Test("Faults and kinds that do not exist are refused with what was meant")
  func refusals() throws {
    try Command.inFolder { command in
      let cases = [
        (["--faults", "payload=json_trailing_coma:1%"], "Did you mean 'json_trailing_comma'?"),
        (["--faults", "payload=1%"], "payload=json_trailing_comma:1%"), (["--payload-kind", "loud"], "background"),
        (["--payload-kind", "alert", "--payload", "200"], "exclude each other"),
      ]
      for attached in [
        "--strict-payloads=status=7 --plain", "--strict-payloads=status=x", "--plain --strict-payloads status=0",
      ] {
        let outcome = try command.shell("$apnscope simulate \(attached)")
        #expect(outcome.status == 64 && outcome.errors.contains("status="), "\(outcome.errors)")
      }
      for (arguments, words) in cases {
        let outcome = try RunningProcess(
          Command.path, ["load", "--plain", "--print-plan"] + arguments, in: command.folder
        ).end()
        #expect(outcome.status == 64 && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
      }
      let plan = try RunningProcess(
        Command.path,
        [
          "load", "--plain", "--print-plan", "--payload-kind", "alert=8,background=2", "--faults",
          "oversize=0.01,payload=badge_type:0.02",
        ], in: command.folder
      ).end()
      #expect(plan.lines.contains(#"payload_kind = "alert=8.0,background=2.0""#), "\(plan.output)")
      #expect(plan.lines.contains(#"faults = "oversize=0.01,payload=badge_type:0.02""#), "\(plan.output)")
    }
  }
}
