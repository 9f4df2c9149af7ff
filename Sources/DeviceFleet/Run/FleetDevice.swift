import Measurement
import NIOCore

/// A device of a fleet, with its connection if it has one. Used only on its event loop, by `FleetLoop`.
final class FleetDevice {
  /// The connection as the device sees it.
  enum Link {
    case down
    /// Waits for its turn to connect.
    case queued
    case connecting
    case open
    /// Closed here, and not gone yet.
    case closing
  }

  /// Its place among the devices of the event loop.
  let place: Int32
  let draws: DeviceDraws
  var session: any FleetSession
  var presence: DevicePresence
  var link = Link.down
  var channel: (any Channel)?
  /// Counts attempts to connect: what comes from an earlier one is recognised.
  var attempt: UInt32 = 0
  /// When the last attempt began, and when the device was online by it; 0: it is not.
  var began: Int64 = 0
  var onlineSince: Int64 = 0
  var wasOnline = false
  /// Networks that were drawn, and the one that it has joined last.
  var joins: UInt64 = 0
  var network = JoinedNetwork.any
  /// The network that its connection, or the attempt at one, began on.
  var linkNetwork = JoinedNetwork.any
  /// A storm has hit its network alone: it comes back there, and no other one is drawn.
  var staysOnNetwork = false
  /// Why the connection is closed, or is to be as soon as it is open.
  var cause: FleetResult.Connections.Cause?
  /// Connections since the last one that lasted.
  var failures: UInt32 = 0
  var leavings: UInt32 = 0
  /// Restores that follow the end of the connection.
  var restores: UInt32 = 0
  /// The storm after which the device is awaited, by its place in the plan; -1: none.
  var awaitedAfter: Int32 = -1
  /// The storm that the device has come back from by its connection; -1: none.
  var returnedAfter: Int32 = -1
  /// When the next attempt may be made, when something is to be acknowledged, and when the device is looked at next;
  /// `Int64.max`: never.
  var retryAt: Int64 = 0
  var acknowledgeAt = Int64.max
  var wakeAt = Int64.max

  init(place: Int32, draws: DeviceDraws, session: any FleetSession, presence: DevicePresence) {
    (self.place, self.draws, self.session, self.presence) = (place, draws, session, presence)
  }

  /// Whether it wants a connection now.
  var wantsConnection: Bool { presence.wantsOnline && network != .other }
  /// Whether its connection, or the attempt at one, is the wanted one: another network takes another one.
  var wantsLink: Bool { wantsConnection && linkNetwork == network }
}

/// When a device is looked at. An entry whose time is not the device's `wakeAt` any more is void.
struct DeviceWake: Comparable {
  let time: Int64
  let place: Int32

  static func < (one: DeviceWake, other: DeviceWake) -> Bool { (one.time, one.place) < (other.time, other.place) }
}
