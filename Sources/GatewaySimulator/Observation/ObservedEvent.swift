import NIOCore
import ProviderAPI
import PushModel
import TLSTransport

/// Receives the events of a simulator's connections, on their event loops and in the order of events for each
/// connection. The event loop waits for the call, so an observer should hand the event over and return.
package typealias ConnectionObserver = @Sendable (ObservedEvent) -> Void

/// Something that happened on a connection of the simulator.
package struct ObservedEvent: Sendable {
  package enum Service: Sendable {
    /// The binary protocol's gateway.
    case gateway
    case feedback
    /// The HTTP/2 provider API.
    case http2
  }

  /// The two ends of a connection, and its encryption.
  package struct Opening: Sendable {
    package let service: Service
    /// Addresses and ports.
    package let client: String
    package let server: String
    /// `nil` without TLS.
    package let tls: TLSConnectionInfo?
  }

  /// The gateway's decisions on some frames, and on the connection so far.
  package struct Decision: Sendable {
    /// Frames that arrived completely, or bytes that are no frame.
    package var received = 0
    /// The part of `received` that was accepted: its first ones.
    package var accepted = 0
    /// The part of `accepted` whose outcome for its device is told by the store.
    package var stored = 0
    /// Why the frame after these was rejected; `nil`: it was not.
    package var rejection: Rejection?
    package var rejects: Bool { rejection != nil }
    /// All accepted notifications of the connection.
    package var acceptedInAll = 0
    /// Whether the gateway discards everything that follows.
    package var discardsRest = false
    /// Over HTTP/2, the decisions one by one, in their order: of notifications in this read, or in earlier ones.
    package var served: [Served] = []
  }

  /// The decision on a notification over HTTP/2.
  package struct Served: Sendable, Equatable {
    package var stream: UInt32
    package var fate: Fate
    /// That of its answer; `nil`: it is not processed.
    package var status: Int?
    /// `nil`: it is not rejected.
    package var reason: ProviderReason?

    package init(stream: UInt32, fate: Fate, status: Int? = nil, reason: ProviderReason? = nil) {
      (self.stream, self.fate, self.status, self.reason) = (stream, fate, status, reason)
    }
  }

  package enum Change: Sendable {
    /// The handshake is complete; without TLS, the TCP connection was accepted.
    case opened(Opening)
    /// Whole frames of the provider, and what was decided on them. At the end of a connection: the beginning of a frame.
    /// Over HTTP/2: the bytes of one read.
    case received(ByteBuffer, Decision)
    /// Bytes of the service that the system has taken. Over HTTP/2: those that were written to the connection, in the
    /// order in which the client finds them behind what it has sent, also if it never reads them.
    case sent(ByteBuffer)
    /// One end has closed its direction, or reset the connection.
    case closing(byPeer: Bool, isReset: Bool)
    /// The connection is closed, with the gateway's last decision.
    case closed(Decision)
    /// What became of accepted notifications, of any connections: the event's own number is 0. It may come before the
    /// event that tells of a notification's arrival.
    case devices([DeviceOutcome])
  }

  /// The number of the connection among those of the run, from 1.
  package let connection: UInt64
  /// Nanoseconds since 1970-01-01 UTC.
  package let time: Int64
  package let change: Change

  package init(connection: UInt64, time: Int64, change: Change) {
    (self.connection, self.time, self.change) = (connection, time, change)
  }

  /// Bytes of memory that the event keeps.
  package var heldBytes: Int {
    switch change {
    case .received(let bytes, let decision):
      bytes.storageCapacity + decision.served.capacity * MemoryLayout<Served>.stride
    case .sent(let bytes): bytes.storageCapacity
    case .devices(let outcomes): outcomes.reduce(0) { $0 + 64 + $1.token.count }
    case .opened, .closing, .closed: 0
    }
  }
}

extension SimulatorContext {
  /// Hands an event to the observer, if there is one.
  @inline(__always)
  func observe(_ connection: UInt64, _ change: @autoclosure () -> ObservedEvent.Change) {
    guard let observer else { return }
    observer(ObservedEvent(connection: connection, time: wallClock.nanoseconds(), change: change()))
  }
}
