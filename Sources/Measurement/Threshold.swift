/// A condition on a result, such as `send_lag_p99<5ms`, `rejected_rate<0.001`, `accepted_per_s>100k` or
/// `rejected_rate<1%,abort`.
public struct Threshold: Sendable, Equatable {
  public typealias Comparison = Condition.Comparison
  public typealias SyntaxError = Condition.SyntaxError

  /// The expression as written by the user, without `,abort`.
  public var expression: String
  /// The name of the metric.
  public var name: String
  /// How the value is compared with the bound.
  public var comparison: Comparison
  /// The bound in the unit of the metric; times in microseconds.
  public var bound: Double
  /// Whether a run ends in which it does not hold: `,abort` behind the expression.
  public var aborts: Bool
  /// The argument as written by the user.
  public var argument: String { expression + (aborts ? ",abort" : "") }

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

  /// Parses a condition: a metric, `<`, `<=`, `>`, `>=` or `=`, and a bound. Spaces are ignored.
  ///
  /// Times need a unit (`us`, `ms`, `s`), except 0. Rates and counts may have `k`, `M` or `G`, shares `%`, bytes any
  /// unit of size. With `,abort` behind it a run ends in which it does not hold.
  ///
  /// - Throws: a `SyntaxError` for an unknown metric (with a list of all), or a bound that does not fit it.
  public init(_ argument: String) throws(SyntaxError) {
    let end = argument.lastIndex(of: ",")
    aborts = end.map { argument[$0...].filter { $0 != " " } == ",abort" } ?? false
    let text = aborts ? String(argument[..<(end ?? argument.endIndex)]) : argument
    let condition = try Condition(text, of: Self.names.keys) { Self.quantity(of: $0) }
    (expression, name) = (condition.expression, condition.name)
    (comparison, bound) = (condition.comparison, condition.bound)
  }

  private static func quantity(of name: String) -> Condition.Quantity {
    let isQuantile = quantiles.contains { name.hasSuffix($0.suffix) }
    if isQuantile { return name.hasPrefix("loss_window") ? .count : .time }
    if name.hasSuffix("_rate") { return .share }
    if name.contains("_bytes") { return .bytes }
    return name.hasSuffix("_per_s") ? .rate : .count
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
    let passed = comparison.holds(compared, bound)
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
