import Bytes
import Measurement
import PacketCapture
import Records
import Testing

@testable import Analysis

/// The table of stories, as people read it.
@Suite("Table of stories")
struct StoryTableTests {
  private static let second: Int64 = 1_450_000_000

  private static func time(_ seconds: Int64) -> Timestamp {
    Timestamp(nanoseconds: (second + seconds) * 1_000_000_000)
  }

  private static func text(_ body: (StoryTableWriter) -> Void) -> [String] {
    var bytes: [UInt8] = []
    let writer = StoryTableWriter {
      bytes.append(copying: $0)
      return true
    }
    body(writer)
    writer.flush()
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private static func token(listed: Int?, gone: Int?, rejected: Int = 0) -> TokenRecord {
    TokenRecord(
      token: [0x43, 0xbf], topic: nil, sent: 7, accepted: 6, rejected: rejected, status: rejected > 0 ? 8 : nil,
      listed: listed == nil ? .none : time(1), gone: gone == nil ? nil : UInt32(second), sentAfterListed: listed,
      sentAfterGone: gone, firstSeen: time(0), lastSeen: time(2))
  }

  @Test("A lost notification has its token, its payload, and how long the recording went on") func lost() {
    let lines = Self.text {
      $0.begin(
        StoryRecord(
          outcome: .lost, seen: .lost, token: [0xab, 0xcd], payload: Array("{}".utf8), isMalformed: false, sent: 1,
          firstSent: Self.time(0), lastSent: Self.time(0), observedFor: 61_500_000_000))
      $0.endStory()
    }
    #expect(lines.count == 2 && lines[0].hasPrefix("first sent (UTC)"))
    #expect(
      lines.last?.split(separator: " ").joined(separator: " ")
        == "2015-12-13T09:46:40.000000 lost 1 token abcd 2 B {} not sent again in the 61.5 s that follow", "\(lines)")
  }

  @Test(
    "A token says what was sent after it was listed or gone, if anything was",
    arguments: [
      (token(listed: 3, gone: 2), "  3 sent after it was listed  2 sent after its app was gone"),
      (token(listed: 1, gone: 0), "  1 sent after it was listed"),
      (token(listed: 0, gone: 1), "  1 sent after its app was gone"),
      (token(listed: 0, gone: 0), "  listed at 2015-12-13T09:46:41"),
    ])
  func tokens(record: TokenRecord, ending: String) {
    let lines = Self.text { $0.receive(record) }
    #expect(lines.last?.hasSuffix(ending) == true, "\(lines)")
  }

  @Test("Tokens that nothing happened to have no row") func quiet() {
    #expect(Self.text { $0.receive(Self.token(listed: nil, gone: nil)) }.isEmpty)
    let rejected = Self.text { $0.receive(Self.token(listed: nil, gone: nil, rejected: 1)) }
    #expect(rejected.last?.hasSuffix("6 accepted  1 rejected (8 invalid token)") == true, "\(rejected)")
  }

  @Test("The last line has the outcomes that there are, and tokens if there are any") func summary() {
    var summary = StorySummary()
    #expect(Self.text { $0.receive(summary) } == ["0 notifications, sent 0 times"])
    (summary[.lost], summary[.accepted], summary.sendings) = (2, 5, 9)
    #expect(Self.text { $0.receive(summary) } == ["7 notifications, sent 9 times: 5 accepted, 2 lost"])
    summary.tokens = 1
    summary.recovery = StorySummary.Recovery(p50: 100_000_000, p99: 2_000_000_000, max: 2_500_000_000)
    #expect(
      Self.text { $0.receive(summary) } == [
        "7 notifications, sent 9 times: 5 accepted, 2 lost; 1 tokens",
        "recovered after: p50 0.1 s, p99 2.0 s, max 2.5 s",
      ])
  }
}
