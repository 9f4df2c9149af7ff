import Measurement
import PacketCapture
import Records
import Testing

@testable import Analysis

@Suite("Undecided notifications")
struct UndecidedTests {
  @Test(
    "Open notifications are undecided unless a sending was accepted or rejected, or would have been rejected",
    arguments: [
      (.unknown, .open, 1), (.discarded, .lost, 1), (.accepted, .open, 0), (.rejected, .open, 0),
      // Discarded, and without a token.
      (.discarded, .rejected, 0),
    ] as [(FateCode, StoryOutcome, Int)])
  func undecided(fate: FateCode, seen: StoryOutcome, expected: Int) {
    for outcome in Set([StoryOutcome.open, seen]) {
      let tally = StoryTally(listed: 10)
      let time = Timestamp(nanoseconds: 99_000_000_000)
      tally.begin(
        StoryRecord(outcome: outcome, seen: seen, isMalformed: false, sent: 2, firstSent: time, lastSent: time))
      for fate in [fate, seen == .open ? .unknown : fate] {
        var row = StoryRow(.sending, connection: 1, index: 0)
        (row.time, row.fate) = (time.nanoseconds, fate)
        tally.receive(SendingRecord(row, .first, reasons: []))
      }
      tally.endStory()
      tally.receive(StorySummary())
      #expect(tally.stories.undecided == (outcome == .open ? expected : 0), "\(outcome)")
    }
  }
}
