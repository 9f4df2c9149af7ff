/// An event in one direction of a TCP connection, in stream order, or of a whole connection.
public enum StreamEvent: ~Escapable {
  /// The next bytes, borrowed for the call.
  case bytes(RawSpan)
  /// The next `length` bytes are missing.
  case gap(length: Int, reason: GapReason)
  /// The end of the direction: no more bytes or gaps follow.
  case end
  /// A change of the connection as a whole.
  case connection(ConnectionEvent)
}

/// Why bytes are missing.
public enum GapReason: String, Sendable {
  /// The bytes were sent but not captured.
  case lost
  /// The snap length truncated the packet.
  case truncated
}

/// The position of an event: the connection, the direction, the byte offset, and the packet.
public struct StreamPosition: Sendable {
  /// The reassembler's number for the connection, from 0; reused after `.closed`.
  public var slot: Int
  /// The direction of the bytes; meaningless for an event of a whole connection.
  public var direction: FlowDirection
  /// Whether the packet acknowledges bytes of the other direction that were not seen yet: they follow later in the
  /// capture, or are missing.
  package var isAhead = false
  /// The acknowledgement number of the packet: its sender had received all bytes of the other direction before this
  /// number.
  package var acknowledgement: UInt32 = 0
  /// The number of bytes and missing bytes of this direction before the event.
  public var offset: Int
  /// The time of the packet; for buffered bytes, of the packet that had them.
  public var time: Timestamp
  /// The number of the packet (with the number of its file in the upper bits, if a recording numbers its files).
  public var packet: Int
  /// The sequence number of the event's first byte.
  package var sequence: UInt32 = 0

  package init(slot: Int, direction: FlowDirection, offset: Int, time: Timestamp, packet: Int) {
    self.slot = slot
    self.direction = direction
    self.offset = offset
    self.time = time
    self.packet = packet
  }

  /// The position of a segment, before the offset of its bytes is known.
  @inline(__always)
  init(of segment: borrowing TCPSegment, in slot: Int, _ direction: FlowDirection, time: Timestamp, packet: Int) {
    self.init(slot: slot, direction: direction, offset: 0, time: time, packet: packet)
    acknowledgement = segment.acknowledgement.rawValue
  }

  /// The reassembler's number for the direction of the connection.
  var stream: Int { 2 * slot + (direction == .reverse ? 1 : 0) }

  /// The position of an event of a whole connection.
  static func whole(_ slot: Int, _ time: Timestamp, _ packet: Int) -> StreamPosition {
    StreamPosition(slot: slot, direction: .forward, offset: 0, time: time, packet: packet)
  }
}

/// A change of a connection as a whole.
public enum ConnectionEvent: Sendable {
  /// The first packet of a flow.
  case opened(Flow)
  /// A SYN or SYN-ACK shows that the sender in this direction opened the connection. Emitted at most once, before any
  /// bytes if possible.
  case initiator(FlowDirection)
  /// The connection was also captured under these addresses. `isFlipped`: the low endpoint of this flow corresponds to
  /// the high endpoint of the connection's flow.
  case alsoSeen(Flow, isFlipped: Bool)
  /// A FIN or RST was captured.
  case closing(FlowDirection, isReset: Bool)
  /// The same bytes were captured twice with different contents; the first ones were delivered.
  case conflict(FlowDirection, offset: Int, length: Int)
  /// A limit was reached, so the reassembler stopped waiting for missing bytes, or stopped tracking the connection.
  case limit(LimitKind)
  /// The end of this direction was not captured, neither its FIN nor a RST after all of its bytes. The sender may have
  /// sent more between the time of its last packet and that of the other endpoint's RST, if there was one. Emitted
  /// before `.closed`.
  case unfinished(FlowDirection, since: Timestamp, until: Timestamp?)
  /// The last event of a connection; its slot may be reused.
  case closed
}

/// A limit that was reached; the raw value is the name of the option, with `_` for `-`.
public enum LimitKind: String, Sendable {
  /// The limit `ReassemblyOptions.maximumBufferedBytes`.
  case bufferedBytes = "max_buffered_bytes"
  /// The limit `ReassemblyOptions.maximumTotalBufferedBytes`.
  case totalBufferedBytes = "max_total_buffered_bytes"
  /// The limit `ReassemblyOptions.maximumConnections`.
  case connections = "max_connections"
  /// A limit on the memory of everything that connections have begun but not finished, which the dissector applies.
  case memory = "max_memory"
}

/// Receives the events of a reassembler. The bytes of the event are borrowed for the call. A decryptor receives events
/// and emits events of the same type, with plaintext.
///
/// A closure instead of a protocol, so that it is specialized in the module that creates it.
public typealias StreamReceiver = (_ event: borrowing StreamEvent, _ position: StreamPosition) -> Void
