import Foundation
import TestSupport
import Testing

@testable import Bytes

@Suite("Times as RFC 3339 writes them")
struct RFC3339Tests {
  private func nanoseconds(_ text: String) -> Int64? { RFC3339.nanoseconds(Array(text.utf8).rawBytes) }

  @Test(
    "Known times are written as they are known",
    arguments: [
      (0, "1970-01-01T00:00:00.000000000Z"), (-1, "1969-12-31T23:59:59.999999999Z"),
      (1_442_365_323_123_456_789, "2015-09-16T01:02:03.123456789Z"),
      (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
      (-2_203_891_200_000_000_000, "1900-03-01T00:00:00.000000000Z"),
      (.max, "2262-04-11T23:47:16.854775807Z"), (.min, "1677-09-21T00:12:43.145224192Z"),
    ] as [(Int64, String)])
  func known(time: Int64, text: String) { #expect(RFC3339.text(time) == text) }

  @Test("Digits that are not wanted are cut off, and nothing is rounded", arguments: 0...9)
  func digits(count: Int) {
    let times: [(Int64, String)] = [
      (0, "000000000"), (999_999_999, "999999999"), (-1, "999999999"), (123_456_789, "123456789"),
    ]
    for (time, fraction) in times {
      let second = time < 0 ? "1969-12-31T23:59:59" : "1970-01-01T00:00:00"
      let expected = second + (count == 0 ? "" : "." + fraction.prefix(count)) + "Z"
      #expect(RFC3339.text(time, digits: count) == expected)
    }
  }

  @Test("Dates are those of the system's calendar", arguments: 1...4 as ClosedRange<UInt64>)
  func calendar(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let seconds = Int64.random(in: .min / 1_000_000_000 + 1 ... .max / 1_000_000_000, using: &random)
      var (time, parts) = unsafe (time_t(seconds), tm())
      unsafe gmtime_r(&time, &parts)
      let numbers = unsafe [
        parts.tm_year + 1_900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
      ]
      let texts = RFC3339.text(seconds * 1_000_000_000, digits: 0).split { "-T:Z".contains($0) }
      #expect(texts.map { Int32($0) } == numbers)
    }
  }

  @Test("A time that is written is read as itself", arguments: 1...4 as ClosedRange<UInt64>)
  func roundTrip(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<1_000 {
      let time = Int64.random(in: 0..<9_214_646_400_000_000_000, using: &random)
      #expect(nanoseconds(RFC3339.text(time)) == time)
      #expect(nanoseconds(RFC3339.text(time, digits: 0)) == time - time % 1_000_000_000)
      #expect(nanoseconds(RFC3339.text(time, digits: 3)) == time - time % 1_000_000)
    }
  }

  @Test("Times are read to the nanosecond, of every day")
  func read() {
    #expect(nanoseconds("1970-01-01T00:00:00Z") == 0)
    #expect(nanoseconds("2000-02-29T00:00:00.5Z") == 951_782_400_500_000_000)
    #expect(nanoseconds("2026-11-21T09:22:33.000000001Z") == 1_795_252_953_000_000_001)
    #expect(nanoseconds("2261-12-31T23:59:60.999999999Z") == 9_214_646_400_999_999_999)
    // A leap second is the one after it.
    #expect(nanoseconds("2016-12-31T23:59:60Z") == nanoseconds("2017-01-01T00:00:00Z"))
  }

  @Test(
    "Other texts are no times",
    arguments: [
      "", "Z", "2026-11-21T09:22:33", "2026-11-21 09:22:33Z", "2026-13-21T09:22:33Z", "2026-00-21T09:22:33Z",
      "2026-11-00T09:22:33Z", "2026-11-32T09:22:33Z", "2026-11-21T24:22:33Z", "2026-11-21T09:60:33Z",
      "2026-11-21T09:22:61Z", "2026-11-21T09:22:33.Z", "2026-11-21T09:22:33.1234567890Z", "2026-11-21T09:22:33,5Z",
      "1969-12-31T23:59:59Z", "2026-11-21T09:22:33.5x", "2026-11-21T09:22:33+01Z", "2026-11-21T09:22:3/Z",
      "2026-11-21T09:22:3:Z",
    ])
  func other(text: String) {
    #expect(nanoseconds(text) == nil)
    #expect(RFC3339.parse(Array(text.utf8).rawBytes) == nil)
  }

  @Test("Later years than nanoseconds can count have seconds")
  func laterYears() {
    for text in ["2262-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] { #expect(nanoseconds(text) == nil) }
    let last = RFC3339.parse(Array("9999-12-31T23:59:59.25Z".utf8).rawBytes)
    #expect(last?.seconds == 253_402_300_799 && last?.nanoseconds == 250_000_000)
  }
}
