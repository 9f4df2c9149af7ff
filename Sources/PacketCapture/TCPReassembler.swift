import Bytes

/// From TCP segments in the order of a capture to the bytes of each direction in the order they were sent.
///
/// Bytes that come in order pass through borrowed, without a copy or an allocation. Others wait, within the limits of
/// `ReassemblyOptions`. Where bytes are sent twice the first ones captured count. A gap is declared late: when the peer
/// acknowledged the missing bytes and the connection went on for a while, when a limit is hit, or at the end.
public struct TCPReassembler {
  private struct Connection {
    var flow: Flow
    var hash: UInt64
    var lastPacket: Int
    var initiatorIsKnown = false
    /// All events were emitted; the flow is kept so that late packets do not open it again.
    var isClosed = false
    var wasReset = false
    var isFree = false
  }

  private struct Lingering {
    var slot: Int
    var opened: Int
    var time: Timestamp
  }

  /// A connection after a RST is closed this much later: packets are not always recorded in order.
  private static let lingerNanoseconds: Int64 = 2_000_000_000
  /// Segments further away than this from what is expected belong to something else.
  private static let farthest = 1 << 30
  /// How far in front of the expected bytes a RST may stand to count.
  private static let resetWindow = 1 << 20

  private let options: ReassemblyOptions
  private var table = FlowTable()
  private var connections: [Connection] = []
  /// Two a connection: the direction from the flow's low end, then from its high end.
  private var halves: [HalfStream] = []
  private var freeSlots: [Int] = []
  private var totalWaiting = 0
  private var lingering: [Lingering] = []
  private var lingeringHead = 0
  private var sweep = 0
  /// Packet number at which each slot's connection was opened, to recognise a slot that was used again.
  private var openedAt: [Int] = []

  public init(options: ReassemblyOptions = ReassemblyOptions()) { self.options = options }

  /// Takes one segment; what it makes known is emitted before this returns.
  public mutating func receive(
    _ segment: TCPSegment, _ payload: RawSpan, time: Timestamp, packet: Int, _ emit: StreamReceiver
  ) {
    if lingeringHead < lingering.count { closeLingering(now: time, emit) }
    let (flow, fromHigh) = Flow.of(source: segment.source, destination: segment.destination)
    let hash = table.hash(flow)
    let slot: Int
    if let found = table.find(hash, { connections[$0].flow == flow }) {
      slot = found
      if (segment.flags.contains(.syn) || connections[slot].isClosed) && isNewConnection(segment, slot, fromHigh) {
        reopen(slot, flow, time, packet, emit)
      }
    } else {
      slot = open(flow, hash, time, packet, emit)
    }
    connections[slot].lastPacket = packet
    if connections[slot].isClosed { return }

    let half = 2 * slot + (fromHigh ? 1 : 0)
    var position = StreamPosition(slot: slot, fromHigh: fromHigh, offset: 0, time: time, packet: packet)
    // The usual packet: next in order on a connection that misses nothing, or an acknowledgement alone.
    if segment.flags.isOrdinary && halves[half].isSmooth && halves[half ^ 1].isSmooth {
      halves[half ^ 1].acknowledge(segment.acknowledgement, within: Self.farthest)
      if segment.payloadLength == 0 { return }
      if let offset = halves[half].takeNext(segment.sequence, payload, ofLength: segment.payloadLength) {
        position.offset = offset
        emit(.bytes(payload), position)
        return
      }
    }
    if segment.flags.contains(.syn) { noteSYN(segment, half, position, emit) }
    if segment.flags.contains(.ack) { noteAcknowledgement(segment.acknowledgement, ofHalf: half ^ 1) }
    if segment.flags.contains(.rst) {
      if isAcceptable(reset: segment, half) {
        connections[slot].wasReset = true
        lingering.append(Lingering(slot: slot, opened: openedAt[slot], time: time))
        emit(.connection(.closing(fromHigh: fromHigh, isReset: true)), position)
      }
      return
    }
    if segment.payloadLength > 0 {
      receiveData(segment, payload, half, position, emit)
    } else if halves[half].start == .unknown && !halves[half].hasHint {
      halves[half].base = segment.sequence
      halves[half].hasHint = true
    }
    if segment.flags.contains(.fin) {
      noteFIN(segment, half)
      emit(.connection(.closing(fromHigh: fromHigh, isReset: false)), position)
    }
    settle(half, position, emit)
    var other = position
    other.fromHigh.toggle()
    if !halves[half ^ 1].waiting.isEmpty { settle(half ^ 1, other, emit) }
    if halves[half].hasEnded && halves[half ^ 1].hasEnded { close(slot, time, packet, emit) }
  }

  /// Ends everything: what still waits is emitted with the gaps before it.
  public mutating func finish(_ emit: StreamReceiver) {
    for slot in connections.indices.sorted(by: { openedAt[$0] < openedAt[$1] })
    where !connections[slot].isClosed && !connections[slot].isFree {
      flush(slot, .none, connections[slot].lastPacket, emit)
      close(slot, .none, connections[slot].lastPacket, emit)
    }
    self = TCPReassembler(options: options)
  }

  // MARK: opening and closing

  /// A SYN that does not belong to what is known of the flow starts a new connection on the same four numbers.
  private func isNewConnection(_ segment: TCPSegment, _ slot: Int, _ fromHigh: Bool) -> Bool {
    let half = halves[2 * slot + (fromHigh ? 1 : 0)]
    let distance = segment.sequence.advanced(by: 1).distance(from: half.base)
    if segment.flags.contains(.syn) {
      switch half.start {
      case .unknown:
        // The other direction may be a whole other connection's, unless this SYN-ACK answers it.
        return connections[slot].isClosed
      case .held:
        let first = half.waiting.first?.offset ?? 0
        return !(0...(1 << 20)).contains(first - distance)
      case .known:
        if half.sawSYN { return distance != 0 }
        return !(-(1 << 20)...0).contains(distance)
      }
    }
    // Data far from where an ended connection stopped: its successor's SYN was not captured.
    guard connections[slot].isClosed, segment.payloadLength > 0, !segment.flags.contains(.rst) else { return false }
    let offset = half.offset(of: segment.sequence)
    return half.start == .unknown || abs(offset - half.next) > 1 << 20
  }

  private mutating func open(
    _ flow: Flow, _ hash: UInt64, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver
  ) -> Int {
    if freeSlots.isEmpty && connections.count >= max(1, options.maximumConnections) { evict(time, packet, emit) }
    let slot: Int
    let connection = Connection(flow: flow, hash: hash, lastPacket: packet)
    if let free = freeSlots.popLast() {
      slot = free
      connections[slot] = connection
      openedAt[slot] = packet
      halves[2 * slot] = HalfStream()
      halves[2 * slot + 1] = HalfStream()
    } else {
      slot = connections.count
      connections.append(connection)
      openedAt.append(packet)
      halves.append(HalfStream())
      halves.append(HalfStream())
    }
    table.insert(hash, slot: slot)
    emit(.connection(.opened(flow)), .whole(slot, time, packet))
    return slot
  }

  private mutating func reopen(
    _ slot: Int, _ flow: Flow, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver
  ) {
    if !connections[slot].isClosed {
      flush(slot, time, packet, emit)
      close(slot, time, packet, emit)
    }
    connections[slot] = Connection(flow: flow, hash: connections[slot].hash, lastPacket: packet)
    openedAt[slot] = packet
    halves[2 * slot] = HalfStream()
    halves[2 * slot + 1] = HalfStream()
    emit(.connection(.opened(flow)), .whole(slot, time, packet))
  }

  private mutating func close(_ slot: Int, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    connections[slot].isClosed = true
    for half in [2 * slot, 2 * slot + 1] {
      totalWaiting -= halves[half].waitingBytes
      halves[half].waiting = []
      halves[half].waitingBytes = 0
    }
    emit(.connection(.closed), .whole(slot, time, packet))
  }

  private mutating func closeLingering(now: Timestamp, _ emit: StreamReceiver) {
    while lingeringHead < lingering.count {
      let entry = lingering[lingeringHead]
      if let waited = now.nanoseconds(since: entry.time), waited < Self.lingerNanoseconds { break }
      lingeringHead += 1
      let slot = entry.slot
      guard openedAt[slot] == entry.opened, !connections[slot].isClosed, !connections[slot].isFree else { continue }
      flush(slot, now, connections[slot].lastPacket, emit)
      close(slot, now, connections[slot].lastPacket, emit)
    }
    if lingeringHead > 1_024 && lingeringHead * 2 > lingering.count {
      lingering.removeFirst(lingeringHead)
      lingeringHead = 0
    }
  }

  /// Frees one slot: of sixteen neighbours an ended one, else the one that was silent longest.
  private mutating func evict(_ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    var victim = sweep % connections.count
    for step in 0..<min(16, connections.count) {
      let slot = (sweep + step) % connections.count
      let (a, b) = (connections[slot], connections[victim])
      if a.isClosed != b.isClosed ? a.isClosed : a.lastPacket < b.lastPacket { victim = slot }
    }
    sweep = (sweep + 16) % connections.count
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
    _ segment: TCPSegment, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    if !connections[position.slot].initiatorIsKnown {
      connections[position.slot].initiatorIsKnown = true
      let isHigh = segment.flags.contains(.ack) ? !position.fromHigh : position.fromHigh
      emit(.connection(.initiator(isHigh: isHigh)), position)
    }
    let first = segment.sequence.advanced(by: 1)
    switch halves[half].start {
    case .known: break
    case .unknown:
      // The peer's acknowledgements were counted from the hint; an acknowledged SYN is one less.
      if halves[half].hasHint {
        halves[half].acknowledged = max(0, halves[half].acknowledged - first.distance(from: halves[half].base))
      }
      halves[half].base = first
      halves[half].start = .known
    case .held:
      let shift = first.distance(from: halves[half].base)
      for index in halves[half].waiting.indices { halves[half].waiting[index].offset -= shift }
      halves[half].acknowledged = max(0, halves[half].acknowledged - shift)
      if halves[half].finOffset >= 0 { halves[half].finOffset = max(0, halves[half].finOffset - shift) }
      halves[half].truncatedUntil = max(0, halves[half].truncatedUntil - shift)
      halves[half].base = first
      halves[half].start = .known
      halves[half].patience = 0
    }
    halves[half].sawSYN = true
  }

  private mutating func noteAcknowledgement(_ number: SequenceNumber, ofHalf half: Int) {
    if halves[half].start == .unknown && !halves[half].hasHint {
      halves[half].base = number
      halves[half].hasHint = true
      return
    }
    halves[half].acknowledge(number, within: Self.farthest)
  }

  private func isAcceptable(reset segment: TCPSegment, _ half: Int) -> Bool {
    guard halves[half].start == .known else { return true }
    let offset = halves[half].offset(of: segment.sequence)
    let highest = halves[half].waiting.last?.end ?? halves[half].next
    return offset >= halves[half].next - 1 && offset <= highest + Self.resetWindow
  }

  private mutating func noteFIN(_ segment: TCPSegment, _ half: Int) {
    if halves[half].start == .unknown {
      if !halves[half].hasHint { halves[half].base = segment.sequence }
      halves[half].start = .held
    }
    let offset = halves[half].offset(of: segment.sequence) + segment.payloadLength
    guard halves[half].finOffset < 0, abs(offset - halves[half].next) < Self.farthest else { return }
    if halves[half].start == .known && offset < halves[half].next { return }
    halves[half].finOffset = offset
  }

  // MARK: data

  private mutating func receiveData(
    _ segment: TCPSegment, _ payload: RawSpan, _ half: Int, _ position: StreamPosition,
    _ emit: StreamReceiver
  ) {
    let sequence = segment.flags.contains(.syn) ? segment.sequence.advanced(by: 1) : segment.sequence
    if halves[half].start != .known {
      let isExpected = halves[half].waiting.isEmpty && halves[half].hasHint && sequence == halves[half].base
      if isExpected {
        halves[half].start = .known
      } else {
        if halves[half].start == .unknown && !halves[half].hasHint { halves[half].base = sequence }
        halves[half].start = .held
      }
    }
    let next = halves[half].next
    let offset = halves[half].offset(of: sequence)
    guard abs(offset - next) < Self.farthest else { return }

    if halves[half].start == .known && offset == next && halves[half].waiting.isEmpty {
      deliver(payload, half, position, emit)
    } else if halves[half].start == .known && offset < next {
      let end = offset + payload.byteCount
      // One byte just before the expected one is a keep-alive; its contents mean nothing.
      if segment.payloadLength > 1 || offset != next - 1 { reportConflicts(payload, offset, half, position, emit) }
      if end > next {
        let rest = payload.extracting(next - offset..<payload.byteCount)
        if halves[half].waiting.isEmpty {
          deliver(rest, half, position, emit)
        } else {
          wait(rest, next, half, position, emit)
        }
      }
    } else {
      wait(payload, offset, half, position, emit)
    }
    if payload.byteCount < segment.payloadLength {
      halves[half].truncatedUntil = max(halves[half].truncatedUntil, offset + segment.payloadLength)
    }
  }

  @inline(__always)
  private mutating func deliver(
    _ bytes: RawSpan, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    guard bytes.byteCount > 0 else { return }
    var position = position
    position.offset = halves[half].next
    halves[half].recent.note(bytes, at: position.offset)
    halves[half].next += bytes.byteCount
    emit(.bytes(bytes), position)
  }

  private mutating func wait(
    _ bytes: RawSpan, _ offset: Int, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let held = halves[half].hold(bytes, at: offset, time: position.time, packet: position.packet)
    totalWaiting += held.added
    if held.conflicts > 0 {
      emit(.connection(.conflict(fromHigh: position.fromHigh, offset: held.firstConflict, length: held.conflicts)), position)
    }
  }

  private func reportConflicts(
    _ bytes: RawSpan, _ offset: Int, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let conflicts = halves[half].recent.conflicts(bytes, at: offset)
    guard conflicts.length > 0 else { return }
    emit(.connection(.conflict(fromHigh: position.fromHigh, offset: conflicts.first, length: conflicts.length)), position)
  }

  /// Emits what has become deliverable in one direction, and decides gaps that have waited long enough.
  private mutating func settle(_ half: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    if halves[half].start == .held {
      halves[half].patience += 1
      let isLong = halves[half].patience >= options.startPatience
      guard isLong || overLimit(half, position, emit) else { return }
      halves[half].settleStart()
    }
    drain(half, position, emit)
    guard let first = halves[half].waiting.first else {
      endIfFinished(half, position, emit)
      return
    }
    if halves[half].acknowledged >= first.offset {
      halves[half].patience += 1
      if halves[half].patience < options.gapPatience && !overLimit(half, position, emit) { return }
    } else if !overLimit(half, position, emit) {
      return
    }
    declareGap(upTo: first.offset, half, position, emit)
    drain(half, position, emit)
    endIfFinished(half, position, emit)
  }

  private func overLimit(
    _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) -> Bool {
    let kind: LimitKind
    if halves[half].waitingBytes > options.maximumBufferedBytes {
      kind = .bufferedBytes
    } else if totalWaiting > options.maximumTotalBufferedBytes && halves[half].waitingBytes > 0 {
      kind = .totalBufferedBytes
    } else {
      return false
    }
    emit(.connection(.limit(kind)), position)
    return true
  }

  /// Delivers what waits at the next offset, and gaps that the snap length made.
  private mutating func drain(_ half: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    while halves[half].start == .known {
      if let first = halves[half].waiting.first, first.offset <= halves[half].next {
        halves[half].waiting.removeFirst()
        halves[half].waitingBytes -= first.bytes.count
        totalWaiting -= first.bytes.count
        halves[half].patience = 0
        let skip = halves[half].next - first.offset
        guard skip < first.bytes.count else { continue }
        var its = position
        its.time = first.time
        its.packet = first.packet
        deliver(first.bytes.rawBytes.extracting(skip..<first.bytes.count), half, its, emit)
      } else if halves[half].next < halves[half].truncatedUntil {
        let stop = min(halves[half].truncatedUntil, halves[half].waiting.first?.offset ?? .max)
        emitGap(stop - halves[half].next, .truncated, half, position, emit)
      } else {
        return
      }
    }
  }

  private mutating func declareGap(
    upTo offset: Int, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    halves[half].patience = 0
    let length = offset - halves[half].next
    if length > 0 { emitGap(length, .lost, half, position, emit) }
  }

  private mutating func emitGap(
    _ length: Int, _ reason: GapReason, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    var position = position
    position.offset = halves[half].next
    halves[half].next += length
    emit(.gap(length: length, reason: reason), position)
  }

  private mutating func endIfFinished(
    _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    guard !halves[half].hasEnded, halves[half].finOffset >= 0, halves[half].finOffset <= halves[half].next else {
      return
    }
    emitEnd(half, position, emit)
  }

  private mutating func emitEnd(_ half: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    halves[half].hasEnded = true
    var position = position
    position.offset = halves[half].next
    emit(.end, position)
  }

  /// Emits all that waits in both directions, with the gaps before it and the one the peer's acknowledgement shows.
  private mutating func flush(_ slot: Int, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    for half in [2 * slot, 2 * slot + 1] where !halves[half].hasEnded {
      let position = StreamPosition(slot: slot, fromHigh: half & 1 == 1, offset: 0, time: time, packet: packet)
      halves[half].settleStart()
      drain(half, position, emit)
      while let first = halves[half].waiting.first {
        declareGap(upTo: first.offset, half, position, emit)
        drain(half, position, emit)
      }
      // An acknowledged byte that nothing explains is a FIN that was not captured.
      let fin = halves[half].finOffset
      let end = fin >= 0 ? fin : halves[half].acknowledged
      if end - halves[half].next > (fin >= 0 ? 0 : 1) { declareGap(upTo: end, half, position, emit) }
      emitEnd(half, position, emit)
    }
  }
}
