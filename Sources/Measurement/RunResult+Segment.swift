/// The facts of one run that a merged result keeps.
extension RunResult {
  /// One run of a merged result.
  public struct Segment: Sendable, Equatable, Codable {
    /// The most that are listed.
    package static let maximumListed = 100_000
    /// The most warnings of one.
    static let maximumWarnings = 20

    /// The part of the stream, as in a plan: `2/4`.
    public var segment: String
    public var host: String
    /// The run's labels; absent without any.
    public var labels: [String: String]?
    /// The time of the start in UTC, RFC 3339, by the machine's own clock.
    public var started: String
    /// Seconds from the planned to the actual start; absent without a planned one.
    public var lateS: Double?
    /// Seconds by which the machine's clock is ahead of the gateway's, as the gateway's books of the same connections
    /// tell; absent if they do not.
    public var clockOffsetS: Double?
    /// When the measured phase began, in seconds since 1970 by the machine's own clock; absent if there was none.
    public var measuredFromS: Double?
    /// The length of the measured phase.
    public var measuredS: Double
    /// Notifications handed to the transport, in the whole run.
    public var written: Int
    /// The part of `written` that is proven accepted.
    public var accepted: Int
    /// Written in the measured phase, per second of it; absent without one.
    public var writtenPerS: Double?
    /// Of the measured phase; absent if nothing was due in it.
    public var sendLagP99Us: Int?
    /// Processor time per second of the run.
    public var cpuCores: Double?
    public var limitedBy: Verdict.Limit
    /// Absent in documents that lack an outcome.
    public var outcome: Verdict.Outcome?
    /// Absent if the run completed.
    public var interrupted: Interruption?
    /// The run's own warnings, at most 20; without reasons for its outcome that more segments may change.
    public var warnings: [String]

    /// That of a run which is not merged, or of a merged result that does not list its runs.
    init(_ result: RunResult) {
      if case .text(let text)? = result.plan["segment"] { segment = text } else { segment = "1/1" }
      host = (result.environment.hosts ?? [result.environment.host]).joined(separator: ", ")
      (labels, started, lateS) = (result.labels, result.started, result.start?.lateS)
      (measuredS, written, accepted) = (result.measuredS, result.sendings.written, result.sendings.accepted)
      measuredFromS = result.measuredSpan.fromS
      writtenPerS = result.measuredS > 0 ? result.rates.writtenPerS : nil
      let lag = result.latency.sendLagUs
      sendLagP99Us = lag.count > 0 ? lag.quantile(0.99) : nil
      let length = result.phases.reduce(0) { $0 + $1.seconds }
      let cpu = result.resources.cpuUserS + result.resources.cpuSystemS
      cpuCores = length > 0 ? finite(cpu / length) : nil
      (limitedBy, outcome) = (result.verdict.limitedBy, result.verdict.outcome)
      interrupted = result.interrupted
      warnings = Array(
        result.warnings.filter { !RunResult.isJoinedWarning($0) }.prefix(Self.maximumWarnings))
    }

    /// The number of the segment, for its place in lists.
    package var number: Int { Segments(segment)?.numbers.keys.min() ?? .max }
  }
}

extension RunResult.Segment: Comparable {
  /// By segment, then by start, host and counts.
  public static func < (a: Self, b: Self) -> Bool {
    let (x, y) = (a.number, b.number)
    return (x, a.segment, a.started, a.host, a.written, a.accepted)
      < (y, b.segment, b.started, b.host, b.written, b.accepted)
  }
}
