import Testing

@testable import Measurement

/// Sentences and sums of inspections.
@Suite("Words and sums of inspections")
struct InspectionWordsTests {
  @Test("Numbers for people have a comma before each three digits but the first")
  func grouped() {
    let texts = [0, 7, 999, 1_000, 14_875, 1_234_567, -1_000, Int.min].map(GroupedNumber.text)
    #expect(
      texts == ["0", "7", "999", "1,000", "14,875", "1,234,567", "-1,000", "-9,223,372,036,854,775,808"])
  }

  @Test("The window that puts packets into order is longer than the longest delay")
  func window() {
    let delays: [(Int64, String)] = [
      (0, "1ms"), (999_999, "1ms"), (1_000_000, "2ms"), (9_998_000_000, "9999ms"), (9_999_000_000, "10s"),
      (10_000_000_000, "11s"), (12_345_000_000, "13s"),
    ]
    for (delay, window) in delays {
      let text = FindingKind.outOfOrderSentence(late: 2, longestDelay: delay)
      #expect(text == "2 packets are earlier than packets before: --reorder-window \(window) puts them in order")
    }
  }

  @Test("What was read of a recording without notifications is said")
  func nothingRead() {
    var summary = InspectionReport.Summary()
    #expect(FindingKind.nothingReadSentence(summary).hasSuffix(": there are no packets"))
    summary.packets = 5
    #expect(FindingKind.nothingReadSentence(summary).hasSuffix(": none of the 5 packets belongs to a TCP connection"))
    (summary.unreadPackets, summary.unread) = (1, ["ESP"])
    #expect(FindingKind.nothingReadSentence(summary).hasSuffix(": 1 of the 5 packets is not read: ESP"))
    summary.connections = 1
    #expect(FindingKind.nothingReadSentence(summary) == "no notifications or feedback found in 1 connection")
    summary.connections = 2
    #expect(FindingKind.nothingReadSentence(summary).hasSuffix("in 2 connections"))
  }

  @Test("A finding of what was not seen again says where it may be")
  func notSeenAgain() {
    var stories = InspectionReport.Stories()
    (stories.gaps, stories.gapBytes, stories.notSeenAgain[.gap]) = (1, 14_875, 3)
    #expect(stories.sentence(of: .notSeenAgain, 3).hasSuffix(": 3 may be in a gap of 14,875 bytes"))
    #expect(!stories.sentence(of: .neverResent, 3).contains("gap"))
  }

  @Test("Outcomes of two recordings add up, and their windows are the shorter ones")
  func sums() {
    var one = InspectionReport.Stories()
    var other = InspectionReport.Stories()
    for (number, outcome) in StoryOutcome.allCases.enumerated() { (one[outcome], other[outcome]) = (number, 10) }
    (one.gaps, one.gapBytes, one.notTracked, one.window, one.windowS) = (1, 100, 2, 64, 3)
    (other.gaps, other.gapBytes, other.notTracked, other.windowS) = (2, 50, 3, 2)
    (one.openReasons[.gap], other.openReasons[.gap], other.notSeenAgain[.gap]) = (4, 5, 1)
    one.add(other)
    #expect(StoryOutcome.allCases.map { one[$0] } == Array(10..<17))
    #expect(one.gaps == 3 && one.gapBytes == 150 && one.notTracked == 5 && one.window == 64 && one.windowS == 2)
    #expect(one.openReasons[.gap] == 9 && one.notSeenAgain[.gap] == 1)
  }

  @Test("Times have the values that half and 99 % do not exceed", arguments: [1, 2, 3, 99, 100, 101, 250])
  func times(count: Int) throws {
    let values = (1...count).map(Double.init)
    let times = try #require(RecoveryTimes(sortedSeconds: values))
    #expect(times.p50S == Double((count + 1) / 2) && times.p99S == (Double(count) * 0.99).rounded(.up))
    #expect(times.maxS == Double(count) && RecoveryTimes(sortedSeconds: []) == nil)
  }

  @Test("Unknown sendings that were followed by another are possible duplicates")
  func duplicates() {
    var result = RunResult()
    #expect(result.duplicateWarning == nil)
    result.sendings.unknown = 3
    result.notifications.unproven = 3
    #expect(result.duplicateWarning == nil)
    result.sendings.unknown = 5
    #expect(result.duplicateWarning?.hasPrefix("2 sendings of unknown fate were repeated") == true)
  }

  @Test("Payloads and records of several gateways add up")
  func payloads() throws {
    var (one, other, without) = (Ledger(), Ledger(), Ledger())
    one.payloads = Ledger.Payloads(kinds: ["alert": 2], lint: ["token_length": 1])
    other.payloads = Ledger.Payloads(kinds: ["alert": 3, "silent": 1], lint: ["token_length": 4, "no_aps": 1])
    without.gateway.received = 1
    var (records, others) = (Ledger.Records(), Ledger.Records())
    (records.notifications, records.lost, others.notifications, others.lost) = (5, 1, 7, 2)
    (one.records, other.records) = (records, others)
    let merged = try #require(Ledger.merging([one, without, other]))
    #expect(merged.payloads?.kinds == ["alert": 5, "silent": 1])
    #expect(merged.payloads?.lint == ["token_length": 5, "no_aps": 1])
    #expect(merged.records?.notifications == 12 && merged.records?.lost == 3)
    #expect(Ledger.merging([without, without])?.records == nil)
  }
}
