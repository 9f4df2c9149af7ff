import Measurement
import PacketCapture
import Records
import Testing

@testable import Analysis

@Suite("Times from error responses to sendings again")
struct ResendTimeTests {
  private static func sending(_ connection: Int, _ fate: FateCode, at second: Int64, _ relation: SendingRelation)
    -> SendingRecord
  {
    var row = StoryRow(.sending, connection: connection, index: 0)
    (row.time, row.fate) = (second * 1_000_000_000, fate)
    if fate == .discarded { row.discardedAt = (second + 1) * 1_000_000_000 }
    return SendingRecord(row, relation, reasons: [])
  }

  /// - Parameter seconds: when each notification was sent again, after it was discarded at second 99.
  private static func stories(_ seconds: [Int64]) -> TraceReport.Stories {
    let tally = StoryTally(listed: 10)
    for second in seconds {
      let time = Timestamp(nanoseconds: 99_000_000_000)
      tally.begin(
        StoryRecord(outcome: .recovered, seen: .recovered, isMalformed: false, sent: 2, firstSent: time, lastSent: time)
      )
      tally.receive(sending(1, .discarded, at: 99, .first))
      tally.receive(sending(2, .accepted, at: 100 + second, .resendsDiscarded(count: 1)))
      tally.endStory()
    }
    tally.receive(StorySummary())
    return tally.stories
  }

  @Test("They are exact beyond the hour at which histograms end") func long() {
    let stories = Self.stories([1, 2, 10_000])
    #expect(stories.resend?.maxS == 10_000 && stories.resend?.p99S == 10_000)
    #expect(stories.resend.map { abs($0.p50S - 2) < 0.01 } == true)
    #expect(stories.losses.map(\.firstResentS) == [1] && stories.losses.map(\.lastResentS) == [10_000])
  }

  @Test("A sending before the error response is no answer to it, and nothing has no times") func early() {
    #expect(Self.stories([-1]).resend == nil && Self.stories([-1]).sentAgain == 1)
    #expect(Self.stories([]).resend == nil && Self.stories([-1]).notSentAgain == 0)
  }
}
