import Measurement

/// Something that happened during a load, for a log that is read while the load runs.
public struct LoadEvent: Sendable, Equatable {
  /// What happened. Connections are numbered as in the result's timeline; attempts of each from 1.
  public enum Kind: Sendable, Equatable {
    /// A phase of the run has begun.
    case phase(RunPhase)
    /// A stage of the schedule has begun; its number is from 1.
    case stage(Int, Schedule.Stage)
    /// A connection is open; under TLS its handshake is complete. An attempt after the first is a reconnect.
    case connected(Int, attempt: Int, isResumed: Bool)
    case connectFailed(Int, attempt: Int, reason: String)
    case closed(Int, attempt: Int, ConnectionEnd)
    /// The gateway has answered with an error; `notification` is the number in the stream of the one that is named,
    /// `nil` when it is not known.
    case errorResponse(Int, status: UInt8, notification: UInt64?)
    /// The gateway has sent something that is no error response.
    case foreignAnswer(Int, reason: String)
    /// The load did not run for this time, which `seconds` and `time` are the beginning of.
    case stall(milliseconds: Double)
    /// So many events of each name were left out.
    case leftOut([String: Int])
  }

  public var kind: Kind
  /// Seconds since the start of the run.
  public var seconds: Double
  /// Nanoseconds since 1970-01-01 UTC.
  public var time: Int64

  /// The event's name in a log.
  public var name: String { kind.name }
}

extension LoadEvent.Kind {
  var name: String {
    switch self {
    case .phase: "phase"
    case .stage: "stage"
    case .connected: "connected"
    case .connectFailed: "connect_failed"
    case .closed: "closed"
    case .errorResponse: "error_response"
    case .foreignAnswer: "foreign_answer"
    case .stall: "stall"
    case .leftOut: "left_out"
    }
  }
}

/// The events of one event loop until they are taken.
///
/// Only connections that open or end, and error responses, are events: nothing is done for a notification. Between two
/// times of taking, a few milliseconds, at most `limit` are kept; the others are counted by name.
struct LoopEvents {
  private let limit: Int
  private var waiting: [(at: Int64, kind: LoadEvent.Kind)] = []
  private var leftOut: [String: Int] = [:]

  init(limit: Int) { self.limit = limit }

  /// - Parameter now: nanoseconds of the monotonic clock.
  mutating func note(_ kind: LoadEvent.Kind, at now: Int64) {
    if waiting.count < limit { waiting.append((now, kind)) } else { leftOut[kind.name, default: 0] += 1 }
  }

  mutating func take(at now: Int64) -> [(at: Int64, kind: LoadEvent.Kind)] {
    guard !waiting.isEmpty else { return [] }
    if !leftOut.isEmpty { waiting.append((now, .leftOut(leftOut))) }
    defer { (waiting, leftOut) = ([], [:]) }
    return waiting
  }
}

/// Passes the events of all loops on, with those that only the run knows: phases, stages, stalls.
struct EventRecorder {
  private let receive: @Sendable ([LoadEvent]) -> Void
  /// Nanoseconds of the monotonic clock, and since 1970, at the start of the run.
  private let began: Int64
  private let wallBegan: Int64
  private var own: [(at: Int64, kind: LoadEvent.Kind)] = []
  /// The stages that have not begun, with the times when they do.
  private var stages: [(at: Int64, kind: LoadEvent.Kind)] = []
  /// The stalls of the result that were passed on.
  private var stalls = 0

  init(began: Int64, wallBegan: Int64, _ receive: @escaping @Sendable ([LoadEvent]) -> Void) {
    (self.began, self.wallBegan, self.receive) = (began, wallBegan, receive)
  }

  mutating func begin(_ phase: RunPhase, at time: Int64) { own.append((time, .phase(phase))) }

  /// The schedule begins.
  mutating func begin(_ plan: LoadPlan, at time: Int64) {
    // One rate without an end is no stage.
    guard case .scheduled(let schedule, _) = plan.pace, schedule.length.isFinite else { return }
    var seconds = 0.0
    for (index, stage) in schedule.stages.enumerated() {
      stages.append((time + Int64(seconds * 1e9), .stage(index + 1, stage)))
      seconds += stage.length
    }
  }

  /// - Parameter end: the time from which on no stage begins.
  mutating func pass(_ now: Int64, end: Int64) {
    while let next = stages.first, next.at <= now, next.at < end {
      own.append(next)
      stages.removeFirst()
    }
  }

  /// Notes the stalls of the result that are new.
  mutating func note(_ stalls: RunResult.Stalls) {
    for stall in stalls.listed.dropFirst(self.stalls) {
      own.append((began + Int64(stall.tS * 1e9), .stall(milliseconds: stall.ms)))
    }
    self.stalls = stalls.listed.count
  }

  /// Passes on what has happened since the last time, in its order as far as it is known.
  mutating func pass(on events: [(at: Int64, kind: LoadEvent.Kind)]) {
    let all = own + events
    guard !all.isEmpty else { return }
    own = []
    receive(
      all.sorted { $0.at < $1.at }.map { event in
        let since = event.at - began
        return LoadEvent(kind: event.kind, seconds: Double(since) / 1e9, time: wallBegan + since)
      })
  }
}
