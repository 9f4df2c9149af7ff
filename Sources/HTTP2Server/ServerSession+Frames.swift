import Bytes
import HTTP2

/// Frames of the client.
extension ServerSession {
  /// - Parameter start: the offset of the payload in the bytes that were given to `next`.
  mutating func take(_ header: FrameHeader, _ payload: RawSpan, at start: Int) -> ServerEvent? {
    if let pending, header.type != .continuation || header.stream != pending.stream {
      return fail(Violation(.blockInterrupted, stream: header.stream))
    }
    if state == .firstFrame {
      guard header.type == .settings, !header.flags.contains(.acknowledgement) else {
        return fail(Violation(.firstFrame))
      }
      state = .open
    }
    let content: FrameContent
    do throws(Violation) {
      content = try FrameContent(parsing: payload, of: header)
    } catch {
      return take(error)
    }
    switch content {
    case .data(let range): return takeData(payload.extracting(range), start + range.lowerBound, header)
    case .headers(let range, _): return takeHeaders(payload.extracting(range), header)
    case .continuation(let range): return takeContinuation(payload.extracting(range), header)
    case .settings(let isAcknowledgement): return takeSettings(payload, isAcknowledgement)
    case .ping(let data, let isAcknowledgement): return takePing(data, isAcknowledgement)
    case .windowUpdate(let increment): return takeWindowUpdate(Int(increment), header.stream)
    case .reset(let code): return takeReset(code, header.stream)
    case .goAway(let lastStream, let code, _): return .goAway(lastStream: lastStream, code)
    case .pushPromise: return fail(Violation(.pushPromiseFromClient, stream: header.stream))
    case .priority, .undefined:
      guard floods.ignoredFrames.take(options.floods.ignoredFrames, second: second) else { return fail(.ignoredFrames) }
      return nil
    }
  }

  /// A rule that a frame breaks by itself.
  private mutating func take(_ violation: Violation) -> ServerEvent? {
    guard violation.isStreamError, violation.stream <= highest, violation.stream & 1 == 1 else {
      return fail(violation)
    }
    return fail(violation.rule, onStream: violation.stream)
  }

  // MARK: field blocks

  private mutating func takeHeaders(_ part: RawSpan, _ header: FrameHeader) -> ServerEvent? {
    guard header.stream & 1 == 1 else { return fail(Violation(.streamParity, stream: header.stream)) }
    let endsStream = header.flags.contains(.endStream)
    guard part.byteCount <= options.maximumBlock else { return fail(Violation(.blockTooLong, stream: header.stream)) }
    if header.flags.contains(.endHeaders) { return takeBlock(part, header.stream, endsStream) }
    pending = PendingBlock(stream: header.stream, endsStream: endsStream)
    block.removeAll(keepingCapacity: true)
    block.append(copying: part)
    return nil
  }

  private mutating func takeContinuation(_ part: RawSpan, _ header: FrameHeader) -> ServerEvent? {
    guard var pending else { return fail(Violation(.continuationWithoutBlock, stream: header.stream)) }
    pending.frames += 1
    self.pending = pending
    guard pending.frames <= options.floods.continuations else { return fail(.continuations) }
    guard block.count + part.byteCount <= options.maximumBlock else {
      return fail(Violation(.blockTooLong, stream: header.stream))
    }
    block.append(copying: part)
    guard header.flags.contains(.endHeaders) else { return nil }
    self.pending = nil
    // The value moves out, so that it can be read while the session changes.
    let whole = block
    block = []
    let event = takeBlock(whole.rawBytes, pending.stream, pending.endsStream)
    block = whole
    return event
  }

  private mutating func takeBlock(_ bytes: RawSpan, _ stream: UInt32, _ endsStream: Bool) -> ServerEvent? {
    // Also of streams that are refused or reset: later blocks refer to the table.
    if let rule = decoder.decode(bytes, into: &fields) { return fail(Violation(rule, stream: stream)) }
    if let slot = streams.slot(of: stream) { return takeTrailers(slot, stream, endsStream) }
    guard stream > highest else {
      // Frames that were on their way when it was reset, or excluded by a GOAWAY, are no mistake (sections 5.1 and 6.8).
      if streams.wasReset(stream) { return nil }
      return fail(Violation(.streamNumberNotRising, stream: stream))
    }
    let before = highest
    highest = stream
    if let lastProcessed, stream > lastProcessed {
      streams.noteReset(stream)
      return .refused(stream: stream, .goAway)
    }
    if streams.count >= mostStreams { return refuse(stream, before) }
    let length: Int?
    do throws(Rule) {
      try MessageRules.check(fields, isRequest: true, isTrailers: false, isWhole: true, allowsExtendedConnect: false)
      length = try MessageRules.contentLength(fields)
    } catch {
      return fail(error, onStream: stream)
    }
    let slot = streams.open(stream, sendWindow: peer.initialWindowSize)
    streams[slot].expectedLength = length
    if endsStream { queued = end(slot, .kept) }
    return .began(ServerStream(number: stream, slot: slot))
  }

  /// The most streams that the client may have open: until it acknowledges a limit, it may keep to the one before.
  private var mostStreams: Int {
    var most = streamLimit ?? .max
    for limit in unacknowledged { most = max(most, limit ?? .max) }
    return min(most, options.maximumOpenStreams)
  }

  /// - Parameter before: the highest stream before this one.
  private mutating func refuse(_ stream: UInt32, _ before: UInt32) -> ServerEvent? {
    switch options.excess {
    case .refused: writeReset(stream, .refusedStream)
    case .protocolError: writeReset(stream, .protocolError)
    case .goAway:
      highest = before
      queued = fail(Violation(.tooManyStreams, stream: 0))
    }
    streams.noteReset(stream)
    return .refused(stream: stream, .streamLimit)
  }

  private mutating func takeTrailers(_ slot: Int, _ stream: UInt32, _ endsStream: Bool) -> ServerEvent? {
    guard streams[slot].isClientOpen else { return fail(.frameAfterEnd, onStream: stream) }
    guard endsStream else { return fail(.trailersWithoutEnd, onStream: stream) }
    do throws(Rule) {
      try MessageRules.check(fields, isRequest: true, isTrailers: true, isWhole: true)
    } catch {
      return fail(error, onStream: stream)
    }
    return end(slot, .kept)
  }

  /// END_STREAM.
  private mutating func end(_ slot: Int, _ content: ServerContent) -> ServerEvent? {
    let stream = streams[slot]
    streams[slot].isClientOpen = false
    if let expected = stream.expectedLength, expected != stream.length {
      return fail(.contentLength, onStream: stream.number)
    }
    // It was long enough to be answered before its end.
    guard !stream.isRequestEnded else { return nil }
    streams[slot].isRequestEnded = true
    return .ended(ServerStream(number: stream.number, slot: slot), content, length: stream.length)
  }

  // MARK: content

  private mutating func takeData(_ content: RawSpan, _ start: Int, _ header: FrameHeader) -> ServerEvent? {
    let (number, length) = (header.stream, header.payloadLength)
    windowUsed += length
    guard windowUsed <= Self.connectionWindow else { return fail(Violation(.windowExceeded)) }
    if opensWindows, windowUsed > Self.connectionWindow / 2 {
      writeWindowUpdate(windowUsed, stream: 0)
      windowUsed = 0
    }
    let endsStream = header.flags.contains(.endStream)
    if content.byteCount == 0, !endsStream,
      !floods.emptyFrames.take(options.floods.emptyFrames, second: second)
    {
      return fail(.emptyFrames)
    }
    guard let slot = streams.slot(of: number) else {
      if number > highest || number & 1 == 0 { return fail(Violation(.idleStream, stream: number)) }
      if streams.wasReset(number) { return nil }
      return fail(.frameAfterEnd, onStream: number)
    }
    guard streams[slot].isClientOpen else { return fail(.frameAfterEnd, onStream: number) }
    streams[slot].windowUsed += length
    guard streams[slot].windowUsed <= streamWindow else { return fail(.windowExceeded, onStream: number) }
    let isFirst = streams[slot].length == 0
    streams[slot].length += content.byteCount
    if endsStream, isFirst {
      let kept = min(content.byteCount, options.keptContent)
      return end(slot, .bytes(start..<start + kept))
    }
    let room = options.keptContent - streams[slot].content.count
    if room > 0, content.byteCount > 0 {
      streams.keep(content.extracting(0..<min(room, content.byteCount)), slot)
    }
    if endsStream { return end(slot, .kept) }
    if opensWindows, streams[slot].windowUsed > options.streamWindow / 2 {
      writeWindowUpdate(streams[slot].windowUsed, stream: number)
      streams[slot].windowUsed = 0
    }
    guard streams[slot].length > options.maximumContent, !streams[slot].isRequestEnded else { return nil }
    streams[slot].isRequestEnded = true
    return .ended(ServerStream(number: number, slot: slot), .kept, length: streams[slot].length)
  }

  /// The window of a stream: a client that does not know a smaller one yet keeps to the usual one (section 6.9.3).
  private var streamWindow: Int {
    streamLimit == nil ? max(options.streamWindow, Self.connectionWindow) : options.streamWindow
  }

  private mutating func writeWindowUpdate(_ increment: Int, stream: UInt32) {
    output.writeWindowUpdate(UInt32(clamping: increment), stream: stream)
    counts.windowUpdatesSent += 1
  }

  // MARK: the connection

  private mutating func takeSettings(_ payload: RawSpan, _ isAcknowledgement: Bool) -> ServerEvent? {
    guard !isAcknowledgement else {
      if !unacknowledged.isEmpty { streamLimit = unacknowledged.removeFirst() ?? .max }
      return nil
    }
    guard floods.settings.take(options.floods.settings, second: second) else { return fail(.settings) }
    for setting in Setting.list(payload) {
      switch setting.name {
      case .initialWindowSize:
        let change = Int(setting.value) - peer.initialWindowSize
        for slot in streams.inOrder() {
          streams[slot].sendWindow += change
          guard streams[slot].sendWindow <= Self.largestWindow else { return fail(Violation(.windowOverflow)) }
        }
      case .headerTableSize:
        // Answers refer to no entry, but a smaller table has to be confirmed (RFC 7541 section 4.2).
        let size = Int(setting.value)
        if size < min(peer.headerTableSize, 4_096) { owedTableSize = min(size, owedTableSize ?? size) }
      default: break
      }
      peer.apply(setting)
    }
    output.writeSettingsAcknowledgement()
    sendBlocked()
    return nil
  }

  private mutating func takePing(_ data: UInt64, _ isAcknowledgement: Bool) -> ServerEvent? {
    guard !isAcknowledgement else { return nil }
    guard floods.pings.take(options.floods.pings, second: second) else { return fail(.pings) }
    counts.pings += 1
    output.writePing(data, isAcknowledgement: true)
    return nil
  }

  private mutating func takeWindowUpdate(_ increment: Int, _ number: UInt32) -> ServerEvent? {
    guard floods.windowUpdates.take(options.floods.windowUpdates, second: second) else { return fail(.windowUpdates) }
    if number == 0 {
      sendWindow += increment
      guard sendWindow <= Self.largestWindow else { return fail(Violation(.windowOverflow)) }
      sendWaiting()
    } else if let slot = streams.slot(of: number) {
      streams[slot].sendWindow += increment
      guard streams[slot].sendWindow <= Self.largestWindow else { return fail(.windowOverflow, onStream: number) }
      if !streams[slot].unsent.isEmpty { send(slot) }
    } else if number > highest || number & 1 == 0 {
      return fail(Violation(.windowUpdateOnIdleStream, stream: number))
    }
    return nil
  }

  private mutating func takeReset(_ code: ErrorCode, _ number: UInt32) -> ServerEvent? {
    guard let slot = streams.slot(of: number) else {
      if number > highest || number & 1 == 0 { return fail(Violation(.resetOnIdleStream, stream: number)) }
      return nil
    }
    counts.resetsReceived += 1
    guard floods.resets.take(options.floods.resets, second: second) else { return fail(.resets) }
    close(slot, isReset: true)
    return .abandoned(ServerStream(number: number, slot: slot), code, by: .client)
  }
}
