import Measurement

/// A result of one of the kinds that are compared and followed.
package enum ComparedResult: Sendable {
  case load(RunResult)
  case ledger(Ledger)
}

/// A number that runs are compared and followed by.
package struct RunFigure: Sendable {
  package enum Better: String, Sendable, Codable { case higher, lower, neither }

  package let name: String
  package let unit: Unit
  /// The direction that is an improvement.
  package let better: Better
  /// Whether a comparison leaves it out when it is 0 in all runs, because there are many of its kind.
  package private(set) var isLeftOutAtZero = false
  private let compute: @Sendable (ComparedResult) -> Double?

  /// A figure of loads.
  package init(
    _ name: String, _ unit: Unit, _ better: Better, _ value: @escaping @Sendable (RunResult) -> Double?
  ) {
    (self.name, self.unit, self.better) = (name, unit, better)
    compute = { if case .load(let result) = $0 { value(result) } else { nil } }
  }

  /// A figure of ledgers.
  init(
    ofLedger name: String, _ unit: Unit, _ better: Better, isLeftOutAtZero: Bool = false,
    _ value: @escaping @Sendable (Ledger) -> Double?
  ) {
    (self.name, self.unit, self.better, self.isLeftOutAtZero) = (name, unit, better, isLeftOutAtZero)
    compute = { if case .ledger(let ledger) = $0 { value(ledger) } else { nil } }
  }

  /// `nil` when the run has nothing that it could be of, as an error latency without errors.
  package func value(_ result: ComparedResult) -> Double? { compute(result) }
  package func value(_ result: RunResult) -> Double? { compute(.load(result)) }
  package func value(_ ledger: Ledger) -> Double? { compute(.ledger(ledger)) }

  /// The figure of this name.
  package static func named(_ name: String) -> RunFigure? {
    all.first { $0.name == name } ?? ofLedgers.first { $0.name == name }
  }

  /// The most informative figures of loads, in the order in which they are shown.
  package static let all: [RunFigure] = {
    func quantile(
      _ name: String, _ share: Double, _ unit: Unit, _ histogram: @escaping @Sendable (RunResult) -> LatencyHistogram
    ) -> RunFigure {
      RunFigure(name, unit, .lower) {
        let histogram = histogram($0)
        return histogram.count > 0 ? Double(histogram.quantile(share)) : nil
      }
    }
    func share(_ name: String, _ part: KeyPath<RunResult, Int> & Sendable) -> RunFigure {
      RunFigure(name, .share, .lower) {
        $0.sendings.written > 0 ? Double($0[keyPath: part]) / Double($0.sendings.written) : nil
      }
    }
    return [
      RunFigure("accepted_per_s", .perSecond, .higher) { $0.measuredS > 0 ? $0.rates.acceptedPerS : nil },
      RunFigure("written_per_s", .perSecond, .higher) { $0.measuredS > 0 ? $0.rates.writtenPerS : nil },
      RunFigure("written_bytes_per_s", .bytesPerSecond, .higher) {
        $0.measuredS > 0 ? $0.rates.writtenBytesPerS : nil
      },
      quantile("send_lag_p50", 0.5, .microseconds) { $0.latency.sendLagUs },
      quantile("send_lag_p99", 0.99, .microseconds) { $0.latency.sendLagUs },
      quantile("error_p50", 0.5, .microseconds) { $0.latency.errorUs },
      quantile("error_p99", 0.99, .microseconds) { $0.latency.errorUs },
      quantile("loss_window_p50", 0.5, .count) { $0.binary.lossWindow },
      quantile("loss_window_p99", 0.99, .count) { $0.binary.lossWindow },
      quantile("recover_p50", 0.5, .microseconds) { $0.latency.recoverUs },
      quantile("recover_p99", 0.99, .microseconds) { $0.latency.recoverUs },
      quantile("drain_p99", 0.99, .microseconds) { $0.latency.drainUs },
      quantile("tls_handshake_p50", 0.5, .microseconds) { $0.ofWholeRun(\.tlsHandshakeUs) },
      quantile("tls_resumed_p50", 0.5, .microseconds) { $0.ofWholeRun(\.tlsResumedUs) },
      share("rejected_rate", \.sendings.rejected),
      share("resent_rate", \.sendings.resent),
      RunFigure("per_write_mean", .count, .neither) {
        $0.batches.notifications.count > 0 ? $0.batches.notifications.mean : nil
      },
      RunFigure("cpu_per_notification", .microseconds, .lower) {
        $0.sendings.written > 0
          ? ($0.resources.cpuUserS + $0.resources.cpuSystemS) * 1e6 / Double($0.sendings.written) : nil
      },
      RunFigure("max_rss_bytes", .bytes, .lower) {
        $0.resources.maxRssBytes > 0 ? Double($0.resources.maxRssBytes) : nil
      },
      quantile("loop_lag_p99", 0.99, .microseconds) { $0.resources.loopLagUs },
    ]
  }()
}
