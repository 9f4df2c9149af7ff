extension RunResult {
  /// How long things took. Histograms hold microseconds, in whatever unit JSON has them.
  ///
  /// A new histogram needs a property, its name in JSON, and a line of `histograms`: reading, writing, merging and
  /// thresholds use that list.
  public struct Latency: Sendable, Equatable {
    /// From when each was due until it was written: of those written in the phase, and of those due in the last
    /// scheduled phase and written after its end, or never (`schedule`), then until abandoned.
    public var sendLagUs = LatencyHistogram(.microseconds)
    /// The part of each send lag in which the generator did not poll or stalled, and the rest, in which it waited for a
    /// writable connection; `nil` in older documents.
    public var sendLagOwnUs: LatencyHistogram?
    public var sendLagGatewayUs: LatencyHistogram?
    public var errorUs = LatencyHistogram(.milliseconds)
    public var drainUs = LatencyHistogram(.milliseconds)
    public var recoverUs = LatencyHistogram(.milliseconds)
    public var tcpConnectUs = LatencyHistogram(.milliseconds)
    /// Full handshakes; documents from before `tls_resumed_ms` have all of them here.
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

    /// One of the histograms.
    struct Histogram: Sendable {
      /// Where it is, and what documents have that are from before it was measured.
      enum Place: Sendable {
        /// Every document has it.
        case always(WritableKeyPath<Latency, LatencyHistogram> & Sendable)
        /// They are read as if it were empty.
        case emptyBefore(WritableKeyPath<Latency, LatencyHistogram> & Sendable)
        /// It is `nil`.
        case absentBefore(WritableKeyPath<Latency, LatencyHistogram?> & Sendable, LatencyHistogram.Unit)
      }

      var key: CodingKeys
      var place: Place
      /// Its name in thresholds; `nil` when they cannot ask for it.
      var metric: String?
      /// Thresholds and figures take it of all phases: connections are mostly made before the measured one.
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
  /// For a run that begins: all that is measured today is there, and empty.
  package static let recording: Self = {
    var latency = Self()
    for histogram in histograms {
      if case .absentBefore(let path, let unit) = histogram.place { latency[keyPath: path] = LatencyHistogram(unit) }
    }
    return latency
  }()

  /// Adds the values of another one; values absent from either are absent from the sum.
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

  /// Every histogram is in its unit, so that they can be added.
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
        if let told = try container.decodeIfPresent(LatencyHistogram.self, forKey: key) { self[keyPath: path] = told }
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
    metrics.append(("loss_window", { $0.lossWindow }))
    return metrics
  }()

  /// The names of those that are of the measured phase.
  static let metricsOfMeasuredPhase =
    Latency.histograms.filter { !$0.isOfWholeRun }.compactMap(\.metric) + ["loss_window"]
}

extension RunResult.Latency.Histogram {
  /// It in a result; empty where that does not tell.
  fileprivate func value(in result: RunResult) -> LatencyHistogram {
    switch place {
    case .always(let path), .emptyBefore(let path):
      isOfWholeRun ? result.ofWholeRun(path) : result.latency[keyPath: path]
    case .absentBefore(let path, let unit): result.latency[keyPath: path] ?? LatencyHistogram(unit)
    }
  }
}
