/// The progress of a run, for display.
///
/// Rates, send lag and processor time cover the last second.
public struct LoadProgress: Sendable {
  public var phase = RunPhase.connect
  /// Seconds.
  public var elapsed = 0.0
  /// The rate of the schedule; `nil` without a schedule, or after it.
  public var askedPerSecond: Double?
  public var written = 0
  public var writtenPerSecond = 0.0
  public var accepted = 0
  /// Acceptance is proven when a connection ends or is answered, so this comes in leaps.
  public var acceptedPerSecond = 0.0
  public var errors = 0
  /// Notifications that were left out because feedback lists their token; `nil` without polls.
  public var pruned: Int?
  /// Open connections.
  public var connections = 0
  /// The 99th percentile of the send lag, in microseconds.
  public var sendLag99 = 0
  /// Processor time of this process, in cores.
  public var cpu = 0.0

  package init() {}
}
