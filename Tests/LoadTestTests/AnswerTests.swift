import BinaryProtocol
import TestSupport
import Testing

@testable import LoadTest

/// How a load reads a gateway's answers; the dissector reads them by the same rules (DissectionTests).
@Suite("Answers")
struct AnswerTests {
  @Test("A load reads error responses until the first byte that is none", arguments: AnswerSample.all)
  func samples(sample: AnswerSample) throws {
    // A response that ends the connection ends the reading; status 0 does not.
    var sample = sample
    for place in stride(from: 0, to: sample.bytes.count, by: 6) where sample.bytes[place] == 8 {
      if place + 1 < sample.bytes.count, sample.bytes[place + 1] != 33 { sample.bytes[place + 1] = 0 }
    }
    for seed in 1...5 as ClosedRange<UInt64> {
      var behavior = SimulatedLink.GatewayBehavior()
      behavior.page = sample.bytes
      let run = try SimulatedRun(behavior, seed: seed) {
        ($0.count, $0.duration, $0.drain, $0.maximumAttempts) = (1, .seconds(1), .seconds(1), 1)
        $0.markerTimeout = .milliseconds(200)
      }
      let outcome = try run.run()
      expectBalance(outcome, nil)
      let responses = outcome.books.errorResponses.values.reduce(0, +)
      // The connection that the run's end ends has carried nothing: nothing is said on it, unless no connection was up
      // before, so that a marker is written on it.
      let answered = outcome.books.opened - (outcome.books.accepted + outcome.books.rejected > 0 ? 1 : 0)
      #expect(answered >= 1)
      #expect(responses == sample.responses * answered, "seed \(seed)")
      #expect(outcome.books.strayBytes <= (sample.bytes.count - 6 * sample.responses) * answered, "seed \(seed)")
    }
  }
}
