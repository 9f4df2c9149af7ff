import BinaryProtocol
import Measurement
import PacketCapture
import Testing

@testable import Analysis

/// What became of a notification, by the fates of its sendings.
@Suite("Outcomes")
struct StoryFoldTests {
  private static let second: Int64 = 1_000_000_000

  private func row(_ fate: FateCode, at seconds: Int64?, expiration: UInt32? = nil) -> StoryRow {
    var row = StoryRow(.sending, connection: 1, index: 0)
    row.fate = fate
    row.time = seconds.map { $0 * Self.second } ?? Timestamp.none.nanoseconds
    if let expiration {
      row.expiration = expiration
      row.flags.insert(.hasExpiration)
    }
    return row
  }

  private func facts(_ rows: [StoryRow]) -> StoryFacts {
    var fold = StoryFold(rows[0])
    for row in rows.dropFirst() { fold.add(row) }
    return fold.facts
  }

  @Test(
    "Fates decide the outcome in the documented order",
    arguments: [
      ([.accepted, .accepted, .unknown], .acceptedTwice),
      ([.discarded, .accepted, .rejected, .accepted], .acceptedTwice),
      ([.accepted], .accepted), ([.accepted, .discarded, .rejected], .accepted),
      ([.accepted, .discarded, .unknown, .rejected], .open),
      ([.discarded, .accepted], .recovered), ([.unknown, .accepted, .discarded], .open),
      ([.rejected, .accepted], .recovered), ([.unknown], .open), ([.rejected, .discarded, .unknown], .open),
      ([.discarded, .rejected], .rejected), ([.rejected], .rejected), ([.discarded, .discarded], .lost),
    ] as [([FateCode], StoryOutcome)])
  func order(fates: [FateCode], outcome: StoryOutcome) {
    let facts = facts(fates.enumerated().map { row($1, at: Int64($0)) })
    #expect(facts.seen == outcome && facts.sent == fates.count)
  }

  @Test(
    "The accepted sending decides whether it had expired",
    arguments: [
      ([(FateCode.accepted, 100, 99)], .expired), ([(.accepted, 100, 100)], .accepted),
      ([(.accepted, 100, 0)], .accepted),
      ([(.discarded, 90, 95), (.accepted, 100, 95)], .expired),
      ([(.discarded, 99, 95), (.accepted, 100, 200)], .recovered),
      ([(.accepted, 90, 95), (.discarded, 100, 95)], .accepted),
      ([(.accepted, 100, 95), (.accepted, 101, 95)], .acceptedTwice), ([(.discarded, 100, 95)], .lost),
    ] as [([(FateCode, Int64, UInt32)], StoryOutcome)])
  func expired(sendings: [(FateCode, Int64, UInt32)], outcome: StoryOutcome) {
    #expect(facts(sendings.map { row($0.0, at: $0.1, expiration: $0.2) }).seen == outcome)
  }

  @Test("A story recovers after the time from its first sending to the accepted one") func recovered() {
    let facts = facts([
      row(.discarded, at: 10), row(.rejected, at: 20), row(.accepted, at: 35), row(.discarded, at: 90),
    ])
    #expect(facts.recoveredAfter == 25 * Self.second)
    #expect(facts.observedFor(until: Timestamp(nanoseconds: 100 * Self.second)) == nil)
    // A sending after the accepted one is no longer waited for.
    #expect(facts.longestResend == 15 * Self.second)
  }

  @Test("A lost story is observed from its last sending on, which the end may not be before") func observed() {
    let facts = facts([row(.discarded, at: 10), row(.discarded, at: 30)])
    #expect(facts.observedFor(until: Timestamp(nanoseconds: 75 * Self.second)) == 45 * Self.second)
    #expect(facts.observedFor(until: Timestamp(nanoseconds: 20 * Self.second)) == 0)
    #expect(facts.observedFor(until: .none) == nil && facts.recoveredAfter == nil)
  }

  @Test("A sending is a repeat on purpose when the accepted one before it is that old")
  func repeats() {
    let limit = 600 * Self.second
    var fold = StoryFold(row(.discarded, at: 0))
    #expect(fold.takes(row(.accepted, at: 5_000), repeatAfter: limit))
    fold.add(row(.accepted, at: 100))
    #expect(fold.takes(row(.accepted, at: 699), repeatAfter: limit))
    #expect(!fold.takes(row(.accepted, at: 700), repeatAfter: limit))
    // The latest accepted one counts.
    fold.add(row(.accepted, at: 690))
    #expect(fold.takes(row(.discarded, at: 1_289), repeatAfter: limit))
    #expect(!fold.takes(row(.discarded, at: 1_290), repeatAfter: limit))
    // Without times nothing is known to be a repeat.
    #expect(fold.takes(row(.accepted, at: nil), repeatAfter: limit))
    var other = row(.accepted, at: 691)
    other.topic = ContentKey([1].rawBytes, in: .zero)
    #expect(!fold.takes(other, repeatAfter: limit))
  }
}
