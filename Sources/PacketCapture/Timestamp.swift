import Bytes

/// When a packet was captured: nanoseconds since 1970-01-01 UTC, or nothing for sources without a clock.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// `Int64.min` stands for "no time"; years 1678–2262 can be told, others saturate.
  public var nanoseconds: Int64

  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Raw dumps and pcapng's simple packet blocks have no time.
  public static let none = Timestamp(nanoseconds: .min)
  @inlinable public var isKnown: Bool { nanoseconds != .min }

  @inlinable public static func < (a: Timestamp, b: Timestamp) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Nanoseconds from `earlier` to this time; `nil` when either is unknown.
  public func nanoseconds(since earlier: Timestamp) -> Int64? {
    guard isKnown && earlier.isKnown else { return nil }
    let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
    return overflow ? nil : difference
  }

  /// A time from whole seconds and a fraction in units of 1/`ticksPerSecond`; a fraction of a second or more carries.
  static func from(seconds: Int64, ticks: UInt64, ticksPerSecond: UInt64) -> Timestamp {
    let (whole, rest) = ticks.quotientAndRemainder(dividingBy: ticksPerSecond)
    let (high, low) = rest.multipliedFullWidth(by: 1_000_000_000)
    let fraction = Int64(ticksPerSecond.dividingFullWidth((high, low)).quotient)
    let (total, overflow) = seconds.addingReportingOverflow(Int64(clamping: whole))
    let (scaled, overflow2) = total.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow3) = scaled.addingReportingOverflow(fraction)
    if overflow || overflow2 || overflow3 { return Timestamp(nanoseconds: total < 0 ? .min + 1 : .max) }
    return Timestamp(nanoseconds: sum)
  }
}

/// Writes times as RFC 3339 UTC with nanoseconds: `2015-09-16T01:02:03.123456789Z`.
///
/// It keeps the text of the last second, because the packets of a capture share it.
public struct TimestampFormatter: Sendable {
  private var second: Int64 = .min
  private var text: [UInt8] = []

  public init() {}

  public mutating func write(_ time: Timestamp, into output: inout ByteWriter) {
    let (quotient, remainder) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let (seconds, fraction) = remainder < 0 ? (quotient - 1, remainder + 1_000_000_000) : (quotient, remainder)
    if seconds != second || text.isEmpty {
      second = seconds
      text = Array(Self.calendar(seconds).utf8)
    }
    output.write(text.rawBytes)
    output.write(decimal: UInt32(fraction), width: 9)
    output.write(UInt8(ascii: "Z"))
  }

  public static func text(_ time: Timestamp) -> String {
    var formatter = TimestampFormatter()
    var output = ByteWriter(capacity: 64)
    formatter.write(time, into: &output)
    return String(decoding: Array(copying: output.bytes), as: UTF8.self)
  }

  /// `YYYY-MM-DDThh:mm:ss.` of a UNIX second in the proleptic Gregorian calendar.
  private static func calendar(_ seconds: Int64) -> String {
    let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: 86_400)
    let (day, rest) = remainder < 0 ? (quotient - 1, remainder + 86_400) : (quotient, remainder)
    // Days since 1 March of year 0, in 400-year eras: leap days then come last in a year.
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func padded(_ value: Int64, _ width: Int) -> String {
      let digits = String(value)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    return padded(year, 4) + "-" + padded(month, 2) + "-" + padded(dayOfMonth, 2) + "T" + padded(rest / 3_600, 2) + ":"
      + padded(rest / 60 % 60, 2) + ":" + padded(rest % 60, 2) + "."
  }
}
