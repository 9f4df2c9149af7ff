import Measurement

/// The time of day at which the schedule of a run begins, so that runs on several machines begin together.
public struct PlannedStart: Sendable, Equatable {
  /// The end, or the delayed beginning, of a run that is late.
  public enum Late: String, Sendable, CaseIterable {
    /// It sends nothing and ends.
    case fail
    /// It begins at once: notifications that were due before are not sent, but counted as skipped.
    case skip
  }

  /// UNIX nanoseconds UTC.
  public var time: Int64
  public var late: Late

  /// - Parameters:
  ///   - time: UNIX nanoseconds UTC.
  ///   - late: what becomes of the run if its connections are made too late.
  public init(at time: Int64, late: Late = .fail) { (self.time, self.late) = (time, late) }

  /// How late a run may begin before it is late. It sends what was due meanwhile at once.
  package static let tolerance = LoadPlan.lateness
  /// How late a run may wake that was ready in time: a busy machine is late by tenths of a second, and what was due
  /// meanwhile is sent. Later, its process was stopped, or its clock was set.
  package static let tolerableDelay = Duration.seconds(1)
}

/// When the schedule of a run began.
struct ActualStart: Sendable, Equatable {
  /// UNIX nanoseconds UTC.
  var time: Int64
  /// The system's clock at that time; `nil` where the system tells nothing of it.
  var clock: SystemClockState?
}

extension LoadOutcome {
  /// `nil` without a planned start.
  var startResult: RunResult.Start? {
    guard let planned = plan.start else { return nil }
    var start = RunResult.Start()
    start.planned = rfc3339(planned.time)
    guard let actual = actualStart else { return start }
    start.actual = rfc3339(actual.time)
    start.lateS = max(0, Double(actual.time - planned.time) / 1e9)
    start.missed = tally.missed
    start.clockSynchronised = actual.clock?.isSynchronised
    start.clockErrorS = actual.clock?.maximumErrorS
    return start
  }

  /// A clock that is not synchronised begins a run at another time than planned, whatever the run says.
  var startWarning: String? {
    guard plan.start != nil, actualStart?.clock?.isSynchronised == false else { return nil }
    return
      "the system says that its clock is not synchronised: the planned start may have been another time than on other machines"
  }
}

/// When a schedule and its run begin: nanoseconds of the monotonic clock.
struct Beginning: Sendable, Equatable {
  /// The start of the schedule.
  var schedule: Int64
  /// The start of the run: that of the schedule, or later.
  var run: Int64
  /// Whether the run sends nothing that was due before.
  var leavesOut = false

  init(_ time: Int64) { (schedule, run) = (time, time) }

  init(schedule: Int64, run: Int64, leavesOut: Bool) {
    (self.schedule, self.run, self.leavesOut) = (schedule, run, leavesOut)
  }
}
