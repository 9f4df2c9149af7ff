import Bytes

/// Reassembles TCP streams: from segments in the order of a capture to the bytes of each direction in the order they
/// were sent.
///
/// Bytes that arrive in order pass through borrowed, without a copy or an allocation. Other bytes wait, within the
/// limits of `ReassemblyOptions`. Where bytes were captured more than once, the first ones are delivered. A gap is
/// declared late: after the peer acknowledged the missing bytes and the connection went on for a while, at a limit, or
/// at the end.
public struct TCPReassembler {
  /// How the segments of a flow are assigned to a connection.
  enum Role {
    case own
    /// Undecided yet (`ConnectionViews`).
    case pending
    case view(of: Int, isFlipped: Bool)

    var isOwn: Bool { if case .own = self { true } else { false } }
    var isPending: Bool { if case .pending = self { true } else { false } }
  }

  struct Connection {
    var flow: Flow
    var hash: UInt64
    var lastPacket: Int
    /// The number of segments of all connections up to the last one of this connection: packet numbers cannot be
    /// compared across merged files.
    var lastReceived = 0
    var initiatorIsKnown = false
    /// Whether all events were emitted, or none will be; the flow is kept so that late packets do not open it again.
    var isClosed = false
    var isFree = false
    var role = Role.own
    /// Whether flows are compared with the connection, or it has views.
    var isWatched = false
    /// Set if the connection has ended but flows that may be its views are pending.
    var deferral: Reset?
    /// The RST that ended the connection. Removed if its sender goes on: then someone else sent it.
    var reset: Reset?
    /// Whether the connection is in `lingering`.
    var isLingering = false
  }

  struct Reset {
    var direction: FlowDirection
    /// The offset of the RST in its sender's stream; `nil` if the stream had not begun.
    var offset: Int?
    var firstTime: Timestamp
    /// The time of the connection's last packet.
    var time: Timestamp
    /// The number of segments of all connections up to that packet.
    var received: Int
    /// Whether the RST comes after bytes that were not captured, and was not emitted yet: if someone else sent it, its
    /// sender goes on with those bytes.
    var isDoubtful: Bool = false
  }

  struct Lingering {
    var slot: Int
    var opened: Int
  }

  /// Like `ReassemblyOptions.linger`, in segments, for captures without times.
  static let lingerSegments = 1_000
  /// Segments farther than this from the expected sequence number do not belong to the connection.
  static let farthest = 1 << 30
  /// How far after the expected bytes a RST is accepted if the receiver's window is unknown.
  static let resetWindow = 1 << 20

  let options: ReassemblyOptions
  var table = FlowTable()
  var connections: [Connection] = []
  /// Two per connection: the direction from the flow's low endpoint, then that from its high endpoint.
  var streams: [DirectionalStream] = []
  var freeSlots: [Int] = []
  /// The cost of all buffered data against the limit.
  var totalCost = 0
  var lingering: [Lingering] = []
  var lingeringHead = 0
  var sweep = 0
  var received = 0
  /// The number of segments received when the connection of each slot was opened, to recognise a slot that was reused.
  var openedAt: [Int] = []
  var silence = SilenceClock()
  var views: ConnectionViews

  /// Makes a reassembler without connections.
  ///
  /// - Parameter options: the limits on memory, and the patience with gaps.
  public init(options: ReassemblyOptions = ReassemblyOptions()) {
    self.options = options
    views = ConnectionViews(options)
  }

  /// The memory that waiting pieces need at present, as the limits count it.
  var bufferedCost: Int { totalCost }

  /// Whether the state of all connections exceeds the processor's cache, so that `prepare` pays.
  var isLarge: Bool { connections.count > 512 }

  /// Prefetches the table entry of a segment's connection. Returns the hash for `prepareState`.
  ///
  /// Mutating, as `prepareState` is: otherwise the compiler makes a copy, which retains every array.
  @inline(__always)
  mutating func prepare(for segment: TCPSegment) -> UInt64 {
    let hash = table.hash(Flow.of(source: segment.source, destination: segment.destination).flow)
    table.prefetch(hash)
    return hash
  }

  /// Prefetches the state of a connection.
  @inline(__always)
  mutating func prepareState(for hash: UInt64) {
    guard let slot = table.find(hash, { _ in true }) else { return }
    connections.prefetch(slot..<slot + 1)
    streams.prefetch(2 * slot..<2 * slot + 2)
  }

  /// Takes one segment, and emits the resulting events before it returns.
  ///
  /// - Parameters:
  ///   - segment: the header.
  ///   - payload: the captured part of the payload, borrowed for the call.
  ///   - time: the time of the packet.
  ///   - packet: the number of the packet, for the positions of events.
  ///   - emit: receives the events.
  /// - Complexity: O(1) for a segment in order; otherwise linear in the number of waiting pieces and their bytes. The first
  ///   segment of a flow may be compared with `ReassemblyOptions.maximumComparedConnections` connections.
  public mutating func receive(
    _ segment: TCPSegment, _ payload: RawSpan, time: Timestamp, packet: Int, _ emit: StreamReceiver
  ) {
    received += 1
    if lingeringHead < lingering.count { closeLingering(time, packet, emit) }
    let (flow, direction) = Flow.of(source: segment.source, destination: segment.destination)
    let hash = table.hash(flow)
    let slot: Int
    if let found = table.find(hash, { connections[$0].flow == flow }) {
      slot = found
      if segment.flags.contains(.syn) || connections[slot].isClosed {
        let position = StreamPosition(of: segment, in: slot, direction, time: time, packet: packet)
        if !connections[slot].role.isOwn, receiveElsewhere(segment, payload, at: position, emit) { return }
        if isNewConnection(segment, slot, direction) {
          clear(slot, flow, time, packet, emit)
          if !begin(segment, payload, at: position, emit) { return }
        }
      }
    } else {
      slot = takeSlot(flow, hash, time, packet, emit)
      let position = StreamPosition(of: segment, in: slot, direction, time: time, packet: packet)
      if !begin(segment, payload, at: position, emit) { return }
    }
    connections[slot].lastPacket = packet
    connections[slot].lastReceived = received
    receiveOpen(
      segment, payload, at: StreamPosition(of: segment, in: slot, direction, time: time, packet: packet), emit)
  }

  /// Takes a segment of a known connection.
  @inline(__always)
  mutating func receiveOpen(
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) {
    let (slot, stream) = (position.slot, position.stream)
    if connections[slot].isClosed { return }
    if position.time > streams[stream].lastTime { streams[stream].lastTime = position.time }
    if !segment.flags.contains(.rst) { streams[stream].window = segment.window }
    // The common packet: next in order on a connection without missing bytes, or a mere acknowledgement.
    if segment.flags.isOrdinary && streams[stream].isInOrder && streams[stream ^ 1].isInOrder
      && !connections[slot].isLingering && !connections[slot].isWatched
    {
      streams[stream ^ 1].acknowledge(segment.acknowledgement, within: Self.farthest)
      if segment.payloadLength == 0 { return }
      if let offset = streams[stream].takeNext(segment, payload, position.time) {
        var position = position
        position.offset = offset
        position.sequence = segment.sequence.rawValue
        position.isAhead = streams[stream ^ 1].isBehind(position.acknowledgement)
        emit(.bytes(payload), position)
        return
      }
    }
    if connections[slot].isWatched { return receiveWatched(segment, payload, at: position, emit) }
    process(segment, payload, at: position, emit)
  }

  /// Takes a segment other than a common one.
  mutating func process(
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) {
    let (slot, stream) = (position.slot, position.stream)
    if segment.flags.contains(.syn) { noteSYN(segment, stream, position, emit) }
    if segment.flags.contains(.rst) {
      if isAcceptable(reset: segment, stream) {
        noteAcknowledgement(segment, ofStream: stream ^ 1)
        noteReset(segment, stream, position, emit)
      }
      return
    }
    noteAcknowledgement(segment, ofStream: stream ^ 1)
    if connections[slot].isLingering { noteLife(segment, slot, stream, position) }
    if segment.payloadLength > 0 {
      receiveData(segment, payload, stream, position, emit)
    } else if streams[stream].start == .unknown {
      noteEmpty(segment, stream)
    }
    if segment.flags.contains(.fin) {
      noteFIN(segment, stream)
      announce(segment, isReset: false, stream, position, emit)
    }
    if streams[stream].waitingCost > 0 || streams[stream].start == .held {
      settle(stream, position, emit)
    } else if streams[stream].finOffset != nil {
      endIfFinished(stream, position, emit)
    }
    if streams[stream ^ 1].waitingCost > 0 {
      var other = position
      other.direction = position.direction.opposite
      settle(stream ^ 1, other, emit)
    }
    if streams[stream].hasEnded && streams[stream ^ 1].hasEnded && !deferClosing(slot, position.time) {
      close(slot, position.time, position.packet, emit)
    }
  }

  /// Ends all connections: waiting bytes are emitted with the gaps before them. The reassembler is as new afterwards.
  public mutating func finish(_ emit: StreamReceiver) {
    for slot in views.pending.keys.sorted(by: { openedAt[$0] < openedAt[$1] }) { settlePending(slot, emit) }
    for slot in connections.indices.sorted(by: { openedAt[$0] < openedAt[$1] })
    where !connections[slot].isClosed && !connections[slot].isFree {
      flush(slot, .none, connections[slot].lastPacket, emit)
      close(slot, .none, connections[slot].lastPacket, emit)
    }
    self = TCPReassembler(options: options)
  }

  /// Decides about connections that have been silent by the clock for `ReassemblyOptions.linger`: emits data that wait
  /// for later packets, and closes connections that were reset. While no packets arrive, their time stands still:
  /// without this, a provider that stops sending would end only with the next packet of another one.
  ///
  /// - Parameter now: the reader's clock; not before that of the last call.
  /// - Returns: `false` if nothing can become due before another segment.
  mutating func advance(to now: ContinuousClock.Instant, _ emit: StreamReceiver) -> Bool {
    let before = silence.received
    let hasMore = silence.note(received, at: now, linger: .nanoseconds(options.linger))
    if silence.received > before {
      for slot in connections.indices where waitsForPackets(slot) {
        let heard = connections[slot].lastReceived
        if heard > before && heard <= silence.received { settleSilent(slot, emit) }
      }
    }
    return hasMore && connections.indices.contains(where: waitsForPackets)
  }

  /// Whether later packets decide about a part of the connection.
  func waitsForPackets(_ slot: Int) -> Bool {
    if connections[slot].role.isPending { return views.pending[slot]?.hasData == true }
    guard !connections[slot].isClosed && !connections[slot].isFree else { return false }
    if connections[slot].reset != nil || connections[slot].deferral != nil { return true }
    let (low, high) = (2 * slot, 2 * slot + 1)
    return streams[low].waitsForPackets || streams[high].waitsForPackets || hasEnded(slot)
  }

  /// Whether both endpoints have closed. If one of them was not heard, it may be later: a file with one direction after
  /// the other may arrive through a slow pipe.
  func hasEnded(_ slot: Int) -> Bool {
    streams[2 * slot].finOffset != nil && streams[2 * slot + 1].finOffset != nil
  }

  mutating func settleSilent(_ slot: Int, _ emit: StreamReceiver) {
    if connections[slot].role.isPending { return settlePending(slot, emit) }
    let packet = connections[slot].lastPacket
    let lingering = connections[slot].reset ?? connections[slot].deferral
    if hasEnded(slot) || lingering != nil {
      let time = lingering?.time ?? .none
      flush(slot, time, packet, emit)
      return close(slot, time, packet, emit)
    }
    for stream in [2 * slot, 2 * slot + 1] where streams[stream].waitsForPackets {
      var position = StreamPosition.whole(slot, .none, packet)
      position.direction = stream & 1 == 1 ? .reverse : .forward
      settle(stream, isSilent: true, position, emit)
    }
  }
}
