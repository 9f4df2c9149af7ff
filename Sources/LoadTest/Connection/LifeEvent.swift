import Measurement
import PushModel

/// What bytes of the gateway mean for a connection, as `ConnectionLife` reads them.
enum LifeEvent {
  /// Everything that was written is settled, by the proof that the load requested.
  case proven(phase: RunPhase, afterNanoseconds: Int64)
  /// `named` is the notification that the response names; `nil` if unknown.
  case response(Rejection, named: Named?)
  /// The first bytes that are not of the protocol.
  case foreign([UInt8])
  /// The number of bytes without a meaning.
  case stray(Int)

  struct Named {
    /// The phase in which the notification was written.
    var phase: RunPhase
    /// The notification's number in the run of its event loop; `nil` when its write is too old to be known.
    var index: Int?
    /// From the write of the notification until the response was read; `nil` when the notification was accepted, or its
    /// write is too old to be known.
    var latencyNanoseconds: Int64?
    /// The number of notifications written after the named one, when the response ends the connection.
    var lossWindow: Int?
  }
}

/// What the gateway has shown of a connection.
enum LifeStanding: Equatable {
  /// Nothing yet.
  case open
  /// The gateway has settled a notification on it, has held it for longer than `LoadPlan.settling`, or was still holding
  /// it when the load closed it.
  case up
  /// The gateway, or the network, ended the connection before it was up.
  case refused(LifeRefusal)
}

enum LifeRefusal: Equatable {
  /// Without an error response, and with nothing written on the connection.
  case unused
  /// Without an error response, after something was written.
  case silent
  /// With an error response that names no notification of the connection, or with bytes that are no response.
  case answered
}

/// The fates of everything that was written on a connection: pieces with a fate each.
struct LifeSettlement {
  struct Part {
    var phase: RunPhase
    var fate: Fate
    var count: Int
    /// The notifications, in the order of writing. Empty for the fates accepted and rejected: these pieces are not
    /// used, and may be all that a run has sent.
    var pieces: [SentLog.Piece]
  }

  var parts: [Part]

  func count(_ fate: Fate) -> Int { parts.reduce(0) { $0 + ($1.fate == fate ? $1.count : 0) } }
  func pieces(_ fate: Fate) -> [SentLog.Piece] { parts.filter { $0.fate == fate }.flatMap(\.pieces) }
}
