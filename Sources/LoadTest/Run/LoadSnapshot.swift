import Measurement

/// The counts of a running load since its start.
///
/// Notifications are settled when their connection ends or an error response arrives, so `accepted` lags behind
/// `written`.
public struct LoadSnapshot: Sendable {
  /// The name of a `RunPhase`; empty before the run, `over` after it.
  public internal(set) var phase = ""
  /// Distinct notifications by fate.
  public internal(set) var notifications = RunResult.Notifications()
  /// Sendings by fate: a notification that is resent counts several times.
  public internal(set) var sendings = RunResult.Sendings()
  /// Attempts to connect, by outcome.
  public internal(set) var connections = RunResult.Connections()
  /// Plaintext bytes written.
  public internal(set) var writtenBytes = 0
  /// Notifications that were not sent because they would have been late.
  public internal(set) var skipped = 0
  /// Error responses by status.
  public internal(set) var errorResponses: [String: Int] = [:]
  /// Notifications that were left out because the feedback service has listed their token; 0 without polls.
  public internal(set) var pruned = 0
  /// The polls of the feedback service; `nil` without any.
  public internal(set) var feedback: RunResult.Feedback?
  /// Connections that are up now.
  public internal(set) var connectionsUp = 0
  /// The 99th percentile of the send lag in the last whole second, in microseconds.
  public internal(set) var sendLag99 = 0
  /// All latencies of the run, of all phases, up to a second ago.
  package var latencies = LatencyBuckets()

  package static let phases = RunPhase.allCases.map(\.rawValue) + [over]
  static let over = "over"

  init() {}

  init(_ tally: LoadTally, phase: String, sendLag99: Int, _ latencies: LatencyBuckets, _ polls: FeedbackBooks? = nil) {
    self.phase = phase
    notifications = tally.notifications
    sendings = tally.sendings.result
    connections = tally.connections
    writtenBytes = tally.writtenBytes
    skipped = tally.skipped
    errorResponses = tally.errors
    connectionsUp = tally.up
    pruned = tally.pruned
    // Whether it prunes is the plan's, and no count.
    feedback = polls.map { .init($0, tally, prunes: true) }
    self.sendLag99 = sendLag99
    self.latencies = latencies
  }
}
