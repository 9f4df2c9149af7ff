/// The outcome of an accepted notification for its device, when that is not an immediate delivery.
package struct DeviceOutcome: Sendable, Equatable {
  package enum Kind: Sendable, Equatable { case delivered, coalesced, expired, dropped, uninstalled, stored }

  /// A notification's place among those that the gateway has received.
  package struct Origin: Sendable, Equatable {
    /// The number of its connection, from 1.
    package var connection: UInt64 = 0
    /// Its number on the connection, from 0.
    package var index = 0

    package init(connection: UInt64 = 0, index: Int = 0) { (self.connection, self.index) = (connection, index) }
  }

  package let kind: Kind
  package let origin: Origin
  package let token: [UInt8]
  /// When it was due, in UNIX milliseconds.
  package let time: Int64

  package init(_ kind: Kind, _ origin: Origin, token: [UInt8], at time: Int64) {
    (self.kind, self.origin, self.token, self.time) = (kind, origin, token, time)
  }
}
