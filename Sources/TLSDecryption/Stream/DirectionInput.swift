import Bytes

/// The input of one direction: read as it arrives, or held until something else is known.
///
/// `flowing` → `wait(for:)` → `waiting`, with held input → `release` → `flowing`. Waiting again during the release
/// holds the rest of it.
struct DirectionInput {
  /// The reason a direction waits.
  enum Reason: Equatable {
    /// The other side's hello.
    case hello
    /// The server's answer to early data.
    case answer
    /// The client's encrypted premaster secret.
    case keyExchange
    /// More secrets than there are in this generation.
    case secrets(generation: Int)
  }

  enum Piece {
    case bytes([UInt8], CapturePoint)
    case gap(length: Int, PlaintextGapReason, CapturePoint)
    case end(CapturePoint)

    /// The memory it needs, in bytes; a small piece needs more than its content.
    var cost: Int { if case .bytes(let bytes, _) = self { max(bytes.count, 128) } else { 128 } }
  }

  private struct Held {
    var reason: Reason
    var pieces: [Piece] = []
    var bytes = 0
  }

  private enum State {
    case flowing
    case waiting(Held)
  }

  private var state = State.flowing
  /// Waiting is allowed: the limits are not reached, and the connection goes on.
  private(set) var mayWait = true
  /// The direction has ended.
  var isOver = false

  /// The reason it waits; `nil` while it flows.
  var reason: Reason? { if case .waiting(let held) = state { held.reason } else { nil } }
  var isWaiting: Bool { if case .waiting = state { true } else { false } }
  /// Memory that is held.
  var heldBytes: Int { if case .waiting(let held) = state { held.bytes } else { 0 } }
  var heldPieces: Int { if case .waiting(let held) = state { held.pieces.count } else { 0 } }

  /// Begins to wait, or changes the reason of waiting.
  mutating func wait(for reason: Reason) {
    guard case .waiting(var held) = state else {
      state = .waiting(Held(reason: reason))
      return
    }
    // The pieces must have no other reference when they change, or they would be copied.
    state = .flowing
    held.reason = reason
    state = .waiting(held)
  }

  /// Holds input while it waits. At a limit waiting ends, and is not allowed again.
  ///
  /// - Parameter total: bytes held by all directions.
  mutating func hold(_ piece: Piece, _ limits: TLSLimits, total: inout Int) {
    guard case .waiting(var held) = state else { return }
    state = .flowing
    held.pieces.append(piece)
    held.bytes += piece.cost
    total += piece.cost
    if held.bytes > limits.maximumHeldBytes || total > limits.maximumTotalHeldBytes { mayWait = false }
    state = .waiting(held)
  }

  /// Ends waiting, and returns held input in order.
  mutating func release(total: inout Int) -> [Piece] {
    guard case .waiting(let held) = state else { return [] }
    state = .flowing
    total -= held.bytes
    return held.pieces
  }

  /// Waiting is over, even if something is still unknown.
  mutating func forbidWaiting() { mayWait = false }
}
