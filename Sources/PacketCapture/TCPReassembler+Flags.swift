import Bytes

// What SYN, FIN, RST and acknowledgements say of a connection.

extension TCPReassembler {
  mutating func noteSYN(
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
  mutating func noteAcknowledgement(_ segment: TCPSegment, ofStream stream: Int) {
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
  mutating func noteEmpty(_ segment: TCPSegment, _ stream: Int) {
    if !streams[stream].hasHint {
      streams[stream].base = segment.sequence
      streams[stream].hasHint = true
      streams[stream].hintMayBeKeepAlive = true
    } else if streams[stream].hintMayBeKeepAlive && segment.sequence == streams[stream].base.advanced(by: 1) {
      passKeepAlive(stream)
    }
  }

  mutating func passKeepAlive(_ stream: Int) {
    streams[stream].moveBase(by: 1)
    streams[stream].hintMayBeKeepAlive = false
  }

  // MARK: resets

  func isAcceptable(reset segment: TCPSegment, _ stream: Int) -> Bool {
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
  func highest(ofStream stream: Int) -> Int {
    let end = streams[stream].waiting.last?.end ?? streams[stream].next
    return max(end, streams[stream].cuts.last?.upperBound ?? 0, streams[stream].finOffset.map { $0 + 1 } ?? 0)
  }

  /// The right edge of the receiver's window, up to which a RST is accepted (RFC 9293 §3.10.7.4): at least the end of
  /// all sent bytes, since the receiver's last segments may not have been captured.
  func edge(ofStream stream: Int) -> Int {
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

  mutating func noteReset(
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
  mutating func announce(
    _ segment: TCPSegment, isReset: Bool, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    let closing = DirectionalStream.Closing(
      isReset: isReset, sequence: segment.sequence, acknowledgement: segment.acknowledgement, time: position.time)
    if let last = streams[stream].closing, last.isSamePacket(as: closing, within: options.maximumViewDelay) { return }
    streams[stream].closing = closing
    emit(.connection(.closing(position.direction, isReset: isReset)), position)
  }

  /// Emits a RST that was doubtful, since nothing refuted it.
  mutating func confirmReset(_ slot: Int, _ packet: Int, _ emit: StreamReceiver) {
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
  mutating func noteLife(_ segment: TCPSegment, _ slot: Int, _ stream: Int, _ position: StreamPosition) {
    guard let reset = connections[slot].reset else { return }
    connections[slot].reset?.time = max(reset.time, position.time)
    connections[slot].reset?.received = received
    guard reset.direction == position.direction else { return }
    let end = streams[stream].offset(of: segment.sequence) + segment.payloadLength
    let isNew = reset.offset.map { segment.payloadLength > 0 && end > $0 } ?? (segment.payloadLength > 0)
    if segment.flags.contains(.syn) || isNew || isRefuted(reset, segment, position) { connections[slot].reset = nil }
  }

  /// Whether a segment refutes a doubtful RST: its sender closes the connection with a FIN, or still sends long after it.
  func isRefuted(_ reset: Reset, _ segment: TCPSegment, _ position: StreamPosition) -> Bool {
    guard reset.isDoubtful else { return false }
    if segment.flags.contains(.fin) { return true }
    return (position.time.nanoseconds(since: reset.firstTime) ?? 0) >= options.linger
  }

  mutating func noteFIN(_ segment: TCPSegment, _ stream: Int) {
    if streams[stream].start == .unknown {
      if !streams[stream].hasHint { streams[stream].base = segment.sequence }
      streams[stream].start = .held
    }
    let offset = streams[stream].offset(of: segment.sequence) + segment.payloadLength
    guard streams[stream].finOffset == nil, abs(offset - streams[stream].next) < Self.farthest else { return }
    if streams[stream].start == .known && offset < streams[stream].next { return }
    streams[stream].finOffset = offset
  }
}
