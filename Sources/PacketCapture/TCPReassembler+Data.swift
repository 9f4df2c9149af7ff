import Bytes

// The bytes of a direction: delivered in order, kept while earlier ones are missing, or given up as a gap.

extension TCPReassembler {
  mutating func receiveData(
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
  mutating func noteStart(at sequence: SequenceNumber, _ stream: Int) {
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
  mutating func receiveAgain(
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

  mutating func deliverOrWait(
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
  mutating func skip(
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

  mutating func noteCut(_ range: Range<Int>, _ stream: Int) {
    guard streams[stream].start != .known || range.upperBound > streams[stream].next else { return }
    let before = streams[stream].waitingCost
    streams[stream].noteCut(range)
    totalCost += streams[stream].waitingCost - before
  }

  @inline(__always)
  mutating func deliver(
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

  mutating func wait(
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

  func reportConflicts(
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
  mutating func settle(
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

  func exceededLimit(_ stream: Int) -> LimitKind? {
    if streams[stream].waitingCost > options.maximumBufferedBytes { return .bufferedBytes }
    return totalCost > options.maximumTotalBufferedBytes && streams[stream].waitingCost > 0 ? .totalBufferedBytes : nil
  }

  /// Delivers buffered bytes at the next offset, and the gaps that the snap length caused.
  mutating func drain(_ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
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

  mutating func declareGap(
    upTo offset: Int, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    streams[stream].patience = 0
    let length = offset - streams[stream].next
    if length > 0 { emitGap(length, .lost, stream, position, emit) }
  }

  mutating func emitGap(
    _ length: Int, _ reason: GapReason, _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    var position = position
    position.offset = streams[stream].next
    streams[stream].next += length
    emit(.gap(length: length, reason: reason), position)
  }

  mutating func endIfFinished(
    _ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver
  ) {
    guard let fin = streams[stream].finOffset, fin <= streams[stream].next, !streams[stream].hasEnded else { return }
    emitEnd(stream, position, emit)
  }

  mutating func emitEnd(_ stream: Int, _ position: StreamPosition, _ emit: StreamReceiver) {
    streams[stream].hasEnded = true
    var position = position
    position.offset = streams[stream].next
    emit(.end, position)
  }

  /// Emits all waiting bytes of both directions, with the gaps before them, and the final gap that the peer's
  /// acknowledgement reveals.
  mutating func flush(_ slot: Int, _ time: Timestamp, _ packet: Int, _ emit: StreamReceiver) {
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
