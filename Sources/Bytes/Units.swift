/// The units of numbers: in options, settings and bounds.
package struct Units: Sendable {
  struct Unit: Sendable {
    /// The accepted names; the first one is used for output.
    var names: [String]
    /// The unit's size, in the smallest unit of its kind.
    var size: Int
  }

  private let all: [Unit]

  private init(_ all: [(names: [String], size: Int)]) { self.all = all.map { Unit(names: $0.names, size: $0.size) } }

  /// Units of time, in nanoseconds. A micro sign may be U+00B5 or the Greek letter.
  package static let times = Units([
    (["ns"], 1), (["us", "\u{b5}s", "\u{3bc}s"], 1_000), (["ms"], 1_000_000), (["s"], 1_000_000_000),
    (["m", "min"], 60_000_000_000), (["h"], 3_600_000_000_000), (["d"], 86_400_000_000_000),
  ])

  /// Units of size, in bytes.
  package static let sizes = Units([
    (["B"], 1), (["KB", "kB"], 1_000), (["KiB"], 1 << 10), (["MB"], 1_000_000), (["MiB"], 1 << 20),
    (["GB"], 1_000_000_000), (["GiB"], 1 << 30),
  ])

  /// Thousands, millions and so on.
  package static let counts = Units([(["k", "K"], 1_000), (["M"], 1_000_000), (["G"], 1_000_000_000)])

  /// A share of a whole: `0.01`, `1e-2` or `1%`. The range 0 to 1 is not checked.
  package static func share(_ text: some StringProtocol) -> Double? {
    text.hasSuffix("%") ? Double(text.dropLast()).map { $0 / 100 } : Double(text)
  }

  /// A time such as `250ms`, `2s` or `1m30s` in whole nanoseconds; `nil` for anything else, as for a number without a unit.
  ///
  /// Units go from long to short, each once. It may be more than fits into an `Int64`.
  package static func nanoseconds(_ text: some StringProtocol) -> Double? {
    var rest = Substring(text)
    var (sum, smallest) = (0.0, Double.infinity)
    repeat {
      let number = rest.prefix { $0.isNumber || $0 == "." }
      let name = rest.dropFirst(number.count).prefix { $0.isLetter }
      guard let value = Double(number), value >= 0, let unit = times.size(of: name), unit < smallest else { return nil }
      sum += value * unit
      smallest = unit
      rest = rest.dropFirst(number.count + name.count)
    } while !rest.isEmpty
    return sum.rounded()
  }

  /// The size of the named unit in the smallest unit; `nil` for an unknown name.
  package func size(of name: some StringProtocol) -> Double? {
    all.first { $0.names.contains { $0 == name } }.map { Double($0.size) }
  }

  /// Splits the text into its number and the size of its unit; `nil` for text without a unit.
  package func split(_ text: some StringProtocol) -> (number: String, size: Double)? {
    let names = all.flatMap { unit in unit.names.map { (name: $0, size: unit.size) } }
    // "5ms" ends with "s" too.
    guard let unit = names.filter({ text.hasSuffix($0.name) }).max(by: { $0.name.count < $1.name.count }) else {
      return nil
    }
    return (String(text.dropLast(unit.name.count)), Double(unit.size))
  }

  /// A number of the smallest unit, written in the largest unit of `names` in which it is whole; unchanged if there is
  /// none.
  ///
  /// - Parameter names: units from the largest to the smallest.
  package func text(_ value: Int, in names: [String]) -> String {
    for name in names {
      guard let size = all.first(where: { $0.names.contains(name) })?.size, value % size == 0 else { continue }
      return "\(value / size)\(name)"
    }
    return "\(value)"
  }
}
