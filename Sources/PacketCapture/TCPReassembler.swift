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
    var isFree = false
    /// The RST that ended it, unless its sender went on: then somebody else had sent it.
    var reset: Reset?
    /// It stands in `lingering`.
    var isLingering = false
  }

  private struct Reset {
    var direction: FlowDirection
    /// Where it stood in its sender's stream; `nil` when that had not begun.
    var offset: Int?
    /// When the connection was heard of last.
    var time: Timestamp
    var packet: Int
  }

  private struct Lingering {
    var slot: Int
    var opened: Int
  }

  /// A connection after a RST is closed when it was silent for this long: packets are not always recorded in order, and
  /// the peer goes on sending for a while.
  private static let lingerNanoseconds: Int64 = 2_000_000_000
  /// The same for captures without times.
  private static let lingerPackets = 1_000
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
  /// What waits in all halves, as it counts against the limit.
  private var totalCost = 0
  private var lingering: [Lingering] = []
  private var lingeringHead = 0
  private var sweep = 0
  /// Packet number at which each slot's connection was opened, to recognise a slot that was used again.
  private var openedAt: [Int] = []

  public init(options: ReassemblyOptions = ReassemblyOptions()) { self.options = options }

  /// Memory that waiting pieces take at the moment, as the limits count it.
  var bufferedCost: Int { totalCost }

  /// Takes one segment; what it makes known is emitted before this returns.
  public mutating func receive(
    _ segment: TCPSegment, _ payload: RawSpan, time: Timestamp, packet: Int, _ emit: StreamReceiver
  ) {
    if lingeringHead < lingering.count { closeLingering(time, packet, emit) }
    let (flow, direction) = Flow.of(source: segment.source, destination: segment.destination)
    let hash = table.hash(flow)
    let slot: Int
    if let found = table.find(hash, { connections[$0].flow == flow }) {
      slot = found
      if (segment.flags.contains(.syn) || connections[slot].isClosed) && isNewConnection(segment, slot, direction) {
        reopen(slot, flow, time, packet, emit)
      }
    } else {
      slot = open(flow, hash, time, packet, emit)
    }
    connections[slot].lastPacket = packet
    if connections[slot].isClosed { return }

    let half = 2 * slot + (direction == .reverse ? 1 : 0)
    var position = StreamPosition(slot: slot, direction: direction, offset: 0, time: time, packet: packet)
    // The usual packet: next in order on a connection that misses nothing, or an acknowledgement alone.
    if segment.flags.isOrdinary && halves[half].isSmooth && halves[half ^ 1].isSmooth
      && !connections[slot].isLingering
    {
      halves[half ^ 1].acknowledge(segment.acknowledgement, within: Self.farthest)
      if segment.payloadLength == 0 { return }
      if let offset = halves[half].takeNext(segment, payload) {
        position.offset = offset
        emit(.bytes(payload), position)
        return
      }
    }
    if segment.flags.contains(.syn) { noteSYN(segment, half, position, emit) }
    if segment.flags.contains(.rst) {
      if isAcceptable(reset: segment, half) {
        noteAcknowledgement(segment, ofHalf: half ^ 1)
        noteReset(segment, half, position, emit)
      }
      return
    }
    noteAcknowledgement(segment, ofHalf: half ^ 1)
    if connections[slot].isLingering { noteLife(segment, slot, half, position) }
    if segment.payloadLength > 0 {
      receiveData(segment, payload, half, position, emit)
    } else if halves[half].start == .unknown {
      noteEmpty(segment, half)
    }
    if segment.flags.contains(.fin) {
      noteFIN(segment, half)
      emit(.connection(.closing(direction, isReset: false)), position)
    }
    if halves[half].waitingCost > 0 || halves[half].start == .held {
      settle(half, position, emit)
    } else if halves[half].finOffset != nil {
      endIfFinished(half, position, emit)
    }
    if halves[half ^ 1].waitingCost > 0 {
      var other = position
      other.direction = direction.opposite
      settle(half ^ 1, other, emit)
    }
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
  private func isNewConnection(_ segment: TCPSegment, _ slot: Int, _ direction: FlowDirection) -> Bool {
    let half = halves[2 * slot + (direction == .reverse ? 1 : 0)]
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
        if let known = half.synBase { return segment.sequence.advanced(by: 1) != known }
        return !(-(1 << 20)...0).contains(distance)
      }
    }
    guard connections[slot].isClosed, segment.payloadLength > 0, !segment.flags.contains(.rst) else { return false }
    let offset = half.offset(of: segment.sequence)
    // New data from the end that is said to have reset the connection: it had not.
    if connections[slot].reset?.direction == direction && offset + segment.payloadLength > half.next { return true }
    // Data far from where an ended connection stopped: its successor's SYN was not captured.
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
      totalCost -= halves[half].waitingCost
      halves[half].waitingCost = 0
      halves[half].waiting = []
      halves[half].cuts = []
    }
    emit(.connection(.closed), .whole(slot, time, packet))
  }

  private mutating func closeLingering(_ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
    while lingeringHead < lingering.count {
      let (slot, opened) = (lingering[lingeringHead].slot, lingering[lingeringHead].opened)
      let isOurs = openedAt[slot] == opened && !connections[slot].isClosed && !connections[slot].isFree
      guard isOurs, let reset = connections[slot].reset else {
        if isOurs { connections[slot].isLingering = false }
        lingeringHead += 1
        continue
      }
      let silence = time.nanoseconds(since: reset.time)
      let isSilent = silence.map { $0 >= Self.lingerNanoseconds } ?? (packet - reset.packet >= Self.lingerPackets)
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
      let isAnswer = segment.flags.contains(.ack)
      emit(.connection(.initiator(isAnswer ? position.direction.opposite : position.direction)), position)
    }
    let first = segment.sequence.advanced(by: 1)
    if halves[half].start != .known {
      // What was counted from a hint, or from data that came first, is counted from here now.
      if halves[half].start == .held || halves[half].hasHint {
        halves[half].moveBase(by: first.distance(from: halves[half].base))
      }
      halves[half].base = first
      halves[half].start = .known
      halves[half].patience = 0
    }
    if halves[half].synBase == nil { halves[half].synBase = first }
  }

  @inline(__always)
  private mutating func noteAcknowledgement(_ segment: TCPSegment, ofHalf half: Int) {
    guard segment.flags.contains(.ack) else { return }
    if halves[half].start == .unknown && !halves[half].hasHint {
      halves[half].base = segment.acknowledgement
      halves[half].hasHint = true
      halves[half].acknowledged = 0
      return
    }
    let offset = halves[half].offset(of: segment.acknowledgement)
    if offset == 1 && halves[half].start == .unknown && halves[half].hintMayBeKeepAlive { return passKeepAlive(half) }
    halves[half].acknowledge(segment.acknowledgement, within: Self.farthest)
  }

  /// A segment without data before any with data tells where the stream stands.
  private mutating func noteEmpty(_ segment: TCPSegment, _ half: Int) {
    if !halves[half].hasHint {
      halves[half].base = segment.sequence
      halves[half].hasHint = true
      halves[half].hintMayBeKeepAlive = true
    } else if halves[half].hintMayBeKeepAlive && segment.sequence == halves[half].base.advanced(by: 1) {
      passKeepAlive(half)
    }
  }

  private mutating func passKeepAlive(_ half: Int) {
    halves[half].moveBase(by: 1)
    halves[half].hintMayBeKeepAlive = false
  }

  // MARK: resets

  private func isAcceptable(reset segment: TCPSegment, _ half: Int) -> Bool {
    guard halves[half].start == .known else {
      // What answers a SYN acknowledges it (RFC 9293 §3.10.7.3); anything else is older, or forged.
      let peer = halves[half ^ 1]
      guard peer.start == .known, segment.flags.contains(.ack) else { return true }
      return (0...max(peer.next, peer.waiting.last?.end ?? 0) + 1).contains(peer.offset(of: segment.acknowledgement))
    }
    let offset = halves[half].offset(of: segment.sequence)
    let highest = halves[half].waiting.last?.end ?? halves[half].next
    return offset >= halves[half].next - 1 && offset <= highest + Self.resetWindow
  }

  private mutating func noteReset(
    _ segment: TCPSegment, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let slot = position.slot
    let offset = halves[half].start == .known ? halves[half].offset(of: segment.sequence) : nil
    if connections[slot].reset == nil {
      connections[slot].reset = Reset(
        direction: position.direction, offset: offset, time: position.time, packet: position.packet)
      if !connections[slot].isLingering {
        connections[slot].isLingering = true
        lingering.append(Lingering(slot: slot, opened: openedAt[slot]))
      }
    }
    emit(.connection(.closing(position.direction, isReset: true)), position)
  }

  /// A segment after a RST: the connection is not silent yet, and not reset at all if the RST's sender has new data.
  private mutating func noteLife(_ segment: TCPSegment, _ slot: Int, _ half: Int, _ position: StreamPosition) {
    guard let reset = connections[slot].reset else { return }
    connections[slot].reset?.time = max(reset.time, position.time)
    connections[slot].reset?.packet = position.packet
    guard reset.direction == position.direction else { return }
    let end = halves[half].offset(of: segment.sequence) + segment.payloadLength
    let isNew = reset.offset.map { segment.payloadLength > 0 && end > $0 } ?? (segment.payloadLength > 0)
    if segment.flags.contains(.syn) || isNew { connections[slot].reset = nil }
  }

  private mutating func noteFIN(_ segment: TCPSegment, _ half: Int) {
    if halves[half].start == .unknown {
      if !halves[half].hasHint { halves[half].base = segment.sequence }
      halves[half].start = .held
    }
    let offset = halves[half].offset(of: segment.sequence) + segment.payloadLength
    guard halves[half].finOffset == nil, abs(offset - halves[half].next) < Self.farthest else { return }
    if halves[half].start == .known && offset < halves[half].next { return }
    halves[half].finOffset = offset
  }

  // MARK: data

  private mutating func receiveData(
    _ segment: TCPSegment, _ payload: RawSpan, _ half: Int, _ position: StreamPosition,
    _ emit: StreamReceiver
  ) {
    let sequence = segment.flags.contains(.syn) ? segment.sequence.advanced(by: 1) : segment.sequence
    if halves[half].hasEnded { return }
    if halves[half].start != .known {
      if halves[half].start == .unknown && halves[half].hintMayBeKeepAlive
        && sequence == halves[half].base.advanced(by: 1)
      {
        passKeepAlive(half)
      }
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
      noteCut(offset + payload.byteCount..<offset + segment.payloadLength, half)
    }
  }

  private mutating func noteCut(_ range: Range<Int>, _ half: Int) {
    guard halves[half].start != .known || range.upperBound > halves[half].next else { return }
    let before = halves[half].waitingCost
    halves[half].noteCut(range)
    totalCost += halves[half].waitingCost - before
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
    let before = halves[half].waitingCost
    let held = halves[half].hold(bytes, at: offset, time: position.time, packet: position.packet)
    totalCost += halves[half].waitingCost - before
    if held.conflicts > 0 {
      emit(
        .connection(.conflict(position.direction, offset: held.firstConflict, length: held.conflicts)),
        position)
    }
  }

  private func reportConflicts(
    _ bytes: RawSpan, _ offset: Int, _ half: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let conflicts = halves[half].recent.conflicts(bytes, at: offset)
    guard conflicts.length > 0 else { return }
    emit(
      .connection(.conflict(position.direction, offset: conflicts.first, length: conflicts.length)), position)
  }

  /// Emits what has become deliverable in one direction, and decides gaps that have waited long enough.
  private mutating func settle(_ half: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    var limit: LimitKind?
    if halves[half].start == .held {
      halves[half].patience += 1
      limit = exceededLimit(half)
      guard limit != nil || halves[half].patience >= options.startPatience else { return }
      halves[half].settleStart()
    }
    drain(half, position, emit)
    var isCounted = false
    while let first = halves[half].firstPending {
      let isAcknowledged = halves[half].acknowledged.map { $0 >= first } ?? false
      if isAcknowledged && !isCounted {
        halves[half].patience += 1
        isCounted = true
      }
      if !isAcknowledged || halves[half].patience < options.gapPatience {
        guard let exceeded = exceededLimit(half) else { break }
        limit = exceeded
      }
      declareGap(upTo: first, half, position, emit)
      drain(half, position, emit)
    }
    if let limit {
      emit(.connection(.limit(limit)), position)
    }
    if halves[half].firstPending == nil { endIfFinished(half, position, emit) }
  }

  private func exceededLimit(_ half: Int) -> LimitKind? {
    if halves[half].waitingCost > options.maximumBufferedBytes { return .bufferedBytes }
    return totalCost > options.maximumTotalBufferedBytes && halves[half].waitingCost > 0 ? .totalBufferedBytes : nil
  }

  /// Delivers what waits at the next offset, and gaps that the snap length made.
  private mutating func drain(_ half: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    guard halves[half].waitingCost > 0, halves[half].start == .known else { return }
    let before = halves[half].waitingCost
    while true {
      halves[half].dropPassedCuts()
      if let offset = halves[half].waiting.first?.offset, offset <= halves[half].next {
        let first = halves[half].removeFirstWaiting()
        halves[half].patience = 0
        let skip = halves[half].next - first.offset
        guard skip < first.bytes.count else { continue }
        var its = position
        its.time = first.time
        its.packet = first.packet
        deliver(first.bytes.rawBytes.extracting(skip..<first.bytes.count), half, its, emit)
      } else if let cut = halves[half].cuts.first, cut.lowerBound <= halves[half].next {
        let stop = min(cut.upperBound, halves[half].waiting.first?.offset ?? .max)
        emitGap(stop - halves[half].next, .truncated, half, position, emit)
      } else {
        break
      }
    }
    totalCost -= before - halves[half].waitingCost
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
    guard let fin = halves[half].finOffset, fin <= halves[half].next, !halves[half].hasEnded else { return }
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
      let position = StreamPosition(
        slot: slot, direction: half & 1 == 1 ? .reverse : .forward, offset: 0, time: time, packet: packet)
      halves[half].settleStart()
      drain(half, position, emit)
      while let first = halves[half].firstPending {
        declareGap(upTo: first, half, position, emit)
        drain(half, position, emit)
      }
      // An acknowledged byte that nothing explains is a FIN that was not captured.
      let acknowledged = halves[half].acknowledged ?? 0
      let hasFIN = halves[half].lastAdvance == 1 || acknowledged == halves[half].next + 1
      let end = halves[half].finOffset ?? acknowledged - (hasFIN ? 1 : 0)
      if end > halves[half].next { declareGap(upTo: end, half, position, emit) }
      emitEnd(half, position, emit)
    }
  }
}
