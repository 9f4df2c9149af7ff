import Testing

@testable import PacketCapture

/// Times, addresses and link types as records show them.
struct TextFormTests {
  private static let day: Int64 = 86_400_000_000_000

  @Test(
    "Known instants are written as they are known",
    arguments: [
      (0, "1970-01-01T00:00:00.000000000Z"), (1, "1970-01-01T00:00:00.000000001Z"),
      (-1, "1969-12-31T23:59:59.999999999Z"), (-day, "1969-12-31T00:00:00.000000000Z"),
      (1_442_365_323_123_456_789, "2015-09-16T01:02:03.123456789Z"),
      (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
      (951_868_800_000_000_000, "2000-03-01T00:00:00.000000000Z"),
      (1_330_473_600_000_000_000, "2012-02-29T00:00:00.000000000Z"),
      (1_356_998_399_000_000_000, "2012-12-31T23:59:59.000000000Z"),
      (2_147_483_647_000_000_000, "2038-01-19T03:14:07.000000000Z"),
      (2_147_483_648_000_000_000, "2038-01-19T03:14:08.000000000Z"),
      (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
      (4_294_967_296_000_000_000, "2106-02-07T06:28:16.000000000Z"),
      (-2_203_891_200_000_000_000, "1900-03-01T00:00:00.000000000Z"),
      (-2_177_409_600_000_000_000, "1901-01-01T12:00:00.000000000Z"),
      (.max, "2262-04-11T23:47:16.854775807Z"), (.min + 1, "1677-09-21T00:12:43.145224193Z"),
    ] as [(Int64, String)])
  func knownInstants(nanoseconds: Int64, text: String) {
    #expect(TimestampFormatter.text(Timestamp(nanoseconds: nanoseconds)) == text)
  }

  @Test("Every day of four centuries follows the one before") func everyDayOfFourCenturiesFollowsTheOneBefore() {
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    var (year, month, dayOfMonth) = (1_800, 1, 1)
    // 1800-01-01 is 62,091 days before 1970.
    for day in Int64(-62_091)..<(-62_091 + 146_097) {
      let text = TimestampFormatter.text(Timestamp(nanoseconds: day * Self.day))
      let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
      let expected = year * 10_000 + month * 100 + dayOfMonth
      guard Int(text.prefix(10).filter { $0 != "-" }) == expected else {
        Issue.record("day \(day) is \(text), not \(expected)")
        return
      }
      dayOfMonth += 1
      if dayOfMonth > lengths[month - 1] + (month == 2 && isLeap ? 1 : 0) { (month, dayOfMonth) = (month + 1, 1) }
      if month > 12 { (year, month) = (year + 1, 1) }
    }
    #expect(year == 2_200)
  }

  @Test("Differences are known when both times are") func differencesAreKnownWhenBothTimesAre() {
    let (a, b) = (Timestamp(nanoseconds: 5), Timestamp(nanoseconds: 12))
    #expect(b.nanoseconds(since: a) == 7)
    #expect(a.nanoseconds(since: b) == -7)
    #expect(Timestamp.none.nanoseconds(since: a) == nil)
    #expect(a.nanoseconds(since: .none) == nil)
    #expect(Timestamp(nanoseconds: .max).nanoseconds(since: Timestamp(nanoseconds: -2)) == nil)
  }

  /// The forms of RFC 5952.
  @Test(
    "IPv6 addresses are written in their short forms",
    arguments: [
      ([0, 0, 0, 0, 0, 0, 0, 1], "::1"), ([0, 0, 0, 0, 0, 0, 0, 0], "::"), ([0xfe80, 0, 0, 0, 0, 0, 0, 1], "fe80::1"),
      ([0x2001, 0xdb8, 0, 0, 1, 0, 0, 1], "2001:db8::1:0:0:1"),
      ([0x2001, 0xdb8, 0, 1, 1, 1, 1, 1], "2001:db8:0:1:1:1:1:1"),
      ([0x2001, 0, 0, 1, 0, 0, 0, 1], "2001:0:0:1::1"), ([1, 2, 3, 4, 5, 6, 0, 0], "1:2:3:4:5:6::"),
      ([0xabcd, 0, 0, 0, 0, 0, 0, 0], "abcd::"), ([1, 2, 3, 4, 5, 6, 7, 8], "1:2:3:4:5:6:7:8"),
      ([0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0105], "10.0.1.5"),
    ] as [([UInt64], String)])
  func addresses(groups: [UInt64], text: String) {
    let (high, low) = (groups[..<4].reduce(0) { $0 << 16 | $1 }, groups[4...].reduce(0) { $0 << 16 | $1 })
    let address = IPAddress(high: high, low: low)
    #expect("\(address)" == text)
    let port = Endpoint(address: address, port: 2_195)
    #expect("\(port)" == (address.isV4 ? "\(text):2195" : "[\(text)]:2195"))
  }

  @Test("Both directions have the same flow") func bothDirectionsHaveTheSameFlow() {
    let (there, direction) = Flow.of(source: Conversation.client, destination: Conversation.server)
    let (back, backDirection) = Flow.of(source: Conversation.server, destination: Conversation.client)
    #expect(there == back)
    #expect(direction.opposite == backDirection && backDirection.opposite == direction)
  }

  @Test("Sequence numbers go round") func sequenceNumbersGoRound() {
    let last = SequenceNumber(rawValue: .max)
    #expect(last.advanced(by: 1).rawValue == 0)
    #expect(last.advanced(by: 11).distance(from: last) == 11)
    #expect(last.distance(from: last.advanced(by: 11)) == -11)
    #expect(SequenceNumber(rawValue: 0).advanced(by: -1) == last)
    #expect(SequenceNumber(rawValue: 5).advanced(by: (1 << 32) + 2).rawValue == 7)
  }
}
