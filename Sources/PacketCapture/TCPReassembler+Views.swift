import Bytes

/// Flows that are one connection under other addresses (`ConnectionViews`): their segments are those of the connection.
///
/// They are not passed over, because what one interface has lost another may have. A packet that was captured twice
/// counts once: else the second one would be a retransmission, and its FIN another end.
extension TCPReassembler {
  /// Begins a connection in a slot that was just taken; `false` when it may be a view of another, and is pending.
  mutating func begin(
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) -> Bool {
    let (slot, flow) = (position.slot, connections[position.slot].flow)
    let candidates = views.open(candidates(for: segment, at: position), for: segment)
    if candidates.isEmpty, isLate(segment, at: position) { return false }
    if candidates.isEmpty {
      views.noteBeginning(segment, position.direction, slot: slot, opened: openedAt[slot], time: position.time)
      emit(.connection(.opened(flow)), .whole(slot, position.time, position.packet))
      return true
    }
    connections[slot].role = .pending
    connections[slot].isClosed = true
    views.expect(flow, segment, position.direction, in: slot, candidates: candidates)
    for candidate in candidates { connections[candidate.slot].isWatched = true }
    hold(segment, payload, at: position, emit)
    return false
  }

  private func candidates(for segment: TCPSegment, at position: StreamPosition) -> [ConnectionViews.Candidate] {
    guard position.time.isKnown, options.maximumViewDelay > 0 else { return [] }
    if segment.flags.contains(.syn) {
      let flow = connections[position.slot].flow
      let known = views.candidates(like: segment, position.direction, flow, time: position.time) { slot, opened in
        openedAt[slot] == opened && isOpen(slot) ? connections[slot].flow : nil
      }
      if !known.isEmpty { return known }
      if !segment.flags.contains(.ack) { return candidates(begunBefore: segment, at: position) }
    }
    return candidates(near: segment, at: position)
  }

  /// The connections whose beginning was not captured under their addresses, and comes now under others.
  private func candidates(
    begunBefore segment: TCPSegment, at position: StreamPosition
  ) -> [ConnectionViews.Candidate] {
    guard connections.count <= options.maximumComparedConnections else { return [] }
    let sequence = segment.sequence.advanced(by: 1)
    var found: [ConnectionViews.Candidate] = []
    for other in connections.indices
    where other != position.slot && isOpen(other) && !connections[other].initiatorIsKnown {
      for isFlipped in [false, true] {
        let sender = 2 * other + ((position.direction == .reverse) != isFlipped ? 1 : 0)
        guard views.isNear(max(streams[sender].lastTime, streams[sender ^ 1].lastTime), position.time),
          let sent = streams[sender].distance(of: sequence), abs(sent) <= Self.farthestNumbers
        else { continue }
        found.append(.init(slot: other, opened: openedAt[other], isFlipped: isFlipped))
        if found.count == ConnectionViews.maximumCandidates { return found }
        break
      }
    }
    return found
  }

  private func isOpen(_ slot: Int) -> Bool {
    !connections[slot].isFree && !connections[slot].isClosed
  }

  /// How far a flow whose beginning was not captured may be from the numbers of a connection: one of the two is exact
  /// but for what was sent within the delay, the other but for what was not acknowledged.
  private static let nearest = 1 << 10
  private static let farthestNumbers = 1 << 20

  /// The connections that a segment from the middle of a stream, or a SYN-ACK, may belong to.
  private func candidates(near segment: TCPSegment, at position: StreamPosition) -> [ConnectionViews.Candidate] {
    guard segment.flags.contains(.ack), connections.count <= options.maximumComparedConnections else { return [] }
    let sequence = segment.flags.contains(.syn) ? segment.sequence.advanced(by: 1) : segment.sequence
    var found: [ConnectionViews.Candidate] = []
    for other in connections.indices where other != position.slot && isOpen(other) {
      let (same, flipped) = (
        distance(of: segment, sequence, sender: 2 * other + (position.direction == .reverse ? 1 : 0)),
        distance(of: segment, sequence, sender: 2 * other + (position.direction == .reverse ? 0 : 1))
      )
      guard same != nil || flipped != nil else { continue }
      // Where the two ends' numbers are near each other, those that are nearer tell which end it is.
      let isFlipped = (flipped ?? .max) < (same ?? .max)
      found.append(
        .init(slot: other, opened: openedAt[other], isFlipped: isFlipped, isInMiddle: !segment.flags.contains(.syn)))
      if found.count == ConnectionViews.maximumCandidates { return found }
    }
    return found
  }

  /// How far a segment's numbers are from those of a connection; `nil` when it cannot belong to it.
  private func distance(of segment: TCPSegment, _ sequence: SequenceNumber, sender: Int) -> Int? {
    switch (streams[sender].distance(of: sequence), streams[sender ^ 1].distance(of: segment.acknowledgement)) {
    case (nil, nil): return nil
    // Nothing is known of one side: the other has to be exact.
    case (let known?, nil), (nil, let known?): return known == 0 ? 0 : nil
    case (let sent?, let received?):
      let (nearer, farther) = (min(abs(sent), abs(received)), max(abs(sent), abs(received)))
      return nearer <= Self.nearest && farther <= Self.farthestNumbers ? nearer + farther : nil
    }
  }

  /// The only segment so far is the last one of a connection that has ended, under other addresses: it opens nothing.
  private mutating func isLate(_ segment: TCPSegment, at position: StreamPosition) -> Bool {
    let slot = position.slot
    guard segment.payloadLength == 0, segment.flags.contains(.ack), !segment.flags.contains(.syn),
      position.time.isKnown, options.maximumViewDelay > 0, connections.count <= options.maximumComparedConnections
    else { return false }
    for other in connections.indices
    where other != slot && connections[other].isClosed && !connections[other].isFree && connections[other].role.isOwn {
      for isFlipped in [false, true] {
        let sender = 2 * other + ((position.direction == .reverse) != isFlipped ? 1 : 0)
        // Behind all data, or behind the FIN as well.
        guard let sent = streams[sender].distance(of: segment.sequence), (0...1).contains(sent),
          let received = streams[sender ^ 1].distance(of: segment.acknowledgement), (0...1).contains(received),
          streams[sender].next + streams[sender ^ 1].next > 0
        else { continue }
        leave(slot, other, isFlipped)
        return true
      }
    }
    return false
  }

  // MARK: pending flows

  private mutating func hold(
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) {
    let slot = position.slot
    connections[slot].lastPacket = position.packet
    connections[slot].lastReceived = received
    let print = SegmentPrint(segment, payload, position.direction, position.time)
    let known = (views.pending[slot]?.candidates ?? []).map { likeness(of: print, segment, to: $0) }
    let verdict = views.hold(segment, payload, print, at: position, serial: received, known: known)
    settle([(slot, verdict)], emit)
    stopWatching()
    if connections[slot].role.isPending, segment.flags.contains(.fin) || segment.flags.contains(.rst) {
      endWithoutData(slot, emit)
    }
  }

  /// Compares a segment with what is left of those of a connection that was not watched before.
  private func likeness(
    of print: SegmentPrint, _ segment: TCPSegment, to candidate: ConnectionViews.Candidate
  ) -> SegmentPrint.Likeness {
    let mapped = candidate.map(print.direction)
    let stream = 2 * candidate.slot + (mapped == .reverse ? 1 : 0)
    guard openedAt[candidate.slot] == candidate.opened, streams[stream].start == .known else { return .none }
    let offset = streams[stream].offset(of: segment.sequence)
    if segment.flags.contains(.syn) {
      // The first byte has a place in front of all that are known, and not far from them.
      return offset < 0 && offset >= -Self.farthestNumbers ? .none : .different
    }
    if segment.flags.contains(.rst) {
      guard let reset = connections[candidate.slot].reset, reset.direction == mapped, reset.offset == offset,
        views.isNear(reset.time, print.time)
      else { return .none }
      return .empty
    }
    guard let latest = streams[stream].recent.segment(at: offset, length: segment.payloadLength),
      latest.isWithin(options.maximumViewDelay, of: print.time)
    else { return .none }
    return print.likeness(to: latest)
  }

  /// A connection without data ends: what is known of the flow is all.
  private mutating func endWithoutData(_ slot: Int, _ emit: StreamReceiver) {
    let verdict = finalVerdict(slot)
    if case .view = verdict { settle([(slot, verdict)], emit) }
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
    settle([(slot, finalVerdict(slot))], emit)
    stopWatching()
  }

  /// A held segment, and the connection that it belongs to.
  private struct Replayed {
    let held: ConnectionViews.Held
    let slot: Int
    let opened: Int
    let direction: FlowDirection
  }

  /// Acts on what was decided of pending flows. Of several views the segments that they have held follow in the order in
  /// which they came: the first capture of a packet counts.
  private mutating func settle(_ decided: [(slot: Int, verdict: ConnectionViews.Verdict)], _ emit: StreamReceiver) {
    var segments: [Replayed] = []
    var candidates: [ConnectionViews.Candidate] = []
    for (slot, verdict) in decided {
      if case .undecided = verdict { continue }
      // One that was decided just before, and begins alike, may be what it is a view of.
      if case .other = verdict, views.pending[slot]?.candidates.isEmpty == false { continue }
      guard let flow = views.settle(slot) else { continue }
      candidates += flow.candidates
      var target = ConnectionViews.Candidate(slot: slot, opened: openedAt[slot], isFlipped: false)
      if case .view(let candidate) = verdict, join(slot, flow, to: candidate, emit) {
        target = candidate
      } else {
        open(slot, as: flow, emit)
      }
      segments += flow.held.map {
        Replayed(held: $0, slot: target.slot, opened: target.opened, direction: target.map($0.direction))
      }
    }
    if decided.count > 1 { segments.sort { $0.held.serial < $1.held.serial } }
    for segment in segments where isOpen(segment.slot) && openedAt[segment.slot] == segment.opened {
      let (held, bytes) = (segment.held, segment.held.bytes)
      connections[segment.slot].lastReceived = received
      let position = StreamPosition(
        of: held.segment, in: segment.slot, segment.direction, time: held.time, packet: held.packet)
      receiveOpen(held.segment, bytes.rawBytes, at: position, emit)
    }
    closeDeferred(candidates, emit)
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
  }

  /// The flow is a view of the connection; `false` if that has ended.
  private mutating func join(
    _ slot: Int, _ flow: ConnectionViews.Pending, to candidate: ConnectionViews.Candidate, _ emit: StreamReceiver
  ) -> Bool {
    let other = candidate.slot
    guard openedAt[other] == candidate.opened, isOpen(other) else { return false }
    connections[slot].role = .view(of: other, isFlipped: candidate.isFlipped)
    views.add(.init(slot: slot, isFlipped: candidate.isFlipped), to: other)
    connections[other].isWatched = true
    if let first = flow.held.first {
      emit(
        .connection(.alsoSeen(flow.flow, isFlipped: candidate.isFlipped)), .whole(other, first.time, first.packet))
    }
    return true
  }

  private mutating func stopWatching() {
    guard !views.idle.isEmpty else { return }
    for slot in views.takeIdle() { connections[slot].isWatched = views.isWatched(slot) }
  }

  // MARK: views

  /// Takes a segment of a flow that is pending or a view; `false` when it begins a connection in the same slot.
  mutating func receiveElsewhere(
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) -> Bool {
    let slot = position.slot
    switch connections[slot].role {
    case .own: return false
    case .pending:
      guard views.pending[slot]?.isBegunAnew(by: segment) == true else {
        hold(segment, payload, at: position, emit)
        return true
      }
      settlePending(slot, emit)
      return receiveElsewhere(segment, payload, at: position, emit)
    case .view(let other, let isFlipped):
      var mapped = position
      mapped.slot = other
      if isFlipped { mapped.direction = position.direction.opposite }
      if segment.flags.contains(.syn) && isNewConnection(segment, other, mapped.direction) {
        views.remove(view: slot, of: other)
        leave(slot, other, isFlipped)
        stopWatching()
        return false
      }
      connections[slot].lastReceived = received
      connections[other].lastReceived = received
      connections[other].lastPacket = position.packet
      receiveOpen(segment, payload, at: mapped, emit)
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
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) {
    let slot = position.slot
    let print = SegmentPrint(segment, payload, position.direction, position.time)
    let opened = openedAt[slot]
    // What a view has held was captured before.
    settle(views.compare(print, of: slot), emit)
    stopWatching()
    guard isOpen(slot), openedAt[slot] == opened, !views.isCopy(print, of: slot) else { return }
    views.note(print, of: slot)
    process(segment, payload, at: position, emit)
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
      connections[slot].deferral = Reset(
        direction: .forward, offset: nil, firstTime: time, time: time, received: received)
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
    settle(own.map { ($0, .other) }, emit)
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
  @inline(__always)
  fileprivate func distance(of sequence: SequenceNumber) -> Int? {
    start == .unknown && !hasHint ? nil : offset(of: sequence) - next
  }
}
