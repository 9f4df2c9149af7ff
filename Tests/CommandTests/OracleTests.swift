import Foundation
import LoadTest
import TestSupport
import Testing

/// The oracle of `Scripts/bench truth`, on a capture whose figures are known by hand: it must be right to show what is not.
@Suite("oracle", .waiting, .enabled(if: ExternalTool.isInstalled("python3")))
struct OracleTests {
  private struct Found: Decodable {
    var written, accepted, bytes, frame, unsent, lags, sent, refusedLater: Int
    var p50, p99, max, sum, drained: Double
    /// How many, seconds to the first one's answer, and what was lost behind it.
    var refused: [Double]
    var even, poisson: [Double]
    var right, wrong: [Bool]
    var most: [Int]
  }

  private func found() throws -> Found {
    try Command.inFolder { command in
      let script = Command.traces.deletingLastPathComponent()
        .appending(path: "Tests/CommandTests/Clients/captured_load.py").path
      let outcome = try RunningProcess("python3", [script, "load.pcap"], in: command.folder).end()
      try #require(outcome.status == 0, "\(outcome.errors)")
      return try JSONDecoder().decode(Found.self, from: Data(outcome.output.utf8))
    }
  }

  private func isNear(_ a: Double, _ b: Double) -> Bool { abs(a - b) < 1e-6 }

  /// What is written at 1.0 s, when the measured phase begins, was due from 0.991 s on: up to 3950 and with the 40 that are
  /// written again these are 3,000.
  @Test("Rates and lags count what was on the wire in the measured phase, and lags also what never was")
  func figures() throws {
    let found = try found()
    #expect(found.sent == 3_951 + 40)
    #expect(found.written == 3_000)
    #expect(found.accepted == 3_000 - 41)
    #expect(found.bytes == 3_000 * found.frame)
    // 500 of the lags fall from 499 ms to 0; 49 are of what was never sent; the others are 0 to 9 ms.
    #expect(found.lags == 3_000 - 40 + 49 && found.unsent == 49)
    #expect(isNear(found.p50, 0.006) && isNear(found.p99, 0.469) && isNear(found.max, 0.499))
    // Ten at a time have 45 ms together, 101 times before the stop and 145 times behind it.
    #expect(isNear(found.sum, Double(246 * 45 + 500 * 499 / 2 + 49 * 50 / 2) / 1e3))
    #expect(found.refused.count == 3 && found.refused[0] == 1 && found.refused[2] == 40)
    #expect(isNear(found.refused[1], 0.0451))
    #expect(found.refusedLater == 0)
    #expect(isNear(found.drained, 4.12))
  }

  /// Two programs in two languages from one description of the schedule.
  @Test("Its due times are those of the load: ramps, and arrivals by chance from a seed")
  func dueTimes() throws {
    let found = try found()
    let schedule = Schedule(stages: [
      .init(length: 2, from: 0, to: 500), .init(length: 1.5, from: 500, to: 500), .init(length: 2, from: 500, to: 100),
    ])
    #expect(found.even.count == schedule.count)
    for (number, due) in found.even.enumerated() {
      #expect(isNear(due, try #require(schedule.time(of: number))), "\(number)")
    }
    let arrivals = Array(PoissonArrivals(schedule, seed: 7))
    #expect(found.poisson.count == arrivals.count && arrivals.count > 1_500)
    for (ours, its) in zip(arrivals, found.poisson) { #expect(isNear(ours, its)) }
  }

  @Test("A difference outside what is allowed is seen, and so is a figure that is missing")
  func judgements() throws {
    let found = try found()
    #expect(found.right.count == 4 && found.right.allSatisfy { $0 })
    #expect(found.wrong.count == 6 && found.wrong.allSatisfy { !$0 })
    // Of 200 each with a chance of one in twenty, 16 or fewer are hit in 97.5 % of all cases.
    #expect(found.most == [16, 3])
  }
}
