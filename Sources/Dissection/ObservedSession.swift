import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import Records

/// How far a connection over HTTP/2 was read that one of its ends describes: `ObservedStreams` can read on from there,
/// whatever came before.
///
/// Memory: `ProviderSession.Limits`.
package struct ObservedSession: Sendable {
  private(set) var session: ProviderSession
  /// The stream offsets of the next bytes.
  private(set) var offsets = StreamOffsets()

  /// Makes the session of a connection that begins.
  package init(limits: ProviderSession.Limits) { session = ProviderSession(limits: limits) }

  /// Reads the next bytes of one end, and calls a function with what happens.
  package mutating func receive(
    _ bytes: RawSpan, _ sender: Direction, at time: Timestamp,
    _ receive: (ProviderEvent, RawSpan) -> Void = { _, _ in }
  ) {
    let offset = offsets.advance(sender, by: bytes.byteCount)
    session.read(bytes, from: HTTP2Side(sender), at: offset, arrival: Arrival(time), receive)
  }

  /// Notes that bytes of one end were not observed.
  package mutating func miss(_ length: Int, _ sender: Direction, at time: Timestamp) {
    guard length > 0 else { return }
    let offset = offsets.advance(sender, by: length)
    session.gap(from: HTTP2Side(sender), at: offset, length: length, arrival: Arrival(time)) { _, _ in }
  }

  /// Ends both directions, and calls a function with what happens.
  package mutating func finish(at time: Timestamp, _ receive: (ProviderEvent, RawSpan) -> Void) {
    session.finish(.client, .closed, arrival: Arrival(time), receive)
    session.finish(.server, .closed, arrival: Arrival(time), receive)
  }

  /// The same place on the connection, with counts that begin at 0: what was sent before is in none of them.
  package var restarted: ObservedSession {
    var copy = self
    copy.session.restart()
    return copy
  }

  /// Notifications that have begun, and of which there is no record yet.
  package var unfinishedNotifications: Int { session.unfinishedNotifications }
}

extension Arrival {
  fileprivate init(_ time: Timestamp) { self.init(time: time.nanoseconds, packet: 0) }
}

extension HTTP2Side {
  fileprivate init(_ direction: Direction) { self = direction == .client ? .client : .server }
}
