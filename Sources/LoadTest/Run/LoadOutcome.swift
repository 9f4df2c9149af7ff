import Measurement

/// The counts and measurements of a run and each of its phases.
public struct LoadOutcome: Sendable {
  /// Why a run ended early.
  public enum GivingUp: Sendable, Equatable {
    /// No connection could be made within the time that the plan allows. `lastError` is `nil` if no attempt failed.
    case lost(lastError: String?)
    /// Within the time that the plan allows, the gateway closed each of `opened` connections before it had settled
    /// anything.
    case useless(opened: Int)
    /// An obstacle that no further attempt would overcome.
    case permanentFailure(String)
  }

  /// The counts and measurements of a phase of the run.
  public struct Phase: Sendable {
    public internal(set) var phase: RunPhase
    /// The length of the phase in seconds.
    public var seconds: Double
    /// Nanoseconds of the monotonic clock.
    var end: Int64 = 0
    /// Seconds of user and system time of this process.
    var cpu = 0.0
    /// Seconds for which the event loops could have run and had no processor, all together.
    var waited = 0.0
    /// Counts of this phase alone.
    var tally = LoadTally()
    var measurements = LoadMeasurements()
    /// Seconds from its end until the last thing was settled that was written in it.
    var settledAfter = 0.0

    init(_ phase: RunPhase, seconds: Double) { (self.phase, self.seconds) = (phase, seconds) }
  }

  /// The plan of the run.
  public let plan: LoadPlan
  /// The time of the start: UTC, RFC 3339.
  public internal(set) var started = ""
  /// Why the run was ended early; `nil` when it was complete, or was interrupted.
  public internal(set) var givenUp: GivingUp?
  /// Why the last connection failed or was lost, in the system's words; `nil` when no connection failed.
  public internal(set) var lastError: String?
  /// The phase in which the run was interrupted; `nil` when it was not.
  public internal(set) var interruption: RunResult.Interruption?
  /// `nil` without a planned start, or when the run ended before.
  var actualStart: ActualStart?
  package internal(set) var usesTLS = true
  package internal(set) var processor = (user: 0.0, system: 0.0)
  /// The maximum number of resident bytes of this process.
  package internal(set) var maximumMemory = 0
  /// The phases that have begun, in order.
  public var phases: [Phase] = []
  /// Counts about once a second.
  public var series: [RunResult.Sample] = []
  /// The spans of connections.
  public var timeline = RunResult.Timeline()
  /// Each topic of the plan, in its order; empty without topics.
  var topics: [Topic]
  var stalls = RunResult.Stalls()
  /// `nil` when the feedback service is not polled, or the schedule has not begun.
  var feedback: FeedbackBooks?
  /// `nil` until the schedule has begun.
  var bins: RunResult.Bins?

  /// What loops of a topic were to send, and what became of it in the whole run.
  struct Topic: Sendable {
    let name: String
    /// The share of all notifications.
    let share: Double
    let connections: Int
    var tally = LoadTally()
  }

  /// - Parameter shares: those of all loops.
  init(plan: LoadPlan, shares: [LoopShare] = []) {
    self.plan = plan
    topics = plan.topics.enumerated().map { place, name in
      let loops = shares.filter { $0.topic == place }
      return Topic(
        name: name, share: loops.reduce(0) { $0 + $1.numbers.share },
        connections: loops.reduce(0) { $0 + $1.connections.count })
    }
  }

  /// Counts of the whole run.
  var tally: LoadTally { phases.reduce(into: LoadTally()) { $0 += $1.tally } }

  /// The outcome of a phase; `nil` if the run ended before it.
  func phase(_ phase: RunPhase) -> Phase? { phases.first { $0.phase == phase } }
}
