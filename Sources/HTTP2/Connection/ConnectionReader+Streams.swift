import Bytes

/// Streams: how they are opened and closed, and the content on them.
extension ConnectionReader {
  mutating func receiveFields(
    _ block: Direction.PendingBlock, _ extent: FieldSection.Extent, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    guard !block.isPromise else { return }
    let (side, stream, origin) = (direction.side, block.stream, block.origin)
    guard let slot = slotForFields(stream, origin, &direction, &handler), let half = streams[slot]?[side] else {
      return
    }
    let isRequest = side == .client
    let status = isRequest || extent == .lost ? nil : MessageRules.status(direction.fields)
    let isInterim = status.map { (100...199).contains($0) } ?? false
    // Behind content whose HEADERS are lost.
    let isTrailers = half.hasFields || half.length > 0 || !half.isLengthKnown
    if half.hasEnded {
      handler.receive(Violation(.frameAfterEnd, stream: stream), origin)
      return
    }
    if isTrailers, !block.endsStream, direction.isIntact, extent != .lost, !isInterim {
      handler.receive(Violation(.trailersWithoutEnd, stream: stream), origin)
    }
    do throws(Rule) {
      try MessageRules.check(
        direction.fields, isRequest: isRequest, isTrailers: isTrailers, isWhole: extent == .whole)
    } catch {
      handler.receive(Violation(error, stream: stream), origin)
    }
    if !isInterim {
      streams[slot]?[side].hasFields = true
      if !isTrailers { noteContentLength(slot, stream, origin, direction, &handler) }
    }
    let kind: FieldSection.Kind =
      isTrailers ? .trailers : isRequest ? .request : isInterim ? .interimResponse : .response
    let place = StreamPlace(stream: stream, slot: slot)
    handler.receive(
      FieldSection(kind: kind, extent: extent, endsStream: block.endsStream, status: status), direction.fields,
      on: place, origin)
    if block.endsStream { end(slot, origin, &direction, &handler) }
  }

  private mutating func noteContentLength(
    _ slot: Int, _ stream: UInt32, _ origin: FrameOrigin, _ direction: borrowing Direction,
    _ handler: inout some ConnectionHandler
  ) {
    do throws(Rule) {
      streams[slot]?[direction.side].expectedLength = try MessageRules.contentLength(direction.fields)
    } catch {
      handler.receive(Violation(error, stream: stream), origin)
    }
  }

  /// The slot of a stream on which fields arrive: an open stream's, or that of a new one.
  mutating func slotForFields(
    _ stream: UInt32, _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) -> Int? {
    guard stream & 1 == 1 else {
      // The server's streams are those that it promised, which no client here accepts.
      if direction.side == .client { handler.receive(Violation(.streamParity, stream: stream), origin) }
      return nil
    }
    if let slot = streams.slot(of: stream) {
      if direction.side == .client { noteOpened(stream, direction) }
      return slot
    }
    if direction.side == .server {
      // A response may be captured before its request, or the request may be lost. One that was answered is closed.
      guard stream > highestClientStream || mayBeMissed(stream, client?.losses) else { return nil }
      return open(stream, direction, &handler)
    }
    guard stream > highestClientStream || mayBeMissed(stream, direction.losses) else {
      if !streams.wasClosed(stream), direction.isIntact {
        handler.receive(Violation(.streamNumberNotRising, stream: stream), origin)
      }
      return nil
    }
    noteOpened(stream, direction)
    let slot = open(stream, direction, &handler)
    if let limit = direction.allowed?.streams, streams.count > limit {
      suspect(Violation(.tooManyStreams, stream: stream), origin)
    }
    return slot
  }

  /// Whether the client may have opened the stream in what is lost.
  func mayBeMissed(_ stream: UInt32, _ losses: Int?) -> Bool {
    (losses ?? 0) > 0 && missed.contains(stream) && !streams.wasClosed(stream)
  }

  /// Notes a stream that the client has opened.
  mutating func noteOpened(_ stream: UInt32, _ direction: borrowing Direction) {
    guard stream > highestClientStream else { return missed.remove(stream) }
    let losses = direction.side == .client ? direction.losses : client?.losses ?? 0
    if losses > 0 { missed.note(after: highestClientStream, before: stream) }
    highestClientStream = stream
  }

  mutating func open(
    _ stream: UInt32, _ direction: borrowing Direction, _ handler: inout some ConnectionHandler
  ) -> Int {
    if streams.count >= limits.openStreams, let oldest = streams.oldest() { close(oldest, .limit, &handler) }
    let losses = direction.side == .client ? direction.losses : client?.losses ?? 0
    return streams.open(OpenStream(number: stream, clientLosses: losses))
  }

  mutating func receive(
    _ content: RawSpan, isWhole: Bool, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let (side, stream) = (direction.side, header.stream)
    count(header.payloadLength, origin, &direction)
    guard let slot = slotForData(stream, origin, &direction, &handler), var half = streams[slot]?[side] else { return }
    guard !half.hasEnded else {
      handler.receive(Violation(.frameAfterEnd, stream: stream), origin)
      return
    }
    half.length += content.byteCount
    half.windowUsed += header.payloadLength
    if !isWhole { half.isLengthKnown = false }
    streams[slot]?[side] = half
    checkWindow(half, header, origin, direction)
    let endsStream = header.flags.contains(.endStream)
    handler.receive(
      content: content, isWhole: isWhole, endsStream: endsStream, on: StreamPlace(stream: stream, slot: slot), origin)
    if endsStream { end(slot, origin, &direction, &handler) }
  }

  mutating func slotForData(
    _ stream: UInt32, _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) -> Int? {
    if let slot = streams.slot(of: stream) { return slot }
    guard stream & 1 == 1 else { return nil }
    if direction.isIntact, direction.side == .client {
      if stream > highestClientStream { handler.receive(Violation(.idleStream, stream: stream), origin) }
      return nil
    }
    // The HEADERS may be lost.
    let mayBeNew =
      direction.side == .client
      ? stream > highestClientStream || mayBeMissed(stream, direction.losses)
      : !direction.isIntact && (stream > highestClientStream || mayBeMissed(stream, client?.losses))
    guard mayBeNew else { return nil }
    if direction.side == .client { noteOpened(stream, direction) }
    let slot = open(stream, direction, &handler)
    streams[slot]?[direction.side].isLengthKnown = false
    return slot
  }

  /// END_STREAM of one side.
  mutating func end(
    _ slot: Int, _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    guard var stream = streams[slot] else { return }
    stream[direction.side].hasEnded = true
    let half = stream[direction.side]
    streams[slot] = stream
    if let expected = half.expectedLength, half.isLengthKnown, direction.isIntact, expected != half.length {
      handler.receive(Violation(.contentLength, stream: stream.number), origin)
    }
    // The client's END_STREAM may be among what is lost since.
    let losses = direction.side == .client ? direction.losses : client?.losses ?? 0
    let mayHaveEnded = direction.side == .server && losses > stream.clientLosses
    if stream.client.hasEnded && stream.server.hasEnded || mayHaveEnded { close(slot, .closed, &handler) }
  }

  mutating func receiveReset(
    _ code: ErrorCode?, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    guard let slot = streams.slot(of: header.stream) else {
      if header.stream & 1 == 1, header.stream > highestClientStream, direction.side == .client, direction.isIntact {
        handler.receive(Violation(.resetOnIdleStream, stream: header.stream), origin)
      } else if header.stream != 0 {
        handler.receive(reset: code, onClosed: header.stream, origin)
      }
      return
    }
    handler.receive(reset: code, on: StreamPlace(stream: header.stream, slot: slot), origin)
    close(slot, .closed, &handler)
  }

  mutating func close(_ slot: Int, _ reason: StreamEnd, _ handler: inout some ConnectionHandler) {
    guard let stream = streams[slot] else { return }
    streams.close(slot)
    handler.closed(StreamPlace(stream: stream.number, slot: slot), reason)
  }
}
