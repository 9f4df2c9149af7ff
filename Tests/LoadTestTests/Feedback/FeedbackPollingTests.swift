import Synchronization
import Testing

@testable import LoadTest

/// When polls begin, and what is taken from them.
@Suite("Feedback polling")
struct FeedbackPollingTests {
  /// Keeps the polls that were begun, to be ended by the test.
  private final class Service: Sendable {
    private let begun = Mutex<[(FeedbackListReader, @Sendable (FeedbackPoll) -> Void)]>([])
    var count: Int { begun.withLock { $0.count } }
    var start: FeedbackPolling.Start {
      { [self] reader, done in begun.withLock { $0.append((reader, done)) } }
    }

    func end(_ end: FeedbackPoll.End, listing numbers: [UInt64] = []) {
      let last = begun.withLock { $0.last }
      guard let (reader, done) = last else { return }
      var tokens = reader.tokens
      var counts = FeedbackCounts()
      for number in numbers {
        counts.tuples += 1
        counts.listed += 1
        _ = tokens.note(number, isAfterRegistration: true)
      }
      done(FeedbackPoll(end: end, counts: counts, tokens: tokens))
    }
  }

  private static let second: Int64 = 1_000_000_000

  private func polling(_ service: Service) throws -> FeedbackPolling {
    var plan = LoadPlan.Feedback()
    plan.interval = .seconds(2)
    return FeedbackPolling(plan, try Workload(WorkloadPlan()), registered: 1, start: service.start)
  }

  @Test("Polls begin at whole intervals of the schedule, one at a time, and none after its end")
  func times() throws {
    let service = Service()
    var polling = try polling(service)
    _ = polling.step(100 * Self.second)
    #expect(service.count == 0)
    polling.begin(at: 100 * Self.second)
    for (time, polls) in [(101, 0), (102, 1), (103, 1), (107, 1)] {
      _ = polling.step(Int64(time) * Self.second)
      #expect(service.count == polls, "at \(time)")
    }
    service.end(.complete)
    // It took longer than an interval: the next one is not made up for.
    for (time, polls) in [(107, 1), (108, 2)] {
      _ = polling.step(Int64(time) * Self.second)
      #expect(service.count == polls, "at \(time)")
    }
    service.end(.complete)
    _ = polling.step(109 * Self.second)
    polling.end(at: 110 * Self.second)
    _ = polling.step(110 * Self.second)
    #expect(service.count == 2 && !polling.isPolling)
    #expect(polling.books.polls == 2 && polling.books.complete == 2)
  }

  @Test("Only a list that was read to its end lists tokens")
  func incomplete() throws {
    let service = Service()
    var polling = try polling(service)
    polling.begin(at: 0)
    var now: Int64 = 0
    func poll(_ end: FeedbackPoll.End, _ numbers: [UInt64]) -> ListedTokens? {
      now += 2 * Self.second
      _ = polling.step(now)
      service.end(end, listing: numbers)
      return polling.step(now)
    }
    #expect(poll(.incomplete("cut"), [1, 2]) == nil)
    #expect(poll(.failed("refused"), []) == nil)
    #expect(!polling.tokens.contains(1) && polling.tokens.listedCount == 0)
    let listed = try #require(poll(.complete, [2, 3]))
    #expect(listed.contains(2) && listed.contains(3) && !listed.contains(1))
    #expect(poll(.incomplete("cut"), [4]) == nil)
    #expect(polling.tokens.listedCount == 2)
    let books = polling.books
    #expect((books.polls, books.complete, books.incomplete, books.failed) == (4, 1, 2, 1))
    #expect(books.counts.tuples == 2 && books.tuplesCutOff == 3 && books.listedTokens == 2)
    #expect(books.reasons == ["cut": 2, "refused": 1])
  }

  @Test("A run that ends without waiting for a poll counts it as incomplete")
  func abandoned() throws {
    let service = Service()
    var polling = try polling(service)
    polling.abandon()
    #expect(polling.books.polls == 0)
    polling.begin(at: 0)
    _ = polling.step(2 * Self.second)
    polling.abandon()
    // What comes later is too late.
    service.end(.complete, listing: [1])
    #expect(polling.step(4 * Self.second) == nil)
    #expect(polling.books.incomplete == 1 && polling.books.complete == 0 && polling.tokens.count == 0)
  }
}
