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

  private struct Lingering {
    var slot: Int
    var opened: Int
  }

  /// Like `ReassemblyOptions.linger`, in segments, for captures without times.
  private static let lingerSegments = 1_000
  /// Segments farther than this from the expected sequence number do not belong to the connection.
  private static let farthest = 1 << 30
  /// How far after the expected bytes a RST is accepted if the receiver's window is unknown.
  private static let resetWindow = 1 << 20

  let options: ReassemblyOptions
  private var table = FlowTable()
  var connections: [Connection] = []
  /// Two per connection: the direction from the flow's low endpoint, then that from its high endpoint.
  var streams: [DirectionalStream] = []
  private var freeSlots: [Int] = []
  /// The cost of all buffered data against the limit.
  private var totalCost = 0
  private var lingering: [Lingering] = []
  private var lingeringHead = 0
  private var sweep = 0
  private(set) var received = 0
  /// The number of segments received when the connection of each slot was opened, to recognise a slot that was reused.
  private(set) var openedAt: [Int] = []
  private var silence = SilenceClock()
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
  private func waitsForPackets(_ slot: Int) -> Bool {
    if connections[slot].role.isPending { return views.pending[slot]?.hasData == true }
    guard !connections[slot].isClosed && !connections[slot].isFree else { return false }
    if connections[slot].reset != nil || connections[slot].deferral != nil { return true }
    let (low, high) = (2 * slot, 2 * slot + 1)
    return streams[low].waitsForPackets || streams[high].waitsForPackets || hasEnded(slot)
  }

  /// Whether both endpoints have closed. If one of them was not heard, it may be later: a file with one direction after
  /// the other may arrive through a slow pipe.
  private func hasEnded(_ slot: Int) -> Bool {
    streams[2 * slot].finOffset != nil && streams[2 * slot + 1].finOffset != nil
  }

  private mutating func settleSilent(_ slot: Int, _ emit: StreamReceiver) {
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

  // MARK: opening and closing

  /// Whether a segment begins a new connection with the same addresses and ports, such as a SYN that does not match.
  func isNewConnection(_ segment: TCPSegment, _ slot: Int, _ direction: FlowDirection) -> Bool {
    let stream = streams[2 * slot + (direction == .reverse ? 1 : 0)]
    let distance = segment.sequence.advanced(by: 1).distance(from: stream.base)
    if segment.flags.contains(.syn) {
      switch stream.start {
      case .unknown:
        // The other direction may belong to another connection, unless this SYN-ACK answers it.
        return connections[slot].isClosed
      case .held:
        let first = stream.waiting.first?.offset ?? 0
        return !(0...(1 << 20)).contains(first - distance)
      case .known:
        if let known = stream.synBase { return segment.sequence.advanced(by: 1) != known }
        return !(-(1 << 20)...0).contains(distance)
      }
    }
    guard connections[slot].isClosed, segment.payloadLength > 0, !segment.flags.contains(.rst) else { return false }
    let offset = stream.offset(of: segment.sequence)
    // New data from the endpoint that seemingly reset the connection: it did not.
    if connections[slot].reset?.direction == direction && offset + segment.payloadLength > stream.next { return true }
    // Data far from the end of a closed connection: the SYN of its successor was not captured.
    return stream.start == .unknown || abs(offset - stream.next) > 1 << 20
  }

  /// Takes a slot for a flow without one.
  private mutating func takeSlot(
    _ flow: Flow, _ hash: UInt64, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver
  ) -> Int {
    if freeSlots.isEmpty && connections.count >= max(1, options.maximumConnections) { evict(time, packet, emit) }
    let slot: Int
    let connection = Connection(flow: flow, hash: hash, lastPacket: packet)
    if let free = freeSlots.popLast() {
      slot = free
      connections[slot] = connection
      openedAt[slot] = received
      streams[2 * slot] = DirectionalStream()
      streams[2 * slot + 1] = DirectionalStream()
    } else {
      slot = connections.count
      connections.append(connection)
      openedAt.append(received)
      streams.append(DirectionalStream())
      streams.append(DirectionalStream())
    }
    table.insert(hash, slot: slot)
    return slot
  }

  /// Reuses the slot of a flow for its new connection.
  private mutating func clear(
    _ slot: Int, _ flow: Flow, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver
  ) {
    if !connections[slot].isClosed {
      flush(slot, time, packet, emit)
      close(slot, time, packet, emit)
    }
    connections[slot] = Connection(flow: flow, hash: connections[slot].hash, lastPacket: packet)
    openedAt[slot] = received
    streams[2 * slot] = DirectionalStream()
    streams[2 * slot + 1] = DirectionalStream()
  }

  mutating func close(_ slot: Int, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    confirmReset(slot, packet, emit)
    connections[slot].isClosed = true
    for stream in [2 * slot, 2 * slot + 1] {
      totalCost -= streams[stream].waitingCost
      streams[stream].waitingCost = 0
      streams[stream].waiting = []
      streams[stream].cuts = []
      reportUnfinished(stream, slot, time, packet, emit)
    }
    emit(.connection(.closed), .whole(slot, time, packet))
    endViews(slot, emit)
  }

  private func reportUnfinished(
    _ stream: Int, _ slot: Int, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver
  ) {
    if streams[stream].finOffset != nil { return }
    let direction: FlowDirection = stream & 1 == 1 ? .reverse : .forward
    let reset = connections[slot].reset
    // A RST after bytes that were not captured does not prove the end.
    if let reset, reset.direction == direction, reset.offset == streams[stream].next { return }
    emit(
      .connection(.unfinished(direction, since: streams[stream].lastTime, until: reset?.firstTime)),
      .whole(slot, time, packet))
  }

  private mutating func closeLingering(_ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    while lingeringHead < lingering.count {
      let (slot, opened) = (lingering[lingeringHead].slot, lingering[lingeringHead].opened)
      let isOurs = openedAt[slot] == opened && !connections[slot].isClosed && !connections[slot].isFree
      guard isOurs, let reset = connections[slot].reset ?? connections[slot].deferral else {
        if isOurs { connections[slot].isLingering = false }
        lingeringHead += 1
        continue
      }
      let silence = time.nanoseconds(since: reset.time)
      let isSilent = silence.map { $0 >= options.linger } ?? (received - reset.received >= Self.lingerSegments)
      guard isSilent else { break }
      lingeringHead += 1
      flush(slot, time, connections[slot].lastPacket, emit)
      close(slot, time, connections[slot].lastPacket, emit)
    }
    if lingeringHead > 1_024 && lingeringHead * 2 > lingering.count {
      lingering.removeFirst(lingeringHead)
      lingeringHead = 0
    }
  }

  /// Frees one slot: of sixteen neighbours an ended one, otherwise the one that has been silent longest.
  private mutating func evict(_ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    var victim = sweep % connections.count
    for step in 0..<min(16, connections.count) {
      let slot = (sweep + step) % connections.count
      let (a, b) = (connections[slot], connections[victim])
      let (aHasEnded, bHasEnded) = (a.isClosed && a.role.isOwn, b.isClosed && b.role.isOwn)
      if aHasEnded != bHasEnded ? aHasEnded : a.lastReceived < b.lastReceived { victim = slot }
    }
    sweep = (sweep + 16) % connections.count
    settlePending(victim, emit)
    dropView(victim)
    if !connections[victim].isClosed {
      emit(.connection(.limit(.connections)), .whole(victim, time, packet))
      flush(victim, time, packet, emit)
      close(victim, time, packet, emit)
    }
    table.remove(connections[victim].hash, slot: victim)
    connections[victim].isFree = true
    freeSlots.append(victim)
  }

  // MARK: flags

  private mutating func noteSYN(
    _ segment: TCPSegment, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    if !connections[position.slot].initiatorIsKnown {
      connections[position.slot].initiatorIsKnown = true
      let isAnswer = segment.flags.contains(.ack)
      emit(.connection(.initiator(isAnswer ? position.direction.opposite : position.direction)), position)
    }
    let first = segment.sequence.advanced(by: 1)
    streams[stream].noteSYN(windowScale: segment.windowScale)
    if streams[stream].start != .known {
      // Offsets were counted from a hint or from out-of-order data; now they are counted from the SYN.
      if streams[stream].start == .held || streams[stream].hasHint {
        streams[stream].moveBase(by: first.distance(from: streams[stream].base))
      }
      streams[stream].base = first
      streams[stream].start = .known
      streams[stream].patience = 0
    }
    if streams[stream].synBase == nil { streams[stream].synBase = first }
  }

  @inline(__always)
  private mutating func noteAcknowledgement(_ segment: TCPSegment, ofStream stream: Int) {
    guard segment.flags.contains(.ack) else { return }
    if streams[stream].start == .unknown && !streams[stream].hasHint {
      streams[stream].base = segment.acknowledgement
      streams[stream].hasHint = true
      streams[stream].acknowledged = 0
      return
    }
    let offset = streams[stream].offset(of: segment.acknowledgement)
    if offset == 1 && streams[stream].start == .unknown && streams[stream].hintMayBeKeepAlive {
      return passKeepAlive(stream)
    }
    streams[stream].acknowledge(segment.acknowledgement, within: Self.farthest)
  }

  /// Notes the sequence number of a segment without data that precedes all data: a hint about the start of the stream.
  private mutating func noteEmpty(_ segment: TCPSegment, _ stream: Int) {
    if !streams[stream].hasHint {
      streams[stream].base = segment.sequence
      streams[stream].hasHint = true
      streams[stream].hintMayBeKeepAlive = true
    } else if streams[stream].hintMayBeKeepAlive && segment.sequence == streams[stream].base.advanced(by: 1) {
      passKeepAlive(stream)
    }
  }

  private mutating func passKeepAlive(_ stream: Int) {
    streams[stream].moveBase(by: 1)
    streams[stream].hintMayBeKeepAlive = false
  }

  // MARK: resets

  private func isAcceptable(reset segment: TCPSegment, _ stream: Int) -> Bool {
    guard streams[stream].start == .known else {
      // A RST that answers a SYN acknowledges it (RFC 9293 §3.10.7.3); any other RST is older, or forged.
      let peer = streams[stream ^ 1]
      guard peer.start == .known, segment.flags.contains(.ack) else { return true }
      return (0...max(peer.next, peer.waiting.last?.end ?? 0) + 1).contains(peer.offset(of: segment.acknowledgement))
    }
    let offset = streams[stream].offset(of: segment.sequence)
    return offset >= streams[stream].next - 1 && offset <= edge(ofStream: stream)
  }

  /// The highest offset that a direction is known to have sent, including its FIN.
  private func highest(ofStream stream: Int) -> Int {
    let end = streams[stream].waiting.last?.end ?? streams[stream].next
    return max(end, streams[stream].cuts.last?.upperBound ?? 0, streams[stream].finOffset.map { $0 + 1 } ?? 0)
  }

  /// The right edge of the receiver's window, up to which a RST is accepted (RFC 9293 §3.10.7.4): at least the end of
  /// all sent bytes, since the receiver's last segments may not have been captured.
  private func edge(ofStream stream: Int) -> Int {
    let (receiver, highest) = (streams[stream ^ 1], highest(ofStream: stream))
    // The window scale is unknown without the SYN, and the window without any segment.
    guard let acknowledged = streams[stream].acknowledged, receiver.scaling != .unknown,
      streams[stream].scaling != .unknown
    else { return highest + Self.resetWindow }
    var window = Int(receiver.window)
    // Windows are scaled only if both SYNs have the option (RFC 7323 §2.2).
    if case .by(let shift) = receiver.scaling, streams[stream].scaling != .none { window <<= Int(shift) }
    return max(highest, min(acknowledged + window, highest + Self.resetWindow))
  }

  private mutating func noteReset(
    _ segment: TCPSegment, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let slot = position.slot
    let offset = streams[stream].start == .known ? streams[stream].offset(of: segment.sequence) : nil
    // A host answers a RST that is in its window but not the next byte with a challenge ACK (RFC 9293 §3.10.7.4).
    // Whether this RST is the next byte, after bytes that were not captured, is decided by later segments.
    let isDoubtful = offset.map { $0 > highest(ofStream: stream) } ?? false
    if connections[slot].reset == nil || (connections[slot].reset?.isDoubtful == true && !isDoubtful) {
      connections[slot].reset = Reset(
        direction: position.direction, offset: offset, firstTime: position.time, time: position.time,
        received: received, isDoubtful: isDoubtful)
      linger(slot)
    }
    if !isDoubtful { announce(segment, isReset: true, stream, position, emit) }
  }

  /// Emits a FIN or RST, once if its packet was captured twice. Data captured twice is dropped in any case.
  private mutating func announce(
    _ segment: TCPSegment, isReset: Bool, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let closing = DirectionalStream.Closing(
      isReset: isReset, sequence: segment.sequence, acknowledgement: segment.acknowledgement, time: position.time)
    if let last = streams[stream].closing, last.isSamePacket(as: closing, within: options.maximumViewDelay) { return }
    streams[stream].closing = closing
    emit(.connection(.closing(position.direction, isReset: isReset)), position)
  }

  /// Emits a RST that was doubtful, since nothing refuted it.
  private mutating func confirmReset(_ slot: Int, _ packet: Int, _ emit: StreamReceiver) {
    guard let reset = connections[slot].reset, reset.isDoubtful else { return }
    connections[slot].reset?.isDoubtful = false
    let position = StreamPosition(
      slot: slot, direction: reset.direction, offset: 0, time: reset.firstTime, packet: packet)
    emit(.connection(.closing(reset.direction, isReset: true)), position)
  }

  /// Closes the connection once it has been silent for a while.
  mutating func linger(_ slot: Int) {
    if connections[slot].isLingering { return }
    connections[slot].isLingering = true
    lingering.append(Lingering(slot: slot, opened: openedAt[slot]))
  }

  /// Takes note of a segment after a RST: the connection is not silent yet, and was not reset at all if the sender of
  /// the RST has new data.
  private mutating func noteLife(_ segment: TCPSegment, _ slot: Int, _ stream: Int, _ position: StreamPosition) {
    guard let reset = connections[slot].reset else { return }
    connections[slot].reset?.time = max(reset.time, position.time)
    connections[slot].reset?.received = received
    guard reset.direction == position.direction else { return }
    let end = streams[stream].offset(of: segment.sequence) + segment.payloadLength
    let isNew = reset.offset.map { segment.payloadLength > 0 && end > $0 } ?? (segment.payloadLength > 0)
    if segment.flags.contains(.syn) || isNew || isRefuted(reset, segment, position) { connections[slot].reset = nil }
  }

  /// Whether a segment refutes a doubtful RST: its sender closes the connection with a FIN, or still sends long after it.
  private func isRefuted(_ reset: Reset, _ segment: TCPSegment, _ position: StreamPosition) -> Bool {
    guard reset.isDoubtful else { return false }
    if segment.flags.contains(.fin) { return true }
    return (position.time.nanoseconds(since: reset.firstTime) ?? 0) >= options.linger
  }

  private mutating func noteFIN(_ segment: TCPSegment, _ stream: Int) {
    if streams[stream].start == .unknown {
      if !streams[stream].hasHint { streams[stream].base = segment.sequence }
      streams[stream].start = .held
    }
    let offset = streams[stream].offset(of: segment.sequence) + segment.payloadLength
    guard streams[stream].finOffset == nil, abs(offset - streams[stream].next) < Self.farthest else { return }
    if streams[stream].start == .known && offset < streams[stream].next { return }
    streams[stream].finOffset = offset
  }

  // MARK: data

  private mutating func receiveData(
    _ segment: TCPSegment, _ payload: RawSpan, _ stream: Int, _ position: StreamPosition,
    _ emit: StreamReceiver
  ) {
    if streams[stream].hasEnded { return }
    let sequence = segment.flags.contains(.syn) ? segment.sequence.advanced(by: 1) : segment.sequence
    if streams[stream].start != .known { noteStart(at: sequence, stream) }
    if abs(streams[stream].offset(of: sequence) - streams[stream].next) >= Self.farthest {
      guard streams[stream].goesOn(at: sequence, segment.payloadLength, position.time) else { return }
      skip(to: sequence, stream, position, emit)
    }
    let offset = streams[stream].offset(of: sequence)
    if streams[stream].start == .known && offset < streams[stream].next {
      receiveAgain(segment, payload, offset, stream, position, emit)
    } else {
      deliverOrWait(payload, offset, stream, position, emit)
    }
    if payload.byteCount < segment.payloadLength {
      noteCut(offset + payload.byteCount..<offset + segment.payloadLength, stream)
    }
  }

  /// Notes a possible start of a stream whose beginning is unknown.
  private mutating func noteStart(at sequence: SequenceNumber, _ stream: Int) {
    if streams[stream].start == .unknown && streams[stream].hintMayBeKeepAlive
      && sequence == streams[stream].base.advanced(by: 1)
    {
      passKeepAlive(stream)
    }
    if streams[stream].waiting.isEmpty && streams[stream].hasHint && sequence == streams[stream].base {
      streams[stream].start = .known
    } else {
      if streams[stream].start == .unknown && !streams[stream].hasHint { streams[stream].base = sequence }
      streams[stream].start = .held
    }
  }

  /// Takes a segment that begins with bytes that were delivered already.
  private mutating func receiveAgain(
    _ segment: TCPSegment, _ payload: RawSpan, _ offset: Int, _ stream: Int, _ position: StreamPosition,
    _ emit: StreamReceiver
  ) {
    let next = streams[stream].next
    // One byte just before the expected one is a keep-alive; its content is meaningless.
    if segment.payloadLength > 1 || offset != next - 1 { reportConflicts(payload, offset, stream, position, emit) }
    if offset + payload.byteCount > next {
      deliverOrWait(payload.extracting(next - offset..<payload.byteCount), next, stream, position, emit)
    }
  }

  private mutating func deliverOrWait(
    _ bytes: RawSpan, _ offset: Int, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    if streams[stream].start == .known && offset == streams[stream].next && streams[stream].waiting.isEmpty {
      deliver(bytes, stream, position, emit)
    } else {
      wait(bytes, offset, stream, position, emit)
    }
  }

  /// Declares a gap up to a segment far away, which must be ahead: more bytes are missing than sequence numbers can
  /// distinguish.
  private mutating func skip(
    to sequence: SequenceNumber, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    while let first = streams[stream].firstPending {
      declareGap(upTo: first, stream, position, emit)
      drain(stream, position, emit)
    }
    let distance = sequence.distance(from: streams[stream].base.advanced(by: streams[stream].next))
    emitGap(distance < 0 ? distance + 1 << 32 : distance, .lost, stream, position, emit)
    streams[stream].finOffset = nil
    streams[stream].acknowledged = nil
  }

  private mutating func noteCut(_ range: Range<Int>, _ stream: Int) {
    guard streams[stream].start != .known || range.upperBound > streams[stream].next else { return }
    let before = streams[stream].waitingCost
    streams[stream].noteCut(range)
    totalCost += streams[stream].waitingCost - before
  }

  @inline(__always)
  private mutating func deliver(
    _ bytes: RawSpan, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    guard bytes.byteCount > 0 else { return }
    var position = position
    position.offset = streams[stream].next
    position.sequence = streams[stream].base.advanced(by: position.offset).rawValue
    position.isAhead = streams[stream ^ 1].isBehind(position.acknowledgement)
    streams[stream].recent.note(bytes, at: position.offset, position.time)
    streams[stream].next += bytes.byteCount
    emit(.bytes(bytes), position)
  }

  private mutating func wait(
    _ bytes: RawSpan, _ offset: Int, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let before = streams[stream].waitingCost
    let held = streams[stream].hold(bytes, at: offset, in: position)
    totalCost += streams[stream].waitingCost - before
    if held.conflicts > 0 {
      emit(
        .connection(.conflict(position.direction, offset: held.firstConflict, length: held.conflicts)),
        position)
    }
  }

  private func reportConflicts(
    _ bytes: RawSpan, _ offset: Int, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let conflicts = streams[stream].recent.conflicts(bytes, at: offset)
    guard conflicts.length > 0 else { return }
    emit(
      .connection(.conflict(position.direction, offset: conflicts.first, length: conflicts.length)), position)
  }

  /// Emits deliverable bytes of one direction, and declares gaps that have waited long enough.
  ///
  /// - Parameter isSilent: whether no packet of the connection has arrived for a long time.
  private mutating func settle(
    _ stream: Int, isSilent: Bool = false, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    var limit: LimitKind?
    if streams[stream].start == .held {
      streams[stream].patience += 1
      limit = exceededLimit(stream)
      guard limit != nil || isSilent || streams[stream].patience >= options.startPatience else { return }
      streams[stream].settleStart()
    }
    drain(stream, position, emit)
    var isCounted = false
    while let first = streams[stream].firstPending {
      let isAcknowledged = streams[stream].acknowledged.map { $0 >= first } ?? false
      if isAcknowledged && !isCounted {
        streams[stream].patience += 1
        isCounted = true
      }
      if !isAcknowledged || (streams[stream].patience < options.gapPatience && !isSilent) {
        guard let exceeded = exceededLimit(stream) else { break }
        limit = exceeded
      }
      declareGap(upTo: first, stream, position, emit)
      drain(stream, position, emit)
    }
    if let limit {
      emit(.connection(.limit(limit)), position)
    }
    if streams[stream].firstPending == nil { endIfFinished(stream, position, emit) }
  }

  private func exceededLimit(_ stream: Int) -> LimitKind? {
    if streams[stream].waitingCost > options.maximumBufferedBytes { return .bufferedBytes }
    return totalCost > options.maximumTotalBufferedBytes && streams[stream].waitingCost > 0 ? .totalBufferedBytes : nil
  }

  /// Delivers buffered bytes at the next offset, and the gaps that the snap length caused.
  private mutating func drain(_ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    guard streams[stream].waitingCost > 0, streams[stream].start == .known else { return }
    let before = streams[stream].waitingCost
    while true {
      streams[stream].dropPassedCuts()
      if let offset = streams[stream].waiting.first?.offset, offset <= streams[stream].next {
        let first = streams[stream].removeFirstWaiting()
        streams[stream].patience = 0
        let skip = streams[stream].next - first.offset
        guard skip < first.bytes.count else { continue }
        var its = position
        its.time = first.time
        its.packet = first.packet
        its.acknowledgement = first.acknowledgement
        deliver(first.bytes.rawBytes.extracting(skip..<first.bytes.count), stream, its, emit)
      } else if let cut = streams[stream].cuts.first, cut.lowerBound <= streams[stream].next {
        let stop = min(cut.upperBound, streams[stream].waiting.first?.offset ?? .max)
        emitGap(stop - streams[stream].next, .truncated, stream, position, emit)
      } else {
        break
      }
    }
    totalCost -= before - streams[stream].waitingCost
  }

  private mutating func declareGap(
    upTo offset: Int, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    streams[stream].patience = 0
    let length = offset - streams[stream].next
    if length > 0 { emitGap(length, .lost, stream, position, emit) }
  }

  private mutating func emitGap(
    _ length: Int, _ reason: GapReason, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    var position = position
    position.offset = streams[stream].next
    streams[stream].next += length
    emit(.gap(length: length, reason: reason), position)
  }

  private mutating func endIfFinished(
    _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    guard let fin = streams[stream].finOffset, fin <= streams[stream].next, !streams[stream].hasEnded else { return }
    emitEnd(stream, position, emit)
  }

  private mutating func emitEnd(_ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    streams[stream].hasEnded = true
    var position = position
    position.offset = streams[stream].next
    emit(.end, position)
  }

  /// Emits all waiting bytes of both directions, with the gaps before them, and the final gap that the peer's
  /// acknowledgement reveals.
  private mutating func flush(_ slot: Int, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    for stream in [2 * slot, 2 * slot + 1] where !streams[stream].hasEnded {
      let position = StreamPosition(
        slot: slot, direction: stream & 1 == 1 ? .reverse : .forward, offset: 0, time: time, packet: packet)
      streams[stream].settleStart()
      drain(stream, position, emit)
      while let first = streams[stream].firstPending {
        declareGap(upTo: first, stream, position, emit)
        drain(stream, position, emit)
      }
      // An acknowledged byte without another explanation is a FIN that was not captured.
      let acknowledged = streams[stream].acknowledged ?? 0
      let hasFIN = streams[stream].lastAdvance == 1 || acknowledged == streams[stream].next + 1
      let end = streams[stream].finOffset ?? acknowledged - (hasFIN ? 1 : 0)
      if end > streams[stream].next { declareGap(upTo: end, stream, position, emit) }
      emitEnd(stream, position, emit)
    }
  }
}
