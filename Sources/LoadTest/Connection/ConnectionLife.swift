import BinaryProtocol
import Measurement

/// The record of one connection from when it is up until it has ended: the writes, the responses, and the fate of each
/// notification.
///
/// It has no socket, clock or event loop: events and their times are passed in. One object per connection; no
/// allocation per notification.
final class ConnectionLife {
  /// Nanoseconds of the monotonic clock, as all times here.
  let openedAt: Int64
  /// The same without the time in which the load itself stood still.
  private let openedAtObserved: Int64
  private(set) var log: SentLog
  private var marks: PhaseMarks
  /// The phase that is on, and the last one in which something became due.
  private var (phase, lastScheduled): (RunPhase, RunPhase)
  private var session: BinarySession
  private var answers = GatewayAnswers()
  private var marker = Marker.none
  /// When the first error response was read that ends the connection.
  private(set) var errorReadAt: Int64?
  /// Why it ends; `nil` before that is known.
  var cause: LoadTally.Cause?

  private enum Marker {
    case none
    case written(position: Int, at: Int64)
    case answered
  }

  /// Something that the gateway has said.
  enum Event {
    /// The marker is answered: everything before it is settled.
    case proven(phase: RunPhase, afterNanoseconds: Int64)
    /// An error response; `named` is the notification it names, `nil` if unknown.
    case response(ErrorResponse.Status, named: Named?)
    case foreign([UInt8])
    case stray(Int)
  }

  struct Named {
    /// In which it was written.
    var phase: RunPhase
    /// From its write until the response was read; `nil` when it was accepted, or the write is too old to be known.
    var latencyNanoseconds: Int64?
    /// How many were written after it, when the response ends the connection.
    var lossWindow: Int?
  }

  /// - Parameter observed: the time of opening without the time in which the load stood still; that of opening if `nil`.
  init(
    openedAt: Int64, observed: Int64? = nil, log: SentLog, session: BinarySession, phase: RunPhase,
    lastScheduled: RunPhase
  ) {
    (self.openedAt, self.log, self.session) = (openedAt, log, session)
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

  /// Lends the session for a whole batch: an object's property is else checked for exclusive access at every use.
  @inline(__always)
  func collecting(_ body: (inout BinarySession) -> Int) -> Int { body(&session) }

  func wrote(_ piece: SentLog.Piece, at now: Int64) { log.append(piece, written: now) }

  /// The marker is written, after everything else.
  func wroteMarker(identifier: UInt32, at now: Int64) {
    marker = .written(position: session.write(identifier: identifier, isKnownBad: true), at: now)
  }

  /// Written and not settled.
  var unsettled: Int { log.count - settledEnd }
  /// Everything before is accepted or rejected.
  private var settledEnd: Int { min(session.settled, log.count) }
  /// The gateway has ended the connection: it discards all unsettled notifications.
  var isTerminated: Bool { session.isTerminated || isProven }
  /// The marker was answered.
  var isProven: Bool { if case .answered = marker { true } else { false } }
  var hasMarker: Bool { if case .none = marker { false } else { true } }
  var isForeign: Bool { answers.isForeign }
  /// It has settled nothing so far.
  var hasSettledNothing: Bool { settledEnd == 0 && !isTerminated }

  // MARK: standing

  /// What the gateway has shown of the connection.
  enum Standing: Equatable {
    /// Nothing yet.
    case open
    /// The gateway has settled a notification on it, has held it for longer than `LoadPlan.settling`, or was still holding
    /// it when the load closed it.
    case up
    /// The gateway, or the network, ended it before that.
    case refused(Refusal)
  }

  enum Refusal: Equatable {
    /// Without an error response, and with nothing written on it.
    case unused
    /// Without an error response, after something was written.
    case silent
    /// With an error response that names no notification of it, or with bytes that are none.
    case answered
  }

  /// - Parameters:
  ///   - now: without the time in which the load stood still: a refusal waits that long to be read.
  ///   - cause: why it has ended; `nil` while it is open.
  func standing(atObserved now: Int64, endedBy cause: LoadTally.Cause?) -> Standing {
    if settledEnd > 0 || isProven || now - openedAtObserved > LoadPlan.settling.nanoseconds { return .up }
    switch cause {
    case nil: return .open
    case .rejected, .shutdown, .peerFin, .peerRst:
      if isOver { return .refused(.answered) }
      return .refused(log.count == 0 && !hasMarker ? .unused : .silent)
    default: return .up
    }
  }

  // MARK: reading

  /// Applies received bytes. Afterwards `isOver` is true if the gateway has ended the connection.
  func receive(_ bytes: some Sequence<UInt8>, at now: Int64) -> [Event] {
    answers.receive(bytes).map { event($0, now) }
  }

  /// Applies an incomplete answer at the end of the connection.
  func finishReading(at now: Int64) -> Event? { answers.finish().map { event($0, now) } }

  /// The gateway has ended it, or has said something that no gateway says.
  private(set) var isOver = false

  private func event(_ answer: GatewayAnswers.Answer, _ now: Int64) -> Event {
    switch answer {
    case .response(let response): return apply(response, now)
    case .foreign(let bytes):
      isOver = true
      return .foreign(bytes)
    case .stray(let count): return .stray(count)
    }
  }

  private func apply(_ response: ErrorResponse, _ now: Int64) -> Event {
    let settledBefore = settledEnd
    // The session knows those that are still being collected, too.
    let position = session.receive(response, sent: log.count + (hasMarker ? 1 : 0)).notification
    if case .written(let markerPosition, let written) = marker, position == markerPosition {
      marker = .answered
      isOver = true
      return .proven(phase: phase(ofMarkerAt: markerPosition), afterNanoseconds: now - written)
    }
    let isLast = response.status != .noError
    if isLast {
      cause = response.status == .shutdown ? .shutdown : .rejected
      isOver = true
    }
    guard let position, position < log.count else { return .response(response.status, named: nil) }
    var named = Named(phase: marks.phase(of: position))
    if isLast {
      errorReadAt = errorReadAt ?? now
      if response.status != .shutdown { named.latencyNanoseconds = log.written(at: position).map { now - $0 } }
      named.lossWindow = log.count - max(settledBefore, position + 1)
    }
    return .response(response.status, named: named)
  }

  /// A marker belongs to the phase that it settles: to the last scheduled one, if it proves anything of it, because
  /// sendings due in it are written up to some milliseconds after its end.
  private func phase(ofMarkerAt position: Int) -> RunPhase {
    let phases = marks.counts(of: 0..<position).map(\.phase)
    return phases.contains(lastScheduled) ? lastScheduled : phases.last ?? phase
  }

  // MARK: settlement

  /// The phases of which something is settled, or will now never be looked at.
  var settledPhases: [RunPhase] { marks.counts(of: 0..<(isTerminated ? log.count : settledEnd)).map(\.phase) }

  /// The outcomes of everything that was written.
  struct Settlement {
    struct Settled {
      var phase: RunPhase
      var accepted: Int
      var rejected: Int
    }

    var settled: [Settled]
    /// How many of each phase are not settled.
    var rest: [(phase: RunPhase, count: Int)]
    /// The same as pieces, in the order in which they were written.
    var pieces: [SentLog.Piece]
    /// They are discarded; else nothing tells what became of them.
    var isDiscarded: Bool
    var restCount: Int { rest.reduce(0) { $0 + $1.count } }
  }

  var settlement: Settlement {
    var (settled, position): ([Settlement.Settled], Int) = ([], 0)
    for (phase, count) in marks.counts(of: 0..<settledEnd) {
      let rejected = session.rejected(before: position + count) - session.rejected(before: position)
      settled.append(.init(phase: phase, accepted: count - rejected, rejected: rejected))
      position += count
    }
    return Settlement(
      settled: settled, rest: marks.counts(of: settledEnd..<log.count), pieces: log.pieces(from: settledEnd),
      isDiscarded: isTerminated)
  }
}

extension BinarySession {
  /// Notes a notification that is being collected. Some gateways give up before they come to the identifier of one that
  /// is bad, and answer 0; so the session has to know which ones are.
  ///
  /// - Parameter isOnlyLong: no other payload is longer than what every gateway takes.
  @inline(__always)
  mutating func write(_ fault: WorkloadPlan.Fault?, identifier: UInt32, isOnlyLong: Bool) {
    guard let fault else {
      _ = write(identifier: identifier, isKnownBad: false)
      return
    }
    if fault == .malformed {
      _ = write(malformedWith: identifier)
    } else {
      _ = write(identifier: identifier, isKnownBad: fault == .missingToken)
      if fault == .oversize, isOnlyLong { noteOversize() }
    }
  }
}
