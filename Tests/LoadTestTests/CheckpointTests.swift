import Measurement
import Synchronization
import TestSupport
import Testing

@testable import LoadTest

/// What stays of a run whose process is killed.
@Suite("Books of a run that is not over")
struct CheckpointTests {
  private final class Kept: Sendable {
    let books = Mutex<[LoadOutcome]>([])
  }

  @Test(
    "They are kept at once and every second, balance, grow, and are marked as lost", arguments: seeds(2, of: 8))
  func checkpoints(seed: UInt64) throws {
    let run = try SimulatedRun(.init(rejectsOneIn: 300), seed: seed) {
      $0.count = nil
      $0.warmUp = .milliseconds(1_500)
      $0.duration = .seconds(2)
      $0.pace = .scheduled(.constant(400), isPoisson: false)
      $0.connections.count = 2
      $0.threads = 2
    }
    let kept = Kept()
    run.checkpoint = { books in kept.books.withLock { $0.append(books) } }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let results = kept.books.withLock { $0 }.map { $0.lostResult(Environment()) }
    try #require(results.count == 4)
    #expect(results.compactMap(\.interrupted?.phase) == [.connect, .warmUp, .measured, .measured])
    #expect(results.allSatisfy { $0.interrupted?.cause == .lost })
    for result in results {
      let broken = result.verdict.invariants.filter { !$0.holds }.map(\.name)
      #expect(broken == ["every run came to its end"])
    }
    let written = results.map(\.sendings.written)
    // A run that is killed after a second and a bit has left books that are not empty.
    #expect(written[1] > 300)
    #expect(written[0] == 0 && written == written.sorted() && Set(written).count == 4)
    #expect(try #require(written.last) <= outcome.books.sendings.written)
    for (result, seconds) in zip(results, [0, 1, 2, 3]) {
      #expect(result.series.count >= seconds - 1 && result.series.count <= seconds + 1)
      #expect(result.phases.last?.name == result.interrupted?.phase)
      #expect(result.phases.reduce(0) { $0 + $1.sendings.written } == result.sendings.written)
    }
    // What was measured so far has its rate.
    #expect(results[1].measuredS == 0 && abs((results[3].rates.writtenPerS ?? 0) - 400) < 20)
    #expect(results[3].started == results[0].started && outcome.interruption == nil)
  }
}
