import Bytes

/// The time of a packet: nanoseconds since 1970-01-01 UTC, or no time for sources without a clock.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// The nanoseconds; `Int64.min` means "no time". The years 1678 to 2262 can be represented; other times saturate.
  public var nanoseconds: Int64

  /// Makes a time.
  ///
  /// - Parameter nanoseconds: nanoseconds since 1970-01-01 UTC.
  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// No time, as in dumps and in simple packet blocks of pcapng.
  public static let none = Timestamp(nanoseconds: .min)
  /// Whether there is a time.
  @inlinable public var isKnown: Bool { nanoseconds != .min }

  @inlinable public static func < (a: Timestamp, b: Timestamp) -> Bool { a.nanoseconds < b.nanoseconds }

  /// The nanoseconds from `earlier` to this time; `nil` if either is unknown, or the difference exceeds 64 bits.
  public func nanoseconds(since earlier: Timestamp) -> Int64? {
    guard isKnown && earlier.isKnown else { return nil }
    let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
    return overflow ? nil : difference
  }

  /// A time from seconds since 1970-01-01 UTC; saturates.
  package init(unixSeconds: Int) { self = Self.from(seconds: Int64(unixSeconds), ticks: 0, ticksPerSecond: 1) }

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

/// Writes times in RFC 3339 format in UTC with nanoseconds: `2015-09-16T01:02:03.123456789Z`.
///
/// It caches the text of the last second, because consecutive packets of a capture share it.
package struct TimestampFormatter: Sendable {
  private var second: Int64 = .min
  private var text: [UInt8] = []

  package init() {}

  package mutating func write(_ time: Timestamp, into output: inout ByteWriter) {
    let (seconds, fraction) = RFC3339.parts(of: time.nanoseconds)
    if seconds != second || text.isEmpty {
      second = seconds
      text = Self.beginning(seconds)
    }
    output.write(text.rawBytes)
    output.write(decimal: UInt32(fraction), width: 9)
    output.write(UInt8(ascii: "Z"))
  }

  package static func text(_ time: Timestamp) -> String { RFC3339.text(time.nanoseconds) }

  /// The text of a second up to the decimal point.
  private static func beginning(_ seconds: Int64) -> [UInt8] {
    var output = ByteWriter(capacity: 64)
    output.write(rfc3339Second: seconds)
    output.write(UInt8(ascii: "."))
    return Array(copying: output.bytes)
  }
}
