import BinaryProtocol
import PushModel

/// The binary protocol on one connection: notifications in batches, error responses that settle all notifications
/// before the named one, and a marker at the end, which causes an error response.
struct BinarySending: SendingProtocol {
  static let markerIdentifier: UInt32 = 0xffff_ffff
  static let markerFrame = BinaryFrame.knownBadFrame(identifier: markerIdentifier)

  private enum Marker {
    case none
    case written(position: Int, at: Int64)
    case answered
  }

  let limits: SendingLimits
  private let frames: BinaryFrames
  private var session: BinarySession
  private var answers = GatewayAnswers()
  private var marker = Marker.none

  init(_ limits: SendingLimits, _ frames: BinaryFrames, session: BinarySession) {
    (self.limits, self.frames, self.session) = (limits, frames, session)
  }

  mutating func collect(
    _ piece: SentLog.Piece, into batch: inout ConnectionBatch, room: Int, now: Int64, due: (_ taken: Int) -> DueTimes
  ) -> Int {
    guard frames.numbers.places == nil, !frames.workload.hasTimes else {
      return collectOutOfLine(piece, into: &batch, room: room, now: now, due: due)
    }
    let (workload, part, parts) = (frames.workload, frames.numbers.first, frames.numbers.step)
    let isOnlyLong = frames.isOnlyLong
    return batch.collect(
      piece, room: room, now: now,
      encode: { offset, bytes in
        let number = workload.number(of: (piece.index + offset) * parts + part)
        return (fault: workload.encode(number, into: &bytes), identifier: Workload.identifier(of: number))
      },
      keep: { session.write($0.fault, identifier: $0.identifier, isOnlyLong: isOnlyLong) }, due: due)
  }

  /// Out of line, so that runs without topics, whose numbers are evenly spaced, and without times in payloads pay nothing
  /// for it.
  @inline(never)
  private mutating func collectOutOfLine(
    _ piece: SentLog.Piece, into batch: inout ConnectionBatch, room: Int, now: Int64, due: (_ taken: Int) -> DueTimes
  ) -> Int {
    let (workload, numbers, isOnlyLong) = (frames.workload, frames.numbers, frames.isOnlyLong)
    var starts: [Int] = []
    let taken = batch.collect(
      piece, room: room, now: now,
      encode: { offset, bytes in
        let start = bytes.count
        let number = workload.number(of: numbers.number(piece.index + offset))
        return (
          fault: workload.encode(number, into: &bytes), identifier: Workload.identifier(of: number), start: start
        )
      },
      keep: {
        session.write($0.fault, identifier: $0.identifier, isOnlyLong: isOnlyLong)
        if workload.hasTimes { starts.append($0.start) }
      }, due: due)
    batch.noteStarts(starts)
    return taken
  }

  mutating func receive(_ bytes: [UInt8]?, written: Int, at now: Int64) -> [SendingAnswer] {
    let said = if let bytes { answers.receive(bytes) } else { answers.finish().map { [$0] } ?? [] }
    return said.map { answer in
      switch answer {
      case .response(let response): apply(response, written, now)
      case .foreign(let bytes): .foreign(bytes)
      case .stray(let count): .stray(count)
      }
    }
  }

  private mutating func apply(_ response: ErrorResponse, _ written: Int, _ now: Int64) -> SendingAnswer {
    let settledBefore = settledEnd(written)
    // The session also contains notifications that are collected and not yet written.
    let position = session.receive(response, sent: written + (hasMarker ? 1 : 0)).notification
    if case .written(let markerPosition, let markedAt) = marker, position == markerPosition {
      marker = .answered
      return .proven(before: markerPosition, afterNanoseconds: now - markedAt)
    }
    var result = SendingResponse(rejection: .status(response.status))
    if response.status != .noError { result.ends = response.status == .shutdown ? .shutdown : .rejected }
    guard let position, position < written else { return .response(result) }
    result.position = position
    if result.ends != nil { result.lossWindow = written - max(settledBefore, position + 1) }
    return .response(result)
  }

  private var hasMarker: Bool { if case .none = marker { false } else { true } }
  private var isProven: Bool { if case .answered = marker { true } else { false } }
  /// Everything before is accepted or rejected.
  private func settledEnd(_ written: Int) -> Int { min(session.settled, written) }

  func settlement(of positions: Range<Int>) -> [FateRun] {
    let end = max(positions.lowerBound, min(session.settled, positions.upperBound))
    let settled = positions.lowerBound..<end
    let rejected = session.rejected(before: settled.upperBound) - session.rejected(before: settled.lowerBound)
    let rest = settled.upperBound..<positions.upperBound
    return [
      FateRun(fate: .accepted, count: settled.count - rejected, positions: settled),
      FateRun(fate: .rejected, count: rejected, positions: settled),
      FateRun(fate: readiness.isDecided ? .discarded : .unknown, count: rest.count, positions: rest),
    ].filter { $0.count > 0 }
  }

  /// A marker settles what was written; without markers it stays open.
  mutating func close(written: Int, isProofNeeded isNeeded: Bool, at now: Int64) -> CloseAction {
    guard settledEnd(written) < written || isNeeded && limits.canProve else { return .close }
    guard limits.canProve else { return .endOutput }
    marker = .written(position: session.write(identifier: Self.markerIdentifier, isKnownBad: true), at: now)
    return .ask(Self.markerFrame)
  }

  var readiness: SendingReadiness { SendingReadiness(room: .max, isDecided: session.isTerminated || isProven) }
}

/// What all connections of a loop send: their share of the stream.
struct BinaryFrames {
  let workload: Workload
  let numbers: LoopNumbers
  /// Whether all payloads that are not too long on purpose are as short as every gateway accepts.
  let isOnlyLong: Bool

  init(_ workload: Workload, _ numbers: LoopNumbers = LoopNumbers()) {
    (self.workload, self.numbers) = (workload, numbers)
    isOnlyLong = workload.hasUsualPayloadSizes
  }
}

extension BinarySending {
  /// What makes the connections of a loop.
  static func maker(_ plan: LoadPlan, _ frames: BinaryFrames) -> () -> BinarySending {
    let limits = SendingLimits(
      notifications: max(1, plan.connections.notifications ?? .max), canProve: plan.usesMarkers,
      patience: plan.markerTimeout.nanoseconds)
    let session = makeSession(plan, frames.workload)
    return { BinarySending(limits, frames, session: session) }
  }

  /// A connection's rules. Of the identifiers the latest runs are kept, of about 32 bytes each: with several
  /// connections each write is one run, and together they take no more than the logs. Responses never name older ones,
  /// because fewer writes are in flight.
  private static func makeSession(_ plan: LoadPlan, _ workload: Workload) -> BinarySession {
    let runs = min(32_768, max(2_048, plan.unsettledMemoryOfConnection / 32))
    var session = BinarySession(maximumIdentifierRuns: runs)
    if workload.hasBadTokenSizes { session.noteOddTokens() }
    return session
  }
}

extension BinarySession {
  /// Notes a notification that is being collected. Some gateways refuse a faulty notification before they have parsed
  /// its identifier, and answer 0; so the session needs to know which notifications are faulty.
  ///
  /// - Parameter isOnlyLong: whether no other payload is longer than every gateway accepts.
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
