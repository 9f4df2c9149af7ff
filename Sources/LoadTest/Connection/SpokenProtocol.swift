/// The protocol of a run's connections, which `LoopRunner` chooses in one place.
///
/// An enum and not an existential, so that its calls are direct. Each call moves the value out and back, so that none of
/// its arrays is copied.
enum SpokenProtocol: SendingProtocol {
  case binary(BinarySending)

  mutating func collect(
    _ piece: SentLog.Piece, into batch: inout ConnectionBatch, room: Int, now: Int64, due: (_ taken: Int) -> DueTimes
  ) -> Int {
    switch consume self {
    case .binary(var sending):
      defer { self = .binary(sending) }
      return sending.collect(piece, into: &batch, room: room, now: now, due: due)
    }
  }

  mutating func receive(_ bytes: [UInt8]?, written: Int, at now: Int64) -> [SendingAnswer] {
    switch consume self {
    case .binary(var sending):
      defer { self = .binary(sending) }
      return sending.receive(bytes, written: written, at: now)
    }
  }

  func settlement(of positions: Range<Int>) -> [FateRun] {
    switch self {
    case .binary(let sending): sending.settlement(of: positions)
    }
  }

  mutating func close(written: Int, isProofNeeded isNeeded: Bool, at now: Int64) -> CloseAction {
    switch consume self {
    case .binary(var sending):
      defer { self = .binary(sending) }
      return sending.close(written: written, isProofNeeded: isNeeded, at: now)
    }
  }

  var readiness: SendingReadiness {
    switch self {
    case .binary(let sending): sending.readiness
    }
  }

  var limits: SendingLimits {
    switch self {
    case .binary(let sending): sending.limits
    }
  }
}
