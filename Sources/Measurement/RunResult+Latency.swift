extension RunResult {
  /// The run's latencies. Histograms hold microseconds, whatever their unit in JSON is.
  ///
  /// A new histogram needs a property, its name in JSON, and a line of `histograms`: reading, writing, merging and
  /// thresholds use that list.
  public struct Latency: Sendable, Equatable {
    /// Time from due to written: of notifications written in the phase, and of those due in the last scheduled phase
    /// that were written after its end, or abandoned without being sent (`schedule`).
    public var sendLagUs = LatencyHistogram(.microseconds)
    /// The part of each send lag in which the generator did not poll or stalled, and the rest, in which it waited for a
    /// writable connection; `nil` in older documents.
    public var sendLagOwnUs: LatencyHistogram?
    public var sendLagGatewayUs: LatencyHistogram?
    /// Time from the writing of a rejected notification to its error response.
    public var errorUs = LatencyHistogram(.milliseconds)
    /// Time from the writing of a marker to its error response.
    public var drainUs = LatencyHistogram(.milliseconds)
    /// Time from an error response until its connection is up again and writes.
    public var recoverUs = LatencyHistogram(.milliseconds)
    /// Time from SYN to SYN-ACK.
    public var tcpConnectUs = LatencyHistogram(.milliseconds)
    /// Full handshakes; documents without `tls_resumed_ms` count resumed ones here, too.
    public var tlsHandshakeUs = LatencyHistogram(.milliseconds)
    /// Handshakes that resumed a session.
    public var tlsResumedUs = LatencyHistogram(.milliseconds)

    package init() {}

    enum CodingKeys: String, CodingKey, CaseIterable {
      case sendLagUs, sendLagOwnUs, sendLagGatewayUs
      case errorUs = "errorMs"
      case drainUs = "drainMs"
      case recoverUs = "recoverMs"
      case tcpConnectUs = "tcpConnectMs"
      case tlsHandshakeUs = "tlsHandshakeMs"
      case tlsResumedUs = "tlsResumedMs"
    }

    /// The properties of one histogram.
    struct Histogram: Sendable {
      /// The histogram's property, and how it is read from documents older than it.
      enum Place: Sendable {
        /// All documents have it.
        case always(WritableKeyPath<Latency, LatencyHistogram> & Sendable)
        /// Older documents are read as if it were empty.
        case emptyBefore(WritableKeyPath<Latency, LatencyHistogram> & Sendable)
        /// In older documents it is `nil`.
        case absentBefore(WritableKeyPath<Latency, LatencyHistogram?> & Sendable, LatencyHistogram.Unit)
      }

      var key: CodingKeys
      var place: Place
      /// The name in thresholds; `nil` if thresholds cannot use it.
      var metric: String?
      /// Thresholds and figures use the histogram of all phases: connections are mostly made before the measured phase.
      var isOfWholeRun: Bool

      init(_ key: CodingKeys, _ place: Place, metric: String? = nil, isOfWholeRun: Bool = false) {
        (self.key, self.place, self.metric, self.isOfWholeRun) = (key, place, metric, isOfWholeRun)
      }
    }

    static let histograms: [Histogram] = [
      Histogram(.sendLagUs, .always(\.sendLagUs), metric: "send_lag"),
      Histogram(.sendLagOwnUs, .absentBefore(\.sendLagOwnUs, .microseconds)),
      Histogram(.sendLagGatewayUs, .absentBefore(\.sendLagGatewayUs, .microseconds)),
      Histogram(.errorUs, .always(\.errorUs), metric: "error"),
      Histogram(.drainUs, .always(\.drainUs), metric: "drain"),
      Histogram(.recoverUs, .always(\.recoverUs), metric: "recover"),
      Histogram(.tcpConnectUs, .always(\.tcpConnectUs), metric: "tcp_connect", isOfWholeRun: true),
      Histogram(.tlsHandshakeUs, .always(\.tlsHandshakeUs), metric: "tls_handshake", isOfWholeRun: true),
      Histogram(.tlsResumedUs, .emptyBefore(\.tlsResumedUs), metric: "tls_resumed", isOfWholeRun: true),
    ]
  }
}

extension RunResult.Latency {
  /// Latencies at a run's beginning: every histogram that is measured today exists and is empty.
  package static let recording: Self = {
    var latency = Self()
    for histogram in histograms {
      if case .absentBefore(let path, let unit) = histogram.place { latency[keyPath: path] = LatencyHistogram(unit) }
    }
    return latency
  }()

  /// Adds another run's values; histograms absent from either are absent from the sum.
  package mutating func merge(_ other: Self) {
    for histogram in Self.histograms {
      switch histogram.place {
      case .always(let path), .emptyBefore(let path): self[keyPath: path].merge(other[keyPath: path])
      case .absentBefore(let path, _):
        if let more = other[keyPath: path] { self[keyPath: path]?.merge(more) } else { self[keyPath: path] = nil }
      }
    }
  }

  func merging(_ other: Self) -> Self {
    var sum = self
    sum.merge(other)
    return sum
  }

  /// Whether every histogram has its expected unit, so that they can be added.
  var hasUnits: Bool {
    let model = Self.recording
    return Self.histograms.allSatisfy { histogram in
      switch histogram.place {
      case .always(let path), .emptyBefore(let path): self[keyPath: path].unit == model[keyPath: path].unit
      case .absentBefore(let path, let unit): self[keyPath: path].map { $0.unit == unit } ?? true
      }
    }
  }
}

extension RunResult.Latency: Codable {
  public init(from decoder: any Decoder) throws {
    self.init()
    let container = try decoder.container(keyedBy: CodingKeys.self)
    for histogram in Self.histograms {
      let key = histogram.key
      switch histogram.place {
      case .always(let path):
        self[keyPath: path] = try container.decode(LatencyHistogram.self, forKey: key)
      case .emptyBefore(let path):
        if let stored = try container.decodeIfPresent(LatencyHistogram.self, forKey: key) {
          self[keyPath: path] = stored
        }
      case .absentBefore(let path, _):
        self[keyPath: path] = try container.decodeIfPresent(LatencyHistogram.self, forKey: key)
      }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for histogram in Self.histograms {
      switch histogram.place {
      case .always(let path), .emptyBefore(let path): try container.encode(self[keyPath: path], forKey: histogram.key)
      case .absentBefore(let path, _): try container.encodeIfPresent(self[keyPath: path], forKey: histogram.key)
      }
    }
  }
}

extension RunResult {
  /// The histograms that thresholds can ask for.
  static let metrics: [(name: String, of: @Sendable (RunResult) -> LatencyHistogram)] = {
    var metrics: [(name: String, of: @Sendable (RunResult) -> LatencyHistogram)] = []
    for histogram in Latency.histograms {
      if let name = histogram.metric { metrics.append((name, { histogram.value(in: $0) })) }
    }
    metrics.append(("loss_window", { $0.binary.lossWindow }))
    return metrics
  }()

  /// The names of the metrics that cover the measured phase.
  static let metricsOfMeasuredPhase =
    Latency.histograms.filter { !$0.isOfWholeRun }.compactMap(\.metric) + ["loss_window"]
}

extension RunResult.Latency.Histogram {
  /// The histogram in a result; empty if the result lacks it.
  fileprivate func value(in result: RunResult) -> LatencyHistogram {
    switch place {
    case .always(let path), .emptyBefore(let path):
      isOfWholeRun ? result.ofWholeRun(path) : result.latency[keyPath: path]
    case .absentBefore(let path, let unit): result.latency[keyPath: path] ?? LatencyHistogram(unit)
    }
  }
}
