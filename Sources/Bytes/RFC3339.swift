/// Times in UTC as RFC 3339 writes them: `2015-09-16T01:02:03.123456789Z`.
///
/// They are UNIX times, which have no leap seconds, in the proleptic Gregorian calendar.
@usableFromInline package enum RFC3339 {
  /// - Parameters:
  ///   - nanoseconds: nanoseconds since 1970; negative before.
  ///   - digits: the digits of the second's fraction, 0 to 9; further ones are cut off.
  package static func text(_ nanoseconds: Int64, digits: Int = 9) -> String {
    var output = ByteWriter(capacity: 64)
    output.write(rfc3339: nanoseconds, digits: digits)
    return String(decoding: Array(copying: output.bytes), as: UTF8.self)
  }

  /// The whole seconds before a time, and the nanoseconds since them.
  @inlinable @inline(__always)
  package static func parts(of nanoseconds: Int64) -> (seconds: Int64, nanoseconds: Int64) {
    let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return remainder < 0 ? (quotient - 1, remainder + 1_000_000_000) : (quotient, remainder)
  }

  /// UNIX nanoseconds of a time from 1970 to 2261; `nil` for anything else.
  package static func nanoseconds(_ text: RawSpan) -> Int64? {
    parse(text, through: 2261).map { $0.seconds * 1_000_000_000 + $0.nanoseconds }
  }

  /// UNIX seconds of a time from 1970 to 9999, and the nanoseconds since them; `nil` for anything else.
  ///
  /// The second may have a fraction of up to nine digits. Second 60 counts as the following second.
  package static func parse(_ text: RawSpan) -> (seconds: Int64, nanoseconds: Int64)? { parse(text, through: 9999) }

  private static func parse(_ text: RawSpan, through lastYear: Int64) -> (seconds: Int64, nanoseconds: Int64)? {
    guard (20...30).contains(text.byteCount), text.byte(at: text.byteCount - 1) == UInt8(ascii: "Z") else { return nil }
    for (offset, byte) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")] as [(Int, Unicode.Scalar)]
    where text.byte(at: offset) != UInt8(ascii: byte) { return nil }
    guard let year = digits(text, 0..<4), let month = digits(text, 5..<7), let day = digits(text, 8..<10),
      let hour = digits(text, 11..<13), let minute = digits(text, 14..<16), let second = digits(text, 17..<19),
      (1970...lastYear).contains(year), (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
      second < 61
    else { return nil }
    var fraction: Int64 = 0
    if text.byteCount > 20 {
      guard text.byteCount > 21, text.byte(at: 19) == UInt8(ascii: "."),
        let digits = digits(text, 20..<text.byteCount - 1)
      else { return nil }
      fraction = digits
      for _ in text.byteCount - 21..<9 { fraction *= 10 }
    }
    return (((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second, fraction)
  }

  private static func digits(_ text: RawSpan, _ range: Range<Int>) -> Int64? {
    var value: Int64 = 0
    for offset in range {
      let digit = text.byte(at: offset) &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }

  // MARK: the calendar

  /// The days from 1 March of year 0 to 1970. Years that begin in March have their leap day last.
  private static let daysBefore1970: Int64 = 719_468

  /// The days from 1970 to a date after it.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let year = month > 2 ? year : year - 1
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return 365 * year + year / 4 - year / 100 + year / 400 + dayOfYear - daysBefore1970
  }

  /// The date that many days after 1970-01-01, or before it.
  static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + daysBefore1970
    // Every 400 years have the same number of leap days.
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (
      year: era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month: month,
      day: dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    )
  }
}

extension ByteWriter {
  /// Writes UNIX nanoseconds as `2015-09-16T01:02:03.123456789Z`.
  ///
  /// - Parameter digits: the digits of the second's fraction, 0 to 9; further ones are cut off.
  package mutating func write(rfc3339 nanoseconds: Int64, digits: Int = 9) {
    precondition((0...9).contains(digits))
    let (seconds, rest) = RFC3339.parts(of: nanoseconds)
    write(rfc3339Second: seconds)
    if digits > 0 {
      var fraction = UInt32(rest)
      for _ in digits..<9 { fraction /= 10 }
      write(UInt8(ascii: "."))
      write(decimal: fraction, width: digits)
    }
    write(UInt8(ascii: "Z"))
  }

  /// Writes a UNIX second as `2015-09-16T01:02:03`, for writers that keep the text of the last one.
  ///
  /// - Parameter seconds: UNIX seconds within the range of 64-bit nanoseconds.
  package mutating func write(rfc3339Second seconds: Int64) {
    let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: 86_400)
    let (days, secondOfDay) = remainder < 0 ? (quotient - 1, remainder + 86_400) : (quotient, remainder)
    let date = RFC3339.date(days)
    func put(_ value: Int64, _ width: Int) { write(decimal: UInt32(value), width: width) }
    put(date.year, 4)
    write(UInt8(ascii: "-"))
    put(date.month, 2)
    write(UInt8(ascii: "-"))
    put(date.day, 2)
    write(UInt8(ascii: "T"))
    put(secondOfDay / 3_600, 2)
    write(UInt8(ascii: ":"))
    put(secondOfDay / 60 % 60, 2)
    write(UInt8(ascii: ":"))
    put(secondOfDay % 60, 2)
  }
}
