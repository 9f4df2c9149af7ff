import Bytes

/// Flows that are one connection under other addresses (`ConnectionViews`): their segments are those of the connection.
///
/// They are not passed over, because what one interface has lost another may have. A packet that was captured twice
/// counts once: else the second one would be a retransmission, and its FIN another end.
extension TCPReassembler {
  /// Begins a connection in a slot that was just taken; `false` when it may be a view of another, and is pending.
  mutating func begin(
    _ slot: Int, _ segment: TCPSegment, _ payload: RawSpan, _ flow: Flow, _ direction: FlowDirection,
    _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver
  ) -> Bool {
    let candidates = candidates(for: segment, flow, direction, slot, time)
    if candidates.isEmpty {
      views.noteBeginning(segment, direction, slot: slot, opened: openedAt[slot], time: time)
      emit(.connection(.opened(flow)), .whole(slot, time, packet))
      return true
    }
    connections[slot].role = .pending
    connections[slot].isClosed = true
    views.expect(flow, segment, direction, in: slot, candidates: candidates)
    for candidate in candidates { connections[candidate.slot].isWatched = true }
    hold(segment, payload, direction, in: slot, time, packet, emit)
    return false
  }

  private func candidates(
    for segment: TCPSegment, _ flow: Flow, _ direction: FlowDirection, _ slot: Int, _ time: Timestamp
  ) -> [ConnectionViews.Candidate] {
    guard time.isKnown, options.maximumViewDelay > 0 else { return [] }
    if segment.flags.contains(.syn) {
      let known = views.candidates(like: segment, direction, flow, time: time) { slot, opened in
        openedAt[slot] == opened && isOpen(slot) ? connections[slot].flow : nil
      }
      if !known.isEmpty || !segment.flags.contains(.ack) { return known }
    }
    return candidates(near: segment, direction, slot)
  }

  private func isOpen(_ slot: Int) -> Bool {
    !connections[slot].isFree && !connections[slot].isClosed
  }

  /// How far a flow whose beginning was not captured may be from the numbers of a connection: one of the two is exact
  /// but for what was sent within the delay, the other but for what was not acknowledged.
  private static let nearest = 1 << 10
  private static let farthestNumbers = 1 << 20

  /// The connections that a segment from the middle of a stream, or a SYN-ACK, may belong to.
  private func candidates(
    near segment: TCPSegment, _ direction: FlowDirection, _ slot: Int
  ) -> [ConnectionViews.Candidate] {
    guard segment.flags.contains(.ack), connections.count <= options.maximumComparedConnections else { return [] }
    let sequence = segment.flags.contains(.syn) ? segment.sequence.advanced(by: 1) : segment.sequence
    var found: [ConnectionViews.Candidate] = []
    for other in connections.indices where other != slot && isOpen(other) {
      for isFlipped in [false, true] {
        let sender = 2 * other + ((direction == .reverse) != isFlipped ? 1 : 0)
        guard let acknowledged = streams[sender ^ 1].distance(of: segment.acknowledgement) else { continue }
        let sent = streams[sender].distance(of: sequence)
        let (nearer, farther) = (min(abs(sent ?? 0), abs(acknowledged)), max(abs(sent ?? 0), abs(acknowledged)))
        // Nothing is known of one side: the other has to fit exactly.
        guard sent == nil ? farther == 0 : nearer <= Self.nearest && farther <= Self.farthestNumbers else { continue }
        found.append(.init(slot: other, opened: openedAt[other], isFlipped: isFlipped))
        if found.count == ConnectionViews.maximumCandidates { return found }
      }
    }
    return found
  }

  // MARK: pending flows

  private mutating func hold(
    _ segment: TCPSegment, _ payload: RawSpan, _ direction: FlowDirection, in slot: Int, _ time: Timestamp,
    _ packet: Int, _ emit: StreamReceiver
  ) {
    connections[slot].lastPacket = packet
    connections[slot].lastReceived = received
    let print = SegmentPrint(segment, payload, direction, time)
    let known = (views.pending[slot]?.candidates ?? []).map {
      likeness(of: print, to: $0, at: segment.sequence, length: payload.byteCount, candidateDirection: $0.map(direction))
    }
    let verdict = views.hold(segment, payload, print, direction, packet: packet, in: slot, known: known)
    settle(slot, verdict, emit)
    stopWatching()
    if connections[slot].role.isPending, segment.flags.contains(.fin) || segment.flags.contains(.rst) {
      endWithoutData(slot, emit)
    }
  }

  /// Compares a segment with the latest ones of a connection that was not watched before.
  private func likeness(
    of print: SegmentPrint, to candidate: ConnectionViews.Candidate, at sequence: SequenceNumber, length: Int,
    candidateDirection direction: FlowDirection
  ) -> SegmentPrint.Likeness {
    let stream = 2 * candidate.slot + (direction == .reverse ? 1 : 0)
    guard openedAt[candidate.slot] == candidate.opened, streams[stream].start == .known,
      let latest = streams[stream].recent.segment(at: streams[stream].offset(of: sequence), length: length),
      latest.isWithin(options.maximumViewDelay, of: print.time)
    else { return .none }
    return print.likeness(to: latest)
  }

  /// A connection without data ends: what is known of the flow is all.
  private mutating func endWithoutData(_ slot: Int, _ emit: StreamReceiver) {
    let verdict = finalVerdict(slot)
    if case .view = verdict { settle(slot, verdict, emit) }
    stopWatching()
  }

  private func finalVerdict(_ slot: Int) -> ConnectionViews.Verdict {
    views.finalVerdict(slot) { candidate in
      openedAt[candidate.slot] == candidate.opened && streams[2 * candidate.slot].next == 0
        && streams[2 * candidate.slot + 1].next == 0
    }
  }

  /// Decides what a pending flow is, because nothing more of it is waited for.
  mutating func settlePending(_ slot: Int, _ emit: StreamReceiver) {
    guard connections[slot].role.isPending else { return }
    settle(slot, finalVerdict(slot), emit)
    stopWatching()
  }

  private mutating func settle(_ slot: Int, _ verdict: ConnectionViews.Verdict, _ emit: StreamReceiver) {
    switch verdict {
    case .undecided: return
    case .own:
      guard let flow = views.settle(slot) else { return }
      open(slot, as: flow, emit)
      closeDeferred(flow.candidates, emit)
    case .view(let candidate):
      guard let flow = views.settle(slot) else { return }
      join(slot, flow, to: candidate, emit)
      closeDeferred(flow.candidates, emit)
    }
  }

  /// The flow is a connection of its own.
  private mutating func open(_ slot: Int, as flow: ConnectionViews.Pending, _ emit: StreamReceiver) {
    guard let first = flow.held.first else { return }
    connections[slot].role = .own
    connections[slot].isClosed = false
    views.noteBeginning(first.segment, first.direction, slot: slot, opened: openedAt[slot], time: first.time)
    views.offer(slot, opened: openedAt[slot], as: flow)
    connections[slot].isWatched = views.isWatched(slot)
    emit(.connection(.opened(flow.flow)), .whole(slot, first.time, first.packet))
    for held in flow.held where connections[slot].role.isOwn && !connections[slot].isClosed {
      receiveInSlot(held, slot, held.direction, emit)
    }
  }

  /// The flow is a view of the connection.
  private mutating func join(
    _ slot: Int, _ flow: ConnectionViews.Pending, to candidate: ConnectionViews.Candidate, _ emit: StreamReceiver
  ) {
    let other = candidate.slot
    guard openedAt[other] == candidate.opened, isOpen(other) else { return open(slot, as: flow, emit) }
    connections[slot].role = .view(of: other, isFlipped: candidate.isFlipped)
    views.add(.init(slot: slot, isFlipped: candidate.isFlipped), to: other)
    connections[other].isWatched = true
    if let first = flow.held.first {
      emit(
        .connection(.alsoSeen(flow.flow, isFlipped: candidate.isFlipped)), .whole(other, first.time, first.packet))
    }
    for held in flow.held where isOpen(other) && openedAt[other] == candidate.opened {
      receiveInSlot(held, other, candidate.map(held.direction), emit)
    }
  }

  private mutating func receiveInSlot(
    _ held: ConnectionViews.Held, _ slot: Int, _ direction: FlowDirection, _ emit: StreamReceiver
  ) {
    let bytes = held.bytes
    receiveOpen(held.segment, bytes.rawBytes, in: slot, direction, time: held.time, packet: held.packet, emit)
  }

  private mutating func stopWatching() {
    guard !views.idle.isEmpty else { return }
    for slot in views.takeIdle() { connections[slot].isWatched = views.isWatched(slot) }
  }

  // MARK: views

  /// Takes a segment of a flow that is pending or a view; `false` when it begins a connection in the same slot.
  mutating func receiveElsewhere(
    _ segment: TCPSegment, _ payload: RawSpan, in slot: Int, _ direction: FlowDirection, time: Timestamp, packet: Int,
    _ emit: StreamReceiver
  ) -> Bool {
    switch connections[slot].role {
    case .own: return false
    case .pending:
      guard views.pending[slot]?.isBegunAnew(by: segment) == true else {
        hold(segment, payload, direction, in: slot, time, packet, emit)
        return true
      }
      settlePending(slot, emit)
      return receiveElsewhere(segment, payload, in: slot, direction, time: time, packet: packet, emit)
    case .view(let other, let isFlipped):
      let mapped = isFlipped ? direction.opposite : direction
      if segment.flags.contains(.syn) && isNewConnection(segment, other, mapped) {
        views.remove(view: slot, of: other)
        leave(slot, other, isFlipped)
        stopWatching()
        return false
      }
      connections[slot].lastReceived = received
      connections[other].lastReceived = received
      connections[other].lastPacket = packet
      receiveOpen(segment, payload, in: other, mapped, time: time, packet: packet, emit)
      return true
    }
  }

  /// The view's flow is one that has ended as the connection has: so late packets of it open nothing.
  private mutating func leave(_ slot: Int, _ other: Int, _ isFlipped: Bool) {
    connections[slot].role = .own
    connections[slot].isClosed = true
    var reset = connections[other].reset
    if isFlipped, let direction = reset?.direction { reset?.direction = direction.opposite }
    connections[slot].reset = reset
    streams[2 * slot] = streams[2 * other + (isFlipped ? 1 : 0)]
    streams[2 * slot + 1] = streams[2 * other + (isFlipped ? 0 : 1)]
    for stream in [2 * slot, 2 * slot + 1] {
      (streams[stream].waiting, streams[stream].cuts, streams[stream].waitingCost) = ([], [], 0)
    }
  }

  /// Takes a segment of a connection that others are compared with, or that has views.
  mutating func receiveWatched(
    _ segment: TCPSegment, _ payload: RawSpan, in slot: Int, _ direction: FlowDirection, time: Timestamp, packet: Int,
    _ emit: StreamReceiver
  ) {
    let print = SegmentPrint(segment, payload, direction, time)
    if views.isCopy(print, of: slot) { return }
    views.note(print, of: slot)
    let decided = views.compare(print, of: slot)
    process(segment, payload, in: slot, direction, time: time, packet: packet, emit)
    for (place, verdict) in decided { settle(place, verdict, emit) }
    if segment.flags.contains(.fin) || segment.flags.contains(.rst) {
      for place in views.pending(on: slot) { endWithoutData(place, emit) }
    }
    stopWatching()
  }

  // MARK: ends

  /// Flows that are pending may be views of a connection that has ended: its end waits for them.
  ///
  /// - Returns: whether it does.
  mutating func deferClosing(_ slot: Int, _ time: Timestamp) -> Bool {
    guard connections[slot].isWatched, !views.pending(on: slot).isEmpty else { return false }
    if connections[slot].deferral == nil {
      connections[slot].deferral = Reset(direction: .forward, offset: nil, time: time, received: received)
      linger(slot)
    }
    return true
  }

  private mutating func closeDeferred(_ candidates: [ConnectionViews.Candidate], _ emit: StreamReceiver) {
    for candidate in candidates {
      let slot = candidate.slot
      guard openedAt[slot] == candidate.opened, isOpen(slot), let deferral = connections[slot].deferral,
        views.pending(on: slot).isEmpty
      else { continue }
      close(slot, deferral.time, connections[slot].lastPacket, emit)
    }
  }

  /// The connection has ended: its views have as well, and what might have been one is not.
  mutating func endViews(_ slot: Int, _ emit: StreamReceiver) {
    guard connections[slot].isWatched else { return }
    connections[slot].isWatched = false
    let (ended, own) = views.end(slot)
    for view in ended { leave(view.slot, slot, view.isFlipped) }
    for place in own { settle(place, .own, emit) }
    stopWatching()
  }

  /// The slot of a view is wanted for another connection.
  mutating func dropView(_ slot: Int) {
    guard case .view(let other, _) = connections[slot].role else { return }
    views.remove(view: slot, of: other)
    connections[slot].role = .own
    stopWatching()
  }
}

extension DirectionalStream {
  /// How far a sequence number is from the next one; `nil` when nothing is known of the stream.
  fileprivate func distance(of sequence: SequenceNumber) -> Int? {
    start == .unknown && !hasHint ? nil : offset(of: sequence) - next
  }
}
