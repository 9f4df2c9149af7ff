import Measurement
import PushModel

/// The record of one connection from when it is up until it has ended: the writes, the responses, and the fate of each
/// notification.
///
/// The class has no socket, clock or event loop: events and their times are arguments. One object per connection; no
/// allocation per notification. Generic over the protocol, so that calls to the protocol are static.
final class ConnectionLife<Sending: SendingProtocol> {
  /// Nanoseconds of the monotonic clock, as all times here.
  let openedAt: Int64
  /// The same time, without the time in which the load was stalled.
  private let openedAtObserved: Int64
  private(set) var log: SentLog
  private var marks: PhaseMarks
  /// The current phase, and the last one in which notifications became due.
  private var (phase, lastScheduled): (RunPhase, RunPhase)
  private var sending: Sending
  let limits: SendingLimits
  /// Whether a proof was requested from the gateway, and whether it was received.
  private(set) var isAsked = false
  private var isProven = false
  private(set) var isForeign = false
  /// The time at which the first error response that ends the connection was read.
  private(set) var errorReadAt: Int64?
  /// Why the connection ends; `nil` while it is open.
  var cause: LoadTally.Cause?

  /// - Parameter observed: the time of opening without the time in which the load was stalled; `nil`: `openedAt`.
  init(
    openedAt: Int64, observed: Int64? = nil, log: SentLog, sending: Sending, phase: RunPhase,
    lastScheduled: RunPhase
  ) {
    (self.openedAt, self.log, self.sending, limits) = (openedAt, log, sending, sending.limits)
    openedAtObserved = observed ?? openedAt
    (self.phase, self.lastScheduled, marks) = (phase, lastScheduled, PhaseMarks(in: phase))
  }

  // MARK: writing

  /// Later writes belong to this phase.
  func begin(_ phase: RunPhase) {
    self.phase = phase
    if phase != .drain { lastScheduled = phase }
    marks.begin(phase, at: log.count)
  }

  /// Adds as many notifications to the batch as fit, and returns the number.
  ///
  /// - Parameter due: returns the due times of the first `taken` notifications; called only if `taken` is above 0.
  func collect(
    _ piece: SentLog.Piece, into batch: inout ConnectionBatch, now: Int64, due: (_ taken: Int) -> DueTimes
  ) -> Int {
    sending.collect(piece, into: &batch, room: room, now: now, due: due)
  }

  /// The number of notifications that the connection takes before it closes.
  var room: Int { min(limits.notifications - log.count, sending.readiness.room) }
  /// Whether the connection has carried the maximum number of notifications, or its log is full.
  var isSpent: Bool { log.count >= limits.notifications || log.isFull }

  func wrote(_ piece: SentLog.Piece, at now: Int64) { log.append(piece, written: now) }

  /// Nothing else is written on it.
  ///
  /// - Parameter wasUp: the gateway has shown before that it takes the connection.
  func close(as cause: LoadTally.Cause, wasUp: Bool, at now: Int64) -> CloseAction {
    self.cause = cause
    let action = sending.close(written: log.count, isProofNeeded: !wasUp, at: now)
    if case .ask = action { isAsked = true }
    return action
  }

  private func runs(of positions: Range<Int>) -> [FateRun] { sending.settlement(of: positions) }
  /// Written and not settled.
  var unsettled: Int {
    runs(of: 0..<log.count).reduce(0) { $0 + ($1.fate.isSettled ? 0 : $1.count) }
  }
  private var hasSettled: Bool { runs(of: 0..<log.count).contains { $0.fate.isSettled } }
  /// Whether the gateway's responses decide the fates of all notifications on the connection.
  var isDecided: Bool { sending.readiness.isDecided }
  /// Whether the gateway has settled nothing so far.
  var hasSettledNothing: Bool { !hasSettled && !isDecided }

  // MARK: standing

  /// - Parameters:
  ///   - now: the time without the time in which the load was stalled, when a refusal could not be read.
  ///   - cause: why the connection has ended; `nil` while it is open.
  func standing(atObserved now: Int64, endedBy cause: LoadTally.Cause?) -> LifeStanding {
    if hasSettled || isProven || now - openedAtObserved > LoadPlan.settling.nanoseconds { return .up }
    switch cause {
    case nil: return .open
    case .rejected, .shutdown, .peerFin, .peerRst:
      if isOver { return .refused(.answered) }
      return .refused(log.count == 0 && !isAsked ? .unused : .silent)
    default: return .up
    }
  }

  // MARK: reading

  /// Applies received bytes; `nil` is their end. Afterwards `isOver` is true if the gateway has ended the connection.
  func receive(_ bytes: [UInt8]?, at now: Int64) -> [LifeEvent] {
    sending.receive(bytes, written: log.count, at: now).map { event($0, now) }
  }

  /// Whether the gateway has ended the connection, or has sent bytes that are no response.
  private(set) var isOver = false

  private func event(_ answer: SendingAnswer, _ now: Int64) -> LifeEvent {
    switch answer {
    case .proven(let position, let nanoseconds):
      isProven = true
      isOver = true
      return .proven(phase: phase(ofProofOf: position), afterNanoseconds: nanoseconds)
    case .response(let response): return apply(response, now)
    case .foreign(let bytes):
      isOver = true
      isForeign = true
      return .foreign(bytes)
    case .stray(let count): return .stray(count)
    }
  }

  private func apply(_ response: SendingResponse, _ now: Int64) -> LifeEvent {
    if let end = response.ends {
      cause = end
      isOver = true
    }
    guard let position = response.position else { return .response(response.rejection, named: nil) }
    var named = LifeEvent.Named(phase: marks.phase(of: position), lossWindow: response.lossWindow)
    if response.ends == .rejected { named.index = log.pieces(in: position..<position + 1).first?.index }
    if let end = response.ends {
      errorReadAt = errorReadAt ?? now
      if end != .shutdown { named.latencyNanoseconds = log.written(at: position).map { now - $0 } }
    }
    return .response(response.rejection, named: named)
  }

  /// A proof belongs to the phase that it settles: to the last scheduled one, if it proves anything of it, because
  /// sendings due in it are written up to some milliseconds after its end.
  private func phase(ofProofOf end: Int) -> RunPhase {
    let phases = marks.counts(of: 0..<end).map(\.phase)
    return phases.contains(lastScheduled) ? lastScheduled : phases.last ?? phase
  }

  // MARK: settlement

  /// The phases with written notifications whose fate is known.
  var settledPhases: [RunPhase] {
    ranges.filter { runs(of: $0.positions).contains { $0.fate != .unknown } }.map(\.phase)
  }

  /// What was written, by phase.
  private var ranges: [(phase: RunPhase, positions: Range<Int>)] {
    var end = 0
    return marks.counts(of: 0..<log.count).map { phase, count in
      end += count
      return (phase, end - count..<end)
    }
  }

  /// The fates of everything that was written.
  var settlement: LifeSettlement {
    LifeSettlement(
      parts: ranges.flatMap { phase, positions in
        runs(of: positions).map { run in
          LifeSettlement.Part(
            phase: phase, fate: run.fate, count: run.count,
            pieces: run.fate.isSettled ? [] : log.pieces(in: run.positions))
        }
      })
  }
}

extension Fate {
  fileprivate var isSettled: Bool { self == .accepted || self == .rejected }
}
