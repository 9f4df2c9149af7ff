import Bytes

/// A condition on a metric, such as `send_lag_p99<5ms`, `rejected_rate<0.001` or `accepted>=1000`: its grammar.
public struct Condition: Sendable, Equatable {
  /// How the value is compared with the bound.
  public enum Comparison: String, Sendable {
    case less = "<"
    case atMost = "<="
    case more = ">"
    case atLeast = ">="
    case equal = "="

    /// Whether a value has this relation to a bound.
    package func holds(_ value: Double, _ bound: Double) -> Bool {
      switch self {
      case .less: value < bound
      case .atMost: value <= bound
      case .more: value > bound
      case .atLeast: value >= bound
      case .equal: value == bound
      }
    }
  }

  /// The reason why an expression is invalid.
  public struct SyntaxError: Error, Sendable, CustomStringConvertible {
    /// A sentence with the expression.
    public let description: String
    package init(description: String) { self.description = description }
  }

  /// The expression as written by the user.
  public let expression: String
  /// The name of the metric.
  public let name: String
  /// How the value is compared with the bound.
  public let comparison: Comparison
  /// The bound in the unit of the metric; times in microseconds.
  public let bound: Double

  /// Parses a condition: a metric, `<`, `<=`, `>`, `>=` or `=`, and a bound. Spaces are ignored.
  ///
  /// - Parameters:
  ///   - names: the metrics.
  ///   - quantity: the quantity of a metric, which determines the units of its bound.
  /// - Throws: a `SyntaxError` for an unknown metric (with a list of all), or a bound that does not fit it.
  package init(
    _ expression: String, of names: some Sequence<String>, quantity: (String) -> Quantity
  ) throws(SyntaxError) {
    let text = expression.filter { $0 != " " }
    let signs: Set<Character> = ["<", ">", "="]
    guard let sign = text.firstIndex(where: signs.contains) else {
      throw SyntaxError(description: "'\(expression)' has no <, > or =")
    }
    var rest = text[text.index(after: sign)...]
    var symbol = String(text[sign])
    if symbol != "=", rest.hasPrefix("=") {
      symbol += "="
      rest = rest.dropFirst()
    }
    let name = String(text[..<sign])
    guard names.contains(name) else {
      throw SyntaxError(
        description: "unknown metric '\(name)'; available: \(names.sorted().joined(separator: ", "))")
    }
    if rest.contains(where: signs.contains) {
      throw SyntaxError(
        description: "'\(expression)' is more than one condition; give each as a separate argument")
    }
    guard let comparison = Comparison(rawValue: symbol) else {
      throw SyntaxError(description: "'\(expression)' has no <, > or =")
    }
    let quantity = quantity(name)
    if comparison == .equal, quantity != .count {
      throw SyntaxError(description: "'\(expression)': = is for counts; this takes < or >")
    }
    bound = try quantity.bound(rest, in: expression)
    (self.expression, self.name, self.comparison) = (expression, name, comparison)
  }

  /// The quantity of a metric, which determines the units of its bound.
  package enum Quantity: Sendable {
    // Times are in microseconds.
    case time, share, bytes, rate, count

    private var examples: String {
      switch self {
      case .time: "a time such as 500us, 5ms or 2s"
      case .share: "a share such as 0.1% or 1e-4"
      case .bytes: "bytes such as 1000000 or 64MiB"
      case .rate: "a rate such as 500, 100k or 1.5M"
      case .count: "a count such as 0, 500 or 10k"
      }
    }

    fileprivate func bound(_ text: Substring, in expression: String) throws(SyntaxError) -> Double {
      if let number = number(text) { return number }
      let hasNumber = text.first.map { $0.isNumber || "+-.".contains($0) } ?? false
      let lack = Double(text)?.isFinite == true ? "has no unit" : hasNumber ? "is not one" : "is not a number"
      throw SyntaxError(description: "'\(expression)' takes \(examples); '\(text)' \(lack)")
    }

    private func number(_ text: Substring) -> Double? {
      var text = text
      // The suffix "/s" of a rate is optional.
      if text.hasSuffix("/s"), self == .rate || self == .bytes { text = text.dropLast(2) }
      // A 0 needs no unit; any other time does.
      if let number = Double(text) { return number.isFinite && (self != .time || number == 0) ? number : nil }
      return withUnit(text).flatMap { $0.isFinite ? $0 : nil }
    }

    private func withUnit(_ text: Substring) -> Double? {
      func scaled(_ parts: (number: String, size: Double)?) -> Double? {
        parts.flatMap { parts in Double(parts.number).map { $0 * parts.size } }
      }
      switch self {
      case .time:
        // In microseconds.
        return scaled(Units.times.split(text).map { ($0.number, $0.size / 1e3) })
      case .share: return Units.share(text)
      case .bytes: return scaled(Units.sizes.split(text) ?? Units.counts.split(text))
      case .rate, .count: return scaled(Units.counts.split(text))
      }
    }
  }
}
