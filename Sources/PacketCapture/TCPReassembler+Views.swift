import Bytes

/// Flows that are the same connection under different addresses (`ConnectionViews`): their segments are processed as
/// segments of that connection.
///
/// They are not skipped, because one interface may have captured what another one lost. A packet that was captured
/// twice counts once: otherwise the second capture would be a retransmission, and its FIN another end.
extension TCPReassembler {
  /// Begins a connection in a slot that was just taken. Returns `false` if the flow may be a view of another
  /// connection, and is pending.
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

  /// The connections whose beginning was not captured under their own addresses, and now appears under different ones.
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

  /// How far the numbers of a flow whose beginning was not captured may be from those of a connection. One of the two
  /// numbers is exact except for bytes sent within the delay; the other except for bytes not yet acknowledged.
  private static let nearest = 1 << 10
  private static let farthestNumbers = 1 << 20

  /// The connections to which a segment from the middle of a stream, or a SYN-ACK, may belong.
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
      // If the numbers of both endpoints are close to each other, the closer match decides about the direction.
      let isFlipped = (flipped ?? .max) < (same ?? .max)
      found.append(
        .init(slot: other, opened: openedAt[other], isFlipped: isFlipped, isInMiddle: !segment.flags.contains(.syn)))
      if found.count == ConnectionViews.maximumCandidates { return found }
    }
    return found
  }

  /// The distance of a segment's numbers from those of a connection; `nil` if the segment cannot belong to it.
  private func distance(of segment: TCPSegment, _ sequence: SequenceNumber, sender: Int) -> Int? {
    switch (streams[sender].distance(of: sequence), streams[sender ^ 1].distance(of: segment.acknowledgement)) {
    case (nil, nil): return nil
    // One side is unknown, so the other has to be exact.
    case (let known?, nil), (nil, let known?): return known == 0 ? 0 : nil
    case (let sent?, let received?):
      let (nearer, farther) = (min(abs(sent), abs(received)), max(abs(sent), abs(received)))
      return nearer <= Self.nearest && farther <= Self.farthestNumbers ? nearer + farther : nil
    }
  }

  /// Whether the flow's only segment so far is the last one of an ended connection, under different addresses. Such a
  /// flow opens no connection.
  private mutating func isLate(_ segment: TCPSegment, at position: StreamPosition) -> Bool {
    let slot = position.slot
    guard segment.payloadLength == 0, segment.flags.contains(.ack), !segment.flags.contains(.syn),
      position.time.isKnown, options.maximumViewDelay > 0, connections.count <= options.maximumComparedConnections
    else { return false }
    for other in connections.indices
    where other != slot && connections[other].isClosed && !connections[other].isFree && connections[other].role.isOwn {
      for isFlipped in [false, true] {
        let sender = 2 * other + ((position.direction == .reverse) != isFlipped ? 1 : 0)
        // After all data, or also after the FIN.
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

  /// Compares a segment with the kept segments of a connection that was not watched before.
  private func likeness(
    of print: SegmentPrint, _ segment: TCPSegment, to candidate: ConnectionViews.Candidate
  ) -> SegmentPrint.Likeness {
    let mapped = candidate.map(print.direction)
    let stream = 2 * candidate.slot + (mapped == .reverse ? 1 : 0)
    guard openedAt[candidate.slot] == candidate.opened, streams[stream].start == .known else { return .none }
    let offset = streams[stream].offset(of: segment.sequence)
    if segment.flags.contains(.syn) {
      // The first byte comes before all known ones, and close to them.
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

  /// Decides about a flow without data whose connection ends: no more will be known about it.
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

  /// Decides about a pending flow, because no more segments are awaited.
  mutating func settlePending(_ slot: Int, _ emit: StreamReceiver) {
    guard connections[slot].role.isPending else { return }
    settle([(slot, finalVerdict(slot))], emit)
    stopWatching()
  }

  /// A held segment, and the connection to which it belongs.
  private struct Replayed {
    let held: ConnectionViews.Held
    let slot: Int
    let opened: Int
    let direction: FlowDirection
  }

  /// Acts on the verdicts on pending flows. The held segments of several views are processed in the order of their
  /// arrival, since the first capture of a packet counts.
  private mutating func settle(_ decided: [(slot: Int, verdict: ConnectionViews.Verdict)], _ emit: StreamReceiver) {
    var segments: [Replayed] = []
    var candidates: [ConnectionViews.Candidate] = []
    for (slot, verdict) in decided {
      if case .undecided = verdict { continue }
      // A flow that was decided just before, and begins alike, may be the connection of which this one is a view.
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

  /// Makes the flow a connection of its own.
  private mutating func open(_ slot: Int, as flow: ConnectionViews.Pending, _ emit: StreamReceiver) {
    guard let first = flow.held.first else { return }
    connections[slot].role = .own
    connections[slot].isClosed = false
    views.noteBeginning(first.segment, first.direction, slot: slot, opened: openedAt[slot], time: first.time)
    views.offer(slot, opened: openedAt[slot], as: flow)
    connections[slot].isWatched = views.isWatched(slot)
    emit(.connection(.opened(flow.flow)), .whole(slot, first.time, first.packet))
  }

  /// Makes the flow a view of the connection. Returns `false` if the connection has ended.
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

  /// Takes a segment of a flow that is pending or a view. Returns `false` if it begins a connection in the same slot.
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

  /// Makes the flow of a view an ended connection, as its connection has ended, so that late packets do not open it.
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

  /// Takes a segment of a connection with which flows are compared, or that has views.
  mutating func receiveWatched(
    _ segment: TCPSegment, _ payload: RawSpan, at position: StreamPosition, _ emit: StreamReceiver
  ) {
    let slot = position.slot
    let print = SegmentPrint(segment, payload, position.direction, position.time)
    let opened = openedAt[slot]
    // Segments that a view has held were captured before.
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

  /// Defers the end of a connection while pending flows may be views of it.
  ///
  /// - Returns: whether the end is deferred.
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

  /// Ends the views of a connection that has ended, and decides about flows that might have been views of it.
  mutating func endViews(_ slot: Int, _ emit: StreamReceiver) {
    guard connections[slot].isWatched else { return }
    connections[slot].isWatched = false
    let (ended, own) = views.end(slot)
    for view in ended { leave(view.slot, slot, view.isFlipped) }
    settle(own.map { ($0, .other) }, emit)
    stopWatching()
  }

  /// Detaches a view whose slot is needed for another connection.
  mutating func dropView(_ slot: Int) {
    guard case .view(let other, _) = connections[slot].role else { return }
    views.remove(view: slot, of: other)
    connections[slot].role = .own
    stopWatching()
  }
}

extension DirectionalStream {
  /// The distance of a sequence number from the next expected one; `nil` if nothing is known of the stream.
  @inline(__always)
  fileprivate func distance(of sequence: SequenceNumber) -> Int? {
    start == .unknown && !hasHint ? nil : offset(of: sequence) - next
  }
}
