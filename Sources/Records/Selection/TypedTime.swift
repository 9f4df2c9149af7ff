import Bytes

/// Notations of times that people type, or paste from other programs.
enum TypedTime {
  /// A number since 1970 as `tshark -t e`, `date +%s` and logs write it; its size determines the unit. Numbers before
  /// 1973 are rejected, so that no number of seconds within a recording is mistaken for a time.
  static func sinceEpoch(_ text: String) -> Int64? {
    let parts = text.split(omittingEmptySubsequences: false) { $0 == "." || $0 == "," }
    guard parts.count <= 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
      let whole = Int64(parts[0])
    else { return nil }
    let unit: Int64
    switch parts[0].utf8.count {
    case 9...10: unit = 1_000_000_000
    case 12...13: unit = 1_000_000
    case 15...16: unit = 1_000
    case 18...19: unit = 1
    default: return nil
    }
    let (nanoseconds, overflow) = whole.multipliedReportingOverflow(by: unit)
    guard !overflow else { return nil }
    guard parts.count == 2 else { return nanoseconds }
    // Digits below a nanosecond are cut off.
    var (fraction, size): (Int64, Int64) = (0, unit)
    for digit in parts[1].utf8 {
      size /= 10
      fraction += Int64(digit & 15) * size
    }
    let (sum, isTooLate) = nanoseconds.addingReportingOverflow(fraction)
    return isTooLate ? nil : sum
  }

  /// A date, optionally with a time of day after a T or spaces, and optionally with an offset from UTC.
  static func dated(_ text: String) -> Int64? {
    let date = text.prefix(10)
    guard text.utf8.count >= 10, date.utf8.count == 10 else { return nil }
    var clock = text.dropFirst(10)
    if clock.isEmpty { return nanoseconds(date: date, clock: "00:00") }
    guard let separator = clock.first, "Tt _".contains(separator) else { return nil }
    clock = clock.drop { $0 == separator }
    guard let (end, minutes) = offset(clock) else { return nil }
    guard let local = nanoseconds(date: date, clock: clock[..<end]) else { return nil }
    let (time, overflow) = local.subtractingReportingOverflow(Int64(minutes) * 60_000_000_000)
    return overflow ? nil : time
  }

  /// The index at which the offset after a time of day begins, and its minutes east of UTC; 0 without an offset.
  private static func offset(_ clock: Substring) -> (start: Substring.Index, minutes: Int)? {
    for name in ["Z", "z", " UTC", " GMT", " Z"] where clock.hasSuffix(name) {
      return (clock.index(clock.endIndex, offsetBy: -name.count), 0)
    }
    // U+2212 is a minus sign, too.
    guard let sign = clock.lastIndex(where: { "+-\u{2212}".contains($0) }) else { return (clock.endIndex, 0) }
    let digits = clock[sign...].dropFirst().filter { $0 != ":" }
    guard digits.count == 2 || digits.count == 4, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Int(digits)
    else { return nil }
    let (hours, minutes) = digits.count == 2 ? (number, 0) : (number / 100, number % 100)
    guard hours <= 23, minutes <= 59 else { return nil }
    let east = hours * 60 + minutes
    var start = sign
    while start > clock.startIndex, clock[clock.index(before: start)] == " " { start = clock.index(before: start) }
    return (start, clock[sign] == "+" ? east : -east)
  }

  /// UNIX nanoseconds of a date and a time of day in UTC, with or without seconds and their fraction.
  static func nanoseconds(date: some StringProtocol, clock: some StringProtocol) -> Int64? {
    var clock = String(clock).replacing(",", with: ".")
    if clock.hasSuffix("Z") { clock.removeLast() }
    if clock.utf8.count(where: { $0 == UInt8(ascii: ":") }) == 1 { clock += ":00" }
    // RFC 3339 has neither hours of one digit nor digits below a nanosecond.
    if clock.dropFirst().first == ":" { clock = "0" + clock }
    if clock.utf8.count > 18, clock.dropFirst(18).utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      clock = String(clock.prefix(18))
    }
    return RFC3339.nanoseconds(Array("\(date)T\(clock)Z".utf8).rawBytes)
  }
}
