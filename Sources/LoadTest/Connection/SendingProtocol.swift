import BinaryProtocol
import PushModel

/// The protocol of one connection: six functions that separate the loop and its transport from the protocol.
///
/// A value without socket or clock; only `collect` has work for each notification. A position is a notification's
/// number on its connection, from 0, in the order of collection; the positions of written notifications are below
/// `written`. `ConnectionLife` has the pieces of positions, and the time and phase of each write.
protocol SendingProtocol {
  /// Adds as many notifications of a piece as there is room for to the next write, and returns the number.
  ///
  /// - Parameter due: returns the due times of the first `taken` notifications; called only if `taken` is above 0.
  mutating func collect(
    _ piece: SentLog.Piece, into batch: inout ConnectionBatch, room: Int, now: Int64, due: (_ taken: Int) -> DueTimes
  ) -> Int

  /// Applies bytes of the gateway; `nil` is their end.
  mutating func receive(_ bytes: [UInt8]?, written: Int, at now: Int64) -> [SendingAnswer]

  /// The fates of these positions, in runs, none of them empty. Every position has a fate.
  func settlement(of positions: Range<Int>) -> [FateRun]

  /// No notification follows, and the end is to be graceful.
  ///
  /// - Parameter isNeeded: whether a proof that the gateway took the connection is needed even if nothing is unsettled.
  mutating func close(written: Int, isProofNeeded isNeeded: Bool, at now: Int64) -> CloseAction

  /// How much the protocol can take now, and whether all fates are known.
  var readiness: SendingReadiness { get }

  /// What the protocol and the plan allow.
  var limits: SendingLimits { get }
}

/// Notifications of one connection that share a fate.
struct FateRun: Equatable {
  var fate: Fate
  var count: Int
  /// The positions of the notifications. In a run of settled ones, positions of other fates may be included, because
  /// the positions of settled notifications are not used.
  var positions: Range<Int>
}

struct SendingReadiness: Equatable {
  /// How many more notifications the protocol takes, beside what the plan allows.
  var room: Int
  /// Whether the gateway's responses decide the fates of all notifications before the end: none is unknown.
  var isDecided: Bool
}

struct SendingLimits: Equatable {
  /// The maximum number of notifications of a connection.
  var notifications: Int
  /// Whether the protocol can request a proof, so that fates that are unknown without one are an anomaly.
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
  /// Bytes to write that request a proof. The gateway answers or closes.
  case ask([UInt8])
}

/// What bytes of the gateway mean.
enum SendingAnswer: Equatable {
  /// All positions below `before` are settled, by the proof that the load requested.
  case proven(before: Int, afterNanoseconds: Int64)
  case response(SendingResponse)
  /// The first bytes that do not belong to the protocol.
  case foreign([UInt8])
  /// The number of bytes without a meaning.
  case stray(Int)
}

struct SendingResponse: Equatable {
  var rejection: Rejection
  /// The position of the notification that the response names; `nil` if unknown.
  var position: Int?
  /// Why the connection ends with the response; `nil` if the connection continues.
  var ends: LoadTally.Cause?
  /// The number of notifications written after the named one, when the connection ends.
  var lossWindow: Int?
}
