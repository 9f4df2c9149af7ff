import PacketCapture
import Testing

@testable import Records

/// Times as people type them.
@Suite("Typed times")
struct TypedTimeTests {
  @Test(
    "Notations of one moment are that moment",
    arguments: [
      "2015-12-13T09:46:40.5Z", "2015-12-13T09:46:40.5", "2015-12-13 09:46:40.5", "2015-12-13 09:46:40,500",
      "2015-12-13T11:46:40.5+02:00", "2015-12-13T11:46:40.5+0200", "2015-12-13 11:46:40.5 +02",
      "2015-12-13T04:46:40.5-05:00", "2015-12-13t09:46:40.500z", "2015-12-13 09:46:40.5 UTC", "1450000000.5",
      "1450000000500", "1450000000500000", "1450000000500000000", "1450000000,500000000", "1450000000500.0",
      "2015-12-13T09:46:40.500000000999Z", "2015-12-13T15:31:40.5+05:45",
    ])
  func same(text: String) {
    #expect(RecordSelection.Moment(clock: text) == .at(Timestamp(nanoseconds: 1_450_000_000_500_000_000)))
  }

  @Test("Parts that are not given are zero")
  func short() {
    #expect(RecordSelection.Moment(clock: "2015-12-13T09:46") == .at(Timestamp(nanoseconds: 1_449_999_960_000_000_000)))
    #expect(RecordSelection.Moment(clock: "2015-12-13") == .at(Timestamp(nanoseconds: 1_449_964_800_000_000_000)))
    #expect(RecordSelection.Moment(clock: "10:05") == .timeOfDay(36_300_000_000_000))
    #expect(RecordSelection.Moment(clock: "9:05:30.25") == .timeOfDay(32_730_250_000_000))
  }

  @Test(
    "Other text is no time",
    arguments: [
      "", "90", "5", "90s", "14500000", "1450000000.5.1", "1450000000.", ".5", "-1450000000", "2015-12-13T",
      "2015-12-13x10:00",
      "2015-13-13T10:00:00Z", "2015-12-13T10:00:00+24:00", "2015-12-13T10:00:00+2", "2015-12-13T25:00", "10", "10:5",
      "9999999999999999999", "2015-12-13T10:00:00+02:00Z",
    ])
  func none(text: String) {
    #expect(RecordSelection.Moment(clock: text) == nil)
  }
}
