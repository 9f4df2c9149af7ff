import Bytes

/// A condition on a result, such as `send_lag_p99<5ms`, `rejected_rate<0.001` or `accepted_per_s>100k`.
public struct Threshold: Sendable, Equatable {
  /// How the value is compared with the bound.
  public enum Comparison: String, Sendable {
    case less = "<"
    case atMost = "<="
    case more = ">"
    case atLeast = ">="
  }

  /// The expression as written by the user.
  public var expression: String
  /// The name of the metric.
  public var name: String
  /// How the value is compared with the bound.
  public var comparison: Comparison
  /// The bound in the unit of the metric; times in microseconds.
  public var bound: Double

  /// The reason why an expression is invalid.
  public struct SyntaxError: Error, Sendable, CustomStringConvertible {
    /// A sentence with the expression.
    public let description: String
  }

  /// The metrics by name; `nil` when there was nothing to measure, e.g. a latency without a response.
  package static let names: [String: @Sendable (RunResult) -> Double?] = {
    var names: [String: @Sendable (RunResult) -> Double?] = [
      "written_per_s": { $0.rates.writtenPerS },
      "accepted_per_s": { $0.rates.acceptedPerS },
      "written_bytes_per_s": { $0.rates.writtenBytesPerS },
      "rejected_rate": { share($0.sendings.rejected, $0.sendings.written) },
      "discarded_rate": { share($0.sendings.discarded, $0.sendings.written) },
      "resent_rate": { share($0.sendings.resent, $0.sendings.written) },
      "unknown": { Double($0.notifications.unknown) },
      "skipped": { Double($0.schedule.skipped) },
      "unsent": { Double($0.schedule.unsent) },
      "abandoned": { Double($0.notifications.abandoned) },
      "connections_failed": { Double($0.connections.failed) },
      "max_rss_bytes": { Double($0.resources.maxRssBytes) },
    ]
    for (name, histogram) in RunResult.metrics {
      for (suffix, quantile) in quantiles {
        names[name + suffix] = { result in
          let histogram = histogram(result)
          guard histogram.count > 0 else { return nil }
          return Double(histogram.quantile(quantile))
        }
      }
    }
    return names
  }()

  private static func share(_ part: Int, _ whole: Int) -> Double? {
    whole == 0 ? nil : Double(part) / Double(whole)
  }

  /// Parses a condition: a metric, `<`, `<=`, `>` or `>=`, and a bound. Spaces are ignored.
  ///
  /// Times need a unit (`us`, `ms`, `s`), except 0. Rates and counts may have `k`, `M` or `G`, shares `%`, bytes any
  /// unit of size.
  ///
  /// - Throws: a `SyntaxError` for an unknown metric (with a list of all), or a bound that does not fit it.
  public init(_ expression: String) throws(SyntaxError) {
    let text = expression.filter { $0 != " " }
    guard let sign = text.firstIndex(where: { $0 == "<" || $0 == ">" }) else {
      throw SyntaxError(description: "'\(expression)' has no < or >")
    }
    var rest = text[text.index(after: sign)...]
    var symbol = String(text[sign])
    if rest.hasPrefix("=") {
      symbol += "="
      rest = rest.dropFirst()
    }
    name = String(text[..<sign])
    guard Self.names[name] != nil else {
      throw SyntaxError(
        description: "unknown metric '\(name)'; available: \(Self.names.keys.sorted().joined(separator: ", "))")
    }
    if rest.contains(where: { $0 == "<" || $0 == ">" }) {
      throw SyntaxError(
        description:
          "'\(expression)' is more than one condition; give each as a separate argument")
    }
    guard let comparison = Comparison(rawValue: symbol) else {
      throw SyntaxError(description: "'\(expression)' has no < or >")
    }
    let bound = try Quantity(of: name).bound(rest, in: expression)
    self.bound = bound
    self.comparison = comparison
    self.expression = expression
  }

  /// Compares the result with the bound.
  ///
  /// Events that did not occur, such as a recovery without an error, are below every bound. If nothing was measured, or
  /// too many notifications were never sent to prove a short send lag, the condition fails and the verdict has the
  /// reason.
  public func judge(_ result: RunResult) -> RunResult.Verdict.Threshold {
    if let reason = isRate ? result.reasonForNoRates : isOfMeasuredPhase ? result.nothingMeasured : nil {
      return .init(expression: expression, value: nil, passed: false, reason: reason)
    }
    if name.hasPrefix("send_lag_"), result.latency.sendLagUs.count == 0 {
      return .init(expression: expression, value: nil, passed: false, reason: "nothing was due or written")
    }
    if name.hasPrefix("drain_"), result.latency.drainUs.count == 0 {
      return .init(expression: expression, value: nil, passed: false, reason: "no marker was answered")
    }
    let value = Self.names[name].flatMap { $0(result) }
    let compared = value ?? 0
    let passed =
      switch comparison {
      case .less: compared < bound
      case .atMost: compared <= bound
      case .more: compared > bound
      case .atLeast: compared >= bound
      }
    if value == nil, !passed {
      return .init(expression: expression, value: nil, passed: false, reason: "there was none to measure")
    }
    if passed, let reason = reasonForNoUpperBound(result) {
      return .init(expression: expression, value: value, passed: false, reason: reason)
    }
    return .init(expression: expression, value: value, passed: passed)
  }

  /// The reason why a send lag is not proven to be this small: so many notifications were never sent, which would have
  /// had the longest lags, that they reach this quantile.
  private func reasonForNoUpperBound(_ result: RunResult) -> String? {
    guard name.hasPrefix("send_lag_"), comparison == .less || comparison == .atMost else { return nil }
    // Counts of the lag's own phase; unsent notifications were due at its end.
    let skipped = result.measuredBy == nil ? nil : result.phase(.measured)?.skipped
    let never = (skipped ?? result.schedule.skipped) + result.schedule.unsent
    // In documents of 0.1.0 send lag covers only sent notifications.
    let all = result.latency.sendLagUs.count + (result.measuredBy == nil ? never : 0)
    let quantile = Self.quantiles.first { name.hasSuffix($0.suffix) }?.value ?? 1
    guard Double(never) > (1 - quantile) * Double(all) else { return nil }
    return "\(never) of \(all) due notifications were never sent"
  }

  private static let quantiles: [(suffix: String, value: Double)] = [
    ("_p50", 0.5), ("_p90", 0.9), ("_p99", 0.99), ("_p999", 0.999), ("_max", 1.0),
  ]

  /// It cannot be judged if the run did not reach its measured phase.
  private var isOfMeasuredPhase: Bool {
    isRate || RunResult.metricsOfMeasuredPhase.contains { name.hasPrefix("\($0)_") }
  }

  private var isRate: Bool { name.hasSuffix("_per_s") }

  /// The quantity of a metric, which determines the units of its bound.
  private enum Quantity {
    case time, share, bytes, rate, count

    init(of name: String) {
      let isQuantile = Threshold.quantiles.contains { name.hasSuffix($0.suffix) }
      if isQuantile {
        self = name.hasPrefix("loss_window") ? .count : .time
      } else if name.hasSuffix("_rate") {
        self = .share
      } else if name.contains("_bytes") {
        self = .bytes
      } else {
        self = name.hasSuffix("_per_s") ? .rate : .count
      }
    }

    private var examples: String {
      switch self {
      case .time: "a time such as 500us, 5ms or 2s"
      case .share: "a share such as 0.1% or 1e-4"
      case .bytes: "bytes such as 1000000 or 64MiB"
      case .rate: "a rate such as 500, 100k or 1.5M"
      case .count: "a count such as 0, 500 or 10k"
      }
    }

    func bound(_ text: Substring, in expression: String) throws(SyntaxError) -> Double {
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

extension RunResult {
  /// The reason why there are no rates; `nil` if there are, and for documents without phases.
  package var reasonForNoRates: String? {
    merged?.together == false ? "the segments did not run together" : nothingMeasured
  }

  /// The reason why nothing was measured; `nil` if something was.
  fileprivate var nothingMeasured: String? {
    let tells = interrupted != nil || !phases.isEmpty
    return measuredS > 0 || !tells || merged?.together == false ? nil : "nothing was measured"
  }

  /// A latency over all phases: connections are mostly made before the measured one. In documents of 0.1.0 all
  /// latencies are.
  public func ofWholeRun(_ path: KeyPath<Latency, LatencyHistogram>) -> LatencyHistogram {
    guard measuredBy != nil else { return latency[keyPath: path] }
    var whole = LatencyHistogram(latency[keyPath: path].unit)
    for phase in phases {
      if let part = phase.latency?[keyPath: path], part.unit == whole.unit { whole.merge(part) }
    }
    return whole
  }
}
