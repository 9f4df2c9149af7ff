/// The data of one direction of a TCP connection, in stream order.
public enum StreamEvent: ~Escapable {
  /// The next bytes, borrowed for the time of the call.
  case bytes(RawSpan)
  /// The next `length` bytes are missing.
  case gap(length: Int, reason: GapReason)
  /// Nothing more will come in this direction.
  case end
  /// Something about the connection as a whole.
  case connection(ConnectionEvent)
}

/// Why bytes are missing.
public enum GapReason: String, Sendable {
  /// Sent, and not in the capture.
  case lost
  /// The snap length cut them off.
  case truncated
}

/// Where an event stands: in which connection and direction, at which byte, and in which packet.
public struct StreamPosition: Sendable {
  /// The reassembler's number for the connection, reused after `.closed`.
  public var slot: Int
  public var direction: FlowDirection
  /// The packet acknowledges bytes of the other direction that have not come: they stand later in the capture, or are
  /// missing in it.
  package var isAhead = false
  /// The packet's acknowledgement number: its sender had everything of the other direction before it.
  package var acknowledgement: UInt32 = 0
  /// Bytes of this direction before the event.
  public var offset: Int
  public var time: Timestamp
  public var packet: Int
  /// The sequence number of the first of an event's bytes.
  package var sequence: UInt32 = 0

  package init(slot: Int, direction: FlowDirection, offset: Int, time: Timestamp, packet: Int) {
    self.slot = slot
    self.direction = direction
    self.offset = offset
    self.time = time
    self.packet = packet
  }

  /// The place of a segment whose bytes have none yet.
  @inline(__always)
  init(of segment: borrowing TCPSegment, in slot: Int, _ direction: FlowDirection, time: Timestamp, packet: Int) {
    self.init(slot: slot, direction: direction, offset: 0, time: time, packet: packet)
    acknowledgement = segment.acknowledgement.rawValue
  }

  /// The reassembler's number for the direction of the connection.
  var stream: Int { 2 * slot + (direction == .reverse ? 1 : 0) }

  /// The place of an event that concerns no direction.
  static func whole(_ slot: Int, _ time: Timestamp, _ packet: Int) -> StreamPosition {
    StreamPosition(slot: slot, direction: .forward, offset: 0, time: time, packet: packet)
  }
}

/// A change of a connection as a whole.
public enum ConnectionEvent: Sendable {
  /// The first packet of a flow.
  case opened(Flow)
  /// The SYN or SYN-ACK shows that the sender in this direction opened the connection. Comes at most once, before
  /// any bytes if it can.
  case initiator(FlowDirection)
  /// The connection was recorded under these addresses as well. `isFlipped`: the low end of this flow is the high end
  /// of the connection's.
  case alsoSeen(Flow, isFlipped: Bool)
  /// A FIN or RST was recorded.
  case closing(FlowDirection, isReset: Bool)
  /// The same bytes were sent twice and differ; the first ones were used.
  case conflict(FlowDirection, offset: Int, length: Int)
  /// A limit made the reassembler give up waiting for missing bytes, or give up the connection.
  case limit(LimitKind)
  /// The end of this direction was not recorded, neither its FIN nor a RST behind all of its bytes: more may have been sent
  /// between the time when its sender was heard last and the other end's RST, if there was one. Comes before `.closed`.
  case unfinished(FlowDirection, since: Timestamp, until: Timestamp?)
  /// No more events will come; the slot number may be used again.
  case closed
}

/// Which limit was hit; the raw value names the option, with `_` for `-`.
public enum LimitKind: String, Sendable {
  case bufferedBytes = "max_buffered_bytes"
  case totalBufferedBytes = "max_total_buffered_bytes"
  case connections = "max_connections"
  /// Of everything that connections have begun and not finished.
  case memory = "max_memory"
}

/// Receives the events of a reassembler; the event's bytes are borrowed for the call. A decryptor takes this and emits
/// the same again with plaintext.
///
/// A closure instead of a protocol, so that it is specialized in the module that creates it.
public typealias StreamReceiver = (_ event: borrowing StreamEvent, _ position: StreamPosition) -> Void
