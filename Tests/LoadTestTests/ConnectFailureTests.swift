import Measurement
import Testing

@testable import LoadTest

/// Attempts to connect that fail, and why.
@Suite("failed attempts to connect")
struct ConnectFailureTests {
  @Test("Failed attempts are counted by their reasons, which are in the result and in a warning")
  func reasons() throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration) = (2_000, .seconds(50))
      ($0.connections.count, $0.connections.lifetime) = (8, .milliseconds(100))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
    }
    run.environment.refusesOneIn = 4
    let result = try run.run().result(.current(openssl: "", apnscope: "", command: []))
    let connections = result.connections
    #expect(connections.failed > 0 && connections.failures == ["Connection refused": connections.failed])
    #expect(
      result.warnings.contains(
        "\(connections.failed) of \(connections.attempted) attempts to connect failed: Connection refused"),
      "\(result.warnings)")
    for phase in result.phases {
      #expect((phase.connections.failures ?? [:]).values.reduce(0, +) == phase.connections.failed)
    }
  }

  @Test("Nothing is said of attempts when none failed")
  func none() throws {
    let run = try SimulatedRun { $0.count = 100 }
    let result = try run.run().result(.current(openssl: "", apnscope: "", command: []))
    #expect(result.connections.failures == [:] && result.connections.failureWarning == nil)
    #expect(!result.warnings.contains { $0.contains("attempts to connect") })
  }

  @Test("Few reasons are told apart, and the commonest come first")
  func bounds() {
    var tally = LoadTally()
    for number in 0..<1_000 { tally.countFailure("reason \(number)") }
    for _ in 0..<7 { tally.countFailure("reason 3") }
    for _ in 0..<5 { tally.countFailure("reason 2") }
    #expect(tally.failed == 1_012 && tally.failures.values.reduce(0, +) == 1_012)
    #expect(tally.failures.count == 17 && tally.failures["other reasons"] == 984)
    let connections = (tally + LoadTally()).connections
    #expect(connections.commonestFailure?.reason == "other reasons" && connections.commonestFailure?.count == 984)
    #expect(
      connections.failureWarning
        == "1012 of 0 attempts to connect failed: 984 x other reasons, 8 x reason 3, 6 x reason 2, 14 for other reasons"
    )
    #expect((tally - tally).failures == [:])
  }
}

private func + (a: LoadTally, b: LoadTally) -> LoadTally {
  var sum = a
  sum += b
  return sum
}
