/// A condition on a result, as `send_lag_p99<5ms`, `rejected_rate<0.001` or `accepted_per_s>100k`.
public struct Threshold: Sendable, Equatable {
  public enum Comparison: String, Sendable {
    case less = "<"
    case atMost = "<="
    case more = ">"
    case atLeast = ">="
  }

  /// As it was written.
  public var expression: String
  public var name: String
  public var comparison: Comparison
  /// In the unit of the name: durations in microseconds.
  public var bound: Double

  /// Why an expression is none.
  public struct SyntaxError: Error, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// Names that can be asked for, and what they are.
  public static let names: [String: @Sendable (RunResult) -> Double] = {
    var names: [String: @Sendable (RunResult) -> Double] = [
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
    let histograms: [(String, @Sendable (RunResult) -> LatencyHistogram)] = [
      ("send_lag", { $0.latency.sendLagUs }), ("error", { $0.latency.errorMs }),
      ("drain", { $0.latency.drainMs }), ("recover", { $0.latency.recoverMs }),
      ("tls_handshake", { $0.latency.tlsHandshakeMs }), ("tls_resumed", { $0.latency.tlsResumedMs }),
      ("tcp_connect", { $0.latency.tcpConnectMs }),
      ("loss_window", { $0.lossWindow }),
    ]
    for (name, histogram) in histograms {
      for (suffix, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        names["\(name)_\(suffix)"] = { Double(histogram($0).quantile(quantile)) }
      }
      names["\(name)_max"] = { Double(histogram($0).maximum) }
    }
    return names
  }()

  private static func share(_ part: Int, _ whole: Int) -> Double { whole == 0 ? 0 : Double(part) / Double(whole) }

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
        description: "'\(name)' is nothing that is measured: \(Self.names.keys.sorted().joined(separator: ", "))")
    }
    guard let bound = Self.number(String(rest)), let comparison = Comparison(rawValue: symbol) else {
      throw SyntaxError(description: "'\(rest)' is no number; 5ms, 0.1%, 100k and 1e-4 are")
    }
    self.bound = bound
    self.comparison = comparison
    self.expression = expression
  }

  public func judge(_ result: RunResult) -> RunResult.Verdict.Threshold {
    let value = Self.names[name].map { $0(result) } ?? 0
    let passed =
      switch comparison {
      case .less: value < bound
      case .atMost: value <= bound
      case .more: value > bound
      case .atLeast: value >= bound
      }
    return .init(expression: expression, value: value, passed: passed)
  }

  private static func number(_ text: String) -> Double? {
    let units: [(String, Double)] = [
      ("us", 1), ("ms", 1e3), ("s", 1e6), ("%", 0.01), ("k", 1e3), ("M", 1e6), ("G", 1e9),
    ]
    if let number = Double(text) { return number.isFinite ? number : nil }
    for (unit, factor) in units where text.hasSuffix(unit) {
      if let number = Double(text.dropLast(unit.count)), number.isFinite { return number * factor }
    }
    return nil
  }
}
