import BinaryProtocol
import PushModel

/// What one connection does in the protocol that it speaks: the six functions between the loop with its transport and
/// the protocol.
///
/// A value without socket or clock, with nothing to do per notification but in `collect`. A position is a notification's
/// number on its connection, from 0, in the order in which they were collected; those that were written are all below
/// `written`. Which pieces they belong to, when and in which phase they were written is in `ConnectionLife`.
protocol SendingProtocol {
  /// Puts as many of a piece as there is room for into what is written next, and returns how many.
  ///
  /// - Parameter due: returns when that many of them were due; called only when there are any.
  mutating func collect(
    _ piece: SentLog.Piece, into batch: inout ConnectionBatch, room: Int, now: Int64, due: (_ taken: Int) -> DueTimes
  ) -> Int

  /// Applies bytes of the gateway; `nil` is their end.
  mutating func receive(_ bytes: [UInt8]?, written: Int, at now: Int64) -> [SendingAnswer]

  /// The fates of these positions, in runs: each has one, and no run is empty.
  func settlement(of positions: Range<Int>) -> [FateRun]

  /// No notification follows, and the end is to be graceful.
  ///
  /// - Parameter isNeeded: also a connection without anything unsettled is asked for a proof that the gateway took it.
  mutating func close(written: Int, isProofNeeded isNeeded: Bool, at now: Int64) -> CloseAction

  /// What it can take now, and whether it goes on.
  var readiness: SendingReadiness { get }

  /// What the protocol and the plan allow.
  var limits: SendingLimits { get }
}

/// Notifications of one connection that share a fate.
struct FateRun: Equatable {
  var fate: Fate
  var count: Int
  /// Where they are. Of those that are settled others may be among them, because nobody asks which they were.
  var positions: Range<Int>
}

struct SendingReadiness: Equatable {
  /// How many more notifications the protocol takes, beside what the plan allows.
  var room: Int
  /// The gateway has said what became of all that it had before the end: nothing on the connection is unknown.
  var isDecided: Bool
}

struct SendingLimits: Equatable {
  /// Most notifications of a connection.
  var notifications: Int
  /// The protocol can ask for a proof, so what stays unknown without one was not to be expected.
  var canProve: Bool
  /// Nanoseconds until the end of a connection is not waited for any longer.
  var patience: Int64
}

/// What the transport does to end a connection gracefully.
enum CloseAction: Equatable {
  /// Nothing on it is unsettled.
  case close
  /// Only this side ends, because unsent bytes would be lost otherwise; what is unsettled stays so.
  case endOutput
  /// These bytes ask for a proof. The gateway answers or closes.
  case ask([UInt8])
}

/// Something that the gateway has said.
enum SendingAnswer: Equatable {
  /// All positions below are settled, as the load asked it.
  case proven(before: Int, afterNanoseconds: Int64)
  case response(SendingResponse)
  /// The first bytes that are none of the protocol.
  case foreign([UInt8])
  /// So many bytes that mean nothing.
  case stray(Int)
}

struct SendingResponse: Equatable {
  var rejection: Rejection
  /// The notification that it names; `nil` if unknown.
  var position: Int?
  /// Why the connection ends with it; `nil` when it goes on.
  var ends: LoadTally.Cause?
  /// How many were written after the named one, when the connection ends.
  var lossWindow: Int?
}
