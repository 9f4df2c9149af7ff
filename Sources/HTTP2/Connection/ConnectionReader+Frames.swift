import Bytes

/// Frames of one direction.
extension ConnectionReader {
  mutating func process(
    _ place: FrameReader.Place, _ payload: RawSpan, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let header = place.header
    let origin = FrameOrigin(
      side: direction.side, offset: place.offset, length: header.frameLength, arrival: place.arrival)
    if !direction.hasFrames {
      direction.hasFrames = true
      if direction.isIntact, header.type != .settings || header.flags.contains(.acknowledgement) {
        handler.receive(Violation(.firstFrame), origin)
      }
    }
    if let pending = direction.pending, header.type != .continuation || header.stream != pending.stream {
      if direction.isIntact { handler.receive(Violation(.blockInterrupted, stream: header.stream), origin) }
      endPendingBlock(&direction, &handler)
      loseTable(&direction, &handler)
    }
    if let limit = direction.allowed?.payload, header.payloadLength > limit {
      // On an idle stream there is no stream error.
      let isConnection =
        header.stream == 0 || header.type.carriesFields
        || direction.side == .client && header.stream > highestClientStream
      handler.receive(
        Violation(isConnection ? .fieldFrameTooLong : .frameTooLong, stream: header.stream), origin)
    }
    guard place.isWhole else { return processCut(header, payload, origin, &direction, &handler) }
    let content: FrameContent
    do throws(Violation) {
      content = try FrameContent(parsing: payload, of: header)
    } catch {
      handler.receive(error, origin)
      if header.type.carriesFields { loseBlock(header, origin, &direction, &handler) }
      return
    }
    switch content {
    case .data(let range):
      receive(payload.extracting(range), isWhole: true, header, origin, &direction, &handler)
    case .headers(let block, _):
      begin(payload.extracting(block), header, isPromise: false, origin, &direction, &handler)
    case .pushPromise(_, let block):
      if direction.side == .client {
        handler.receive(Violation(.pushPromiseFromClient), origin)
      } else if client?.areSettingsKnown == true, client?.inForce.isPushEnabled == false {
        handler.receive(Violation(.pushPromiseDisabled), origin)
      }
      begin(payload.extracting(block), header, isPromise: true, origin, &direction, &handler)
    case .continuation(let block):
      resume(payload.extracting(block), header, origin, &direction, &handler)
    case .reset(let code): receiveReset(code, header, origin, &direction, &handler)
    case .settings(let isAcknowledgement):
      if isAcknowledgement {
        receiveAcknowledgement(origin, &direction, &handler)
      } else {
        receive(Setting.list(payload), origin, &direction, &handler)
      }
    case .ping(let data, let isAcknowledgement):
      handler.receive(ping: data, isAcknowledgement: isAcknowledgement, origin)
    case .goAway(let lastStream, let code, let debugData):
      handler.receive(goAway: lastStream, code, debugData: payload.extracting(debugData), origin)
    case .windowUpdate(let increment): receiveWindowUpdate(increment, header, origin, &direction, &handler)
    case .priority: handler.receivePriority(origin)
    case .undefined: break
    }
  }

  /// A frame whose payload is lost or too long from some place on.
  mutating func processCut(
    _ header: FrameHeader, _ payload: RawSpan, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    switch header.type {
    case .data:
      guard header.stream != 0 else { return }
      let start = FrameContent.start(in: payload, of: header) ?? payload.byteCount
      receive(
        payload.extracting(start..<payload.byteCount), isWhole: false, header, origin, &direction, &handler)
    case .headers, .pushPromise, .continuation:
      guard header.stream != 0 else { return loseTable(&direction, &handler) }
      guard let start = FrameContent.start(in: payload, of: header), start < payload.byteCount else {
        return loseBlock(header, origin, &direction, &handler)
      }
      // The padding at the end may be there already.
      let padding = header.flags.contains(.padded) && header.type != .continuation ? Int(payload.byte(at: 0)) : 0
      let end = max(start, min(payload.byteCount, header.payloadLength - padding))
      let part = payload.extracting(start..<end)
      if header.type == .continuation {
        guard direction.pending != nil else { return loseTable(&direction, &handler) }
        append(part, header, origin, &direction)
      } else {
        let isPromise = header.type == .pushPromise
        direction.pending = Direction.PendingBlock(
          stream: header.stream, endsStream: !isPromise && header.flags.contains(.endStream), isPromise: isPromise,
          origin: origin)
        direction.block.removeAll(keepingCapacity: true)
        append(part, nil, origin, &direction)
      }
      endPendingBlock(&direction, &handler)
    case .reset: receiveReset(nil, header, origin, &direction, &handler)
    case .settings: loseSettings(&direction, &handler)
    case .goAway where payload.byteCount >= 8 && header.stream == 0:
      handler.receive(
        goAway: payload.uint32(at: 0) & 0x7fff_ffff, ErrorCode(rawValue: payload.uint32(at: 4)),
        debugData: payload.extracting(8..<payload.byteCount), origin)
    default: break
    }
    // A window that was enlarged by an unknown amount is not known.
    if header.type == .windowUpdate { direction.losses += 1 }
  }
}
