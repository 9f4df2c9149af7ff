import Measurement

/// The counts of one event loop; the tallies of loops are added.
struct LoadTally: Sendable {
  // Distinct notifications, by final fate.
  var generated = 0
  var accepted = 0
  var rejected = 0
  var unknown = 0
  var abandoned = 0
  /// Notifications that were left out because their token is listed.
  var pruned = 0
  /// The part of `pruned` that was written and may have been accepted: the fate of the last sending is unknown.
  var prunedOpen = 0
  /// The part of `abandoned` that was written and may have been accepted: the fate of the last sending is unknown.
  var abandonedOpen = 0
  /// Notifications that were due and not generated, because they would have been late.
  var skipped = 0
  /// The part of `skipped` that was due before a start that was late.
  var missed = 0
  /// Notifications that were due and not generated, because the run ended before a connection had room.
  var unsent = 0

  /// Sendings: every time one was written.
  struct Sendings: Sendable {
    var written = 0
    var resent = 0
    var accepted = 0
    var rejected = 0
    var discarded = 0
    var unknown = 0
    /// Connections that were asked at their end for a proof of everything before, and proofs.
    var proofsAsked = 0
    var proofs = 0
  }
  var sendings = Sendings()
  /// Only of loads that poll the feedback service.
  var listed = Listed()
  var writtenBytes = 0

  /// Sendings by whether the feedback service had listed their token.
  struct Listed: Sendable {
    /// Sendings that were written to tokens that were listed before.
    var written = 0
    /// Rejections with status 8 of sendings to tokens that were listed before the rejection.
    var rejected = 0
    /// Sendings that these rejections discarded.
    var discarded = 0
    /// Rejections with status 8 of sendings to other tokens.
    var otherRejected = 0
  }
  var errorResponses: [UInt8: Int] = [:]
  /// Error responses that name nothing this connection has sent.
  var unresolvedResponses = 0
  /// Bytes from the gateway that are not an error response.
  var strayBytes = 0
  /// Things that another attempt does not overcome.
  var obstacles = 0
  /// Connections on which the gateway sent something other than an error response.
  var foreignAnswers = 0

  var attempted = 0
  var opened = 0
  var resumed = 0
  var failed = 0
  /// The number of the plan's connections that were opened at any time.
  var everOpened = 0
  /// The number of the plan's connections that were up at any time (`ConnectionLife.standing`).
  var everUp = 0
  /// Connections that the gateway, or the network, ended before they were up.
  var refused = 0
  /// Of these, connections that ended without an error response, and not because of foreign bytes.
  var endedSilently = 0
  /// Of these, connections on which nothing had been written: the gateway did not end them because of a notification.
  var endedUnused = 0
  /// Failed attempts by reason; there are few different reasons.
  private(set) var failures: [String: Int] = [:]
  var closed: [Cause: Int] = [:]
  /// Handshakes by version and cipher suite: "TLS 1.2 ECDHE-ECDSA-AES128-GCM-SHA256".
  var suites: [String: Int] = [:]
  var up = 0

  var flushReasons = FlushReasons()

  typealias Cause = ConnectionEnd
  typealias FlushReason = Measurement.FlushReason

  /// How often for which reason: counted with every write, so without a table.
  struct FlushReasons: Sendable {
    private var full = 0
    private var linger = 0
    private var idle = 0
    private var drain = 0

    subscript(reason: FlushReason) -> Int {
      get {
        switch reason {
        case .full: full
        case .linger: linger
        case .idle: idle
        case .drain: drain
        }
      }
      set {
        switch reason {
        case .full: full = newValue
        case .linger: linger = newValue
        case .idle: idle = newValue
        case .drain: drain = newValue
        }
      }
    }

    /// Batches written.
    var total: Int { full + linger + idle + drain }

    mutating func merge(_ other: FlushReasons, _ combine: (Int, Int) -> Int) {
      for reason in FlushReason.allCases { self[reason] = combine(self[reason], other[reason]) }
    }
  }

  /// Notifications whose fate is unknown: they may have been accepted.
  var open: Int { unknown + abandonedOpen + prunedOpen }

  /// The peer has answered a notification, which proves that it is a gateway.
  var hasProof: Bool { accepted > 0 || rejected > 0 || sendings.proofs > 0 || !errorResponses.isEmpty }

  static var counters: [WritableKeyPath<LoadTally, Int>] {
    [
      \.generated, \.accepted, \.rejected, \.unknown, \.abandoned, \.abandonedOpen, \.pruned, \.prunedOpen, \.skipped,
      \.missed,
      \.unsent, \.listed.written, \.listed.rejected, \.listed.discarded, \.listed.otherRejected,
      \.sendings.written, \.sendings.resent,
      \.sendings.accepted, \.sendings.rejected, \.sendings.discarded, \.sendings.unknown, \.sendings.proofsAsked,
      \.sendings.proofs,
      \.writtenBytes, \.unresolvedResponses, \.strayBytes, \.obstacles, \.foreignAnswers, \.attempted, \.opened,
      \.resumed,
      \.failed, \.everOpened, \.everUp, \.refused, \.endedSilently, \.endedUnused, \.up,
    ]
  }

  /// Maximum number of distinct reasons.
  private static let maximumReasons = 16

  /// An attempt to connect has failed.
  mutating func countFailure(_ reason: String) {
    failed += 1
    let isKnown = failures[reason] != nil || failures.count < Self.maximumReasons
    failures[isKnown ? reason : "other reasons", default: 0] += 1
  }

  /// Subtracts failures that were counted earlier.
  mutating func subtractFailures(_ earlier: [String: Int]) {
    failures.merge(earlier) { $0 - $1 }
    failures = failures.filter { $0.value > 0 }
  }

  static func += (sum: inout LoadTally, other: LoadTally) {
    for path in counters { sum[keyPath: path] += other[keyPath: path] }
    sum.errorResponses.merge(other.errorResponses, uniquingKeysWith: +)
    sum.closed.merge(other.closed, uniquingKeysWith: +)
    sum.suites.merge(other.suites, uniquingKeysWith: +)
    sum.failures.merge(other.failures, uniquingKeysWith: +)
    sum.flushReasons.merge(other.flushReasons, +)
  }
}

/// The measurements of one event loop.
struct LoadMeasurements: Sendable {
  var latency = RunResult.Latency.recording
  var batchNotifications = LatencyHistogram(.count)
  var batchBytes = LatencyHistogram(.bytes)
  var lossWindow = LatencyHistogram(.count)
  var loopLag = LatencyHistogram(.microseconds)

  mutating func merge(_ other: LoadMeasurements) {
    latency.merge(other.latency)
    for path in [
      \.batchNotifications, \.batchBytes, \.lossWindow, \.loopLag,
    ] as [WritableKeyPath<LoadMeasurements, LatencyHistogram>] {
      self[keyPath: path].merge(other[keyPath: path])
    }
  }
}
