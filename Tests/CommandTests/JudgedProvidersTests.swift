import Foundation
import Measurement
import TestSupport
import Testing

/// Providers that are no part of apnscope, and what a gateway's verdict says of them.
@Suite("simulate --verdict and providers", .waiting)
struct JudgedProvidersTests {
  private static let script =
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/judged_provider.py").path

  /// What a provider of a kind does with 20 notifications of which number 5 is rejected.
  private struct Case: Sendable, CustomTestStringConvertible {
    var kind: String
    var outcomes: [StoryOutcome: Int]
    var discarded: Int
    var sentAgain: Int
    var connections: Int
    var testDescription: String { kind }
  }

  private static let cases = [
    Case(
      kind: "perfect", outcomes: [.accepted: 5, .recovered: 14, .rejected: 1], discarded: 14, sentAgain: 14,
      connections: 2),
    Case(
      kind: "cached", outcomes: [.accepted: 5, .recovered: 8, .lost: 6, .rejected: 1], discarded: 14,
      sentAgain: 8, connections: 2),
    Case(
      kind: "early", outcomes: [.accepted: 2, .acceptedTwice: 3, .recovered: 11, .lost: 3, .rejected: 1],
      discarded: 14, sentAgain: 11, connections: 2),
    // All but the rejected one are discarded twice.
    Case(
      kind: "stubborn", outcomes: [.accepted: 5, .recovered: 14, .rejected: 1], discarded: 28, sentAgain: 28,
      connections: 3),
    Case(
      kind: "forgetful", outcomes: [.accepted: 5, .lost: 14, .rejected: 1], discarded: 14, sentAgain: 0,
      connections: 1),
    Case(
      kind: "restarted", outcomes: [.acceptedTwice: 5, .recovered: 14, .rejected: 1], discarded: 14,
      sentAgain: 14, connections: 2),
  ]

  @Test("The verdict says what each kind of provider lost, sent again and sent twice", arguments: cases)
  private func kinds(_ expected: Case) throws {
    try Command.inFolder { command in
      let simulator = try SimulatorProcess(
        [
          "--plain", "--no-feedback", "--verdict", "--resend-within", "1s", "--until-idle", "6s", "--for", "5m",
          "--reject", "prefix=bb", "--expect", "lost<=0", "accepted_twice<=0",
        ], in: command)
      let provider = try RunningProcess(
        "python3", [Self.script, expected.kind, "--port", "\(simulator.gateway)"], in: command.folder, name: "provider")
      let sent = try provider.end()
      #expect(sent.status == 0, "\(sent.errors)")
      let outcome = try simulator.end()
      let verdict = try #require(try simulator.ledger().verdict)
      for kind in StoryOutcome.allCases {
        #expect(verdict.stories[kind] == expected.outcomes[kind] ?? 0, "\(kind.name)")
      }
      #expect(verdict.discarded == expected.discarded && verdict.sentAgain == expected.sentAgain)
      #expect(verdict.connections.sending == expected.connections && verdict.notObserved == 0)
      let isFaultless = expected.outcomes[.lost] == nil && expected.outcomes[.acceptedTwice] == nil
      #expect(outcome.status == (isFaultless ? 0 : 99), "\(outcome.output)")
    }
  }

  @Test(
    "pushjack sends again all that an error response discarded, and nothing twice",
    .enabled(if: Pushjack.isInstalled, "pushjack is not installed; Scripts/test does that"))
  func pushjack() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--verdict", "--reject", "every=300", "--resend-within", "1s"], in: command)
      let report = try Pushjack(simulator, in: command).send("--error-timeout", "10")
      #expect(report.successes == 997)
      let ledger = try simulator.stop()
      let verdict = try #require(ledger.verdict)
      #expect(verdict.stories[.rejected] == 3 && verdict.stories[.lost] == 0 && verdict.stories[.acceptedTwice] == 0)
      #expect(verdict.stories[.accepted] + verdict.stories[.recovered] == 997)
      #expect(verdict.stories[.recovered] > 0 && verdict.sendings == ledger.gateway.received)
      // It writes a batch of 100 at a time, in one TLS record each.
      #expect(verdict.notificationsPerRead?.max == 100)
    }
  }
}
