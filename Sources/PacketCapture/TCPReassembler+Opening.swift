import Bytes

// Connections: their slots, and how they are opened, closed and given up.

extension TCPReassembler {
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
  mutating func takeSlot(
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
  mutating func clear(
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

  func reportUnfinished(
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

  mutating func closeLingering(_ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
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
  mutating func evict(_ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
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
}
