import Glibc
import Measurement

/// A whole number with thousands separated: 4,608,727.
package func grouped(_ value: Int) -> String { GroupedNumber.text(value) }

/// Counts with their names, the highest first: `1,200 closed, 7 reset`.
package func listed(_ counts: [String: Int]) -> String {
  counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\(grouped($0.value)) \($0.key)" }
    .joined(separator: ", ")
}

func grouped(_ value: Double) -> String {
  guard abs(value) < 9e15 else { return "\(value)" }
  return grouped(Int(value.rounded()))
}

/// A count with its noun: "1 connection", "1,000 connections".
package func counted(_ count: Int, _ noun: String) -> String {
  "\(grouped(count)) \(noun)\(count == 1 ? "" : "s")"
}

/// The value with at most this many significant digits, without trailing zeros: 1.25, 0.004, 12,300.
func significant(_ value: Double, _ digits: Int) -> String {
  guard value.isFinite, value != 0 else { return "0" }
  let exponent = Int(floor(log10(abs(value))))
  guard exponent > -9 else { return "\(value)" }
  return decimal(value, max(0, digits - 1 - exponent))
}

/// The value with at most this many decimals, without trailing zeros.
func decimal(_ value: Double, _ places: Int) -> String {
  guard value.isFinite, abs(value) < 9e15 else { return "\(value)" }
  let places = min(max(places, 0), 12)
  let factor = pow(10, Double(places))
  guard places > 0, abs(value) * factor < 9e15 else { return grouped(value) }
  let scaled = Int((abs(value) * factor).rounded())
  var fraction = String(scaled % Int(factor))
  fraction = String(repeating: "0", count: places - fraction.count) + fraction
  while fraction.last == "0" { fraction.removeLast() }
  let whole = grouped(scaled / Int(factor))
  return (value < 0 && scaled > 0 ? "-" : "") + (fraction.isEmpty ? whole : "\(whole).\(fraction)")
}

/// The value with exactly this many decimals.
package func fixed(_ value: Double, _ places: Int) -> String {
  let factor = (0..<places).reduce(1.0) { factor, _ in factor * 10 }
  guard value.isFinite, abs(value) * factor < 9e15 else { return "\(value)" }
  let scaled = Int((abs(value) * factor).rounded())
  let fraction = String(scaled % Int(factor))
  let sign = value < 0 && scaled > 0 ? "-" : ""
  return places == 0
    ? "\(sign)\(scaled)"
    : "\(sign)\(scaled / Int(factor)).\(String(repeating: "0", count: places - fraction.count))\(fraction)"
}

/// A time with one decimal in a fitting unit: 1.0 s, 2.5 min. `Unit.seconds` omits zeros.
package func span(_ seconds: Double) -> String {
  switch seconds {
  case ..<0.001: "\(fixed(seconds * 1e6, 0)) µs"
  case ..<1: "\(fixed(seconds * 1e3, 1)) ms"
  case ..<120: "\(fixed(seconds, 1)) s"
  case ..<7_200: "\(fixed(seconds / 60, 1)) min"
  case ..<172_800: "\(fixed(seconds / 3_600, 1)) h"
  default: "\(fixed(seconds / 86_400, 1)) d"
  }
}

/// Seconds to a tenth, however many they are: 0.0 s, 86400.0 s.
package func tenths(_ seconds: Double) -> String { "\((seconds * 10).rounded() / 10) s" }
