import Bytes

/// Field blocks: how they are put together from frames, and decoded.
extension ConnectionReader {
  /// Notes that blocks are lost that changed the table.
  mutating func loseTable(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    direction.decoder.lose()
    noteTableLoss(direction, &handler)
  }

  func noteTableLoss(_ direction: borrowing Direction, _ handler: inout some ConnectionHandler) {
    if tellsTableLosses { handler.receiveLossOfTable(of: direction.side) }
  }

  mutating func begin(
    _ block: RawSpan, _ header: FrameHeader, isPromise: Bool, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let pending = Direction.PendingBlock(
      stream: header.stream, endsStream: !isPromise && header.flags.contains(.endStream), isPromise: isPromise,
      origin: origin)
    if header.flags.contains(.endHeaders), block.byteCount <= limits.blockLength {
      return decode(block, isCut: false, pending, &direction, &handler)
    }
    direction.pending = pending
    direction.block.removeAll(keepingCapacity: true)
    append(block, nil, origin, &direction)
    if header.flags.contains(.endHeaders) { endWholeBlock(&direction, &handler) }
  }

  mutating func resume(
    _ part: RawSpan, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    guard direction.pending != nil else {
      if direction.isIntact {
        handler.receive(Violation(.continuationWithoutBlock, stream: header.stream), origin)
      }
      return loseTable(&direction, &handler)
    }
    append(part, header, origin, &direction)
    if header.flags.contains(.endHeaders) { endWholeBlock(&direction, &handler) }
  }

  /// Appends a part of the pending block, as far as the limits allow.
  mutating func append(
    _ part: RawSpan, _ continuation: FrameHeader?, _ origin: FrameOrigin, _ direction: inout Direction
  ) {
    if let continuation {
      direction.pending?.continuations += 1
      direction.pending?.origin.length += continuation.frameLength
      direction.pending?.origin.arrival = origin.arrival
    }
    guard let pending = direction.pending, pending.excess == nil else { return }
    if pending.continuations > limits.continuations {
      direction.pending?.excess = .continuationFlood
    } else if direction.block.count + part.byteCount > limits.blockLength {
      direction.pending?.excess = .blockTooLong
    } else {
      direction.block.append(copying: part)
    }
  }

  mutating func endWholeBlock(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    guard let pending = direction.pending else { return }
    direction.pending = nil
    finishBlock(pending, isCut: false, &direction, &handler)
  }

  /// Ends a block whose rest does not come.
  mutating func endPendingBlock(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    guard let pending = direction.pending else { return }
    direction.pending = nil
    finishBlock(pending, isCut: true, &direction, &handler)
  }

  mutating func finishBlock(
    _ pending: Direction.PendingBlock, isCut: Bool, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    if let excess = pending.excess {
      handler.receive(Violation(excess, stream: pending.stream), pending.origin)
      direction.fields.removeAll()
      loseTable(&direction, &handler)
      return receiveFields(pending, .lost, &direction, &handler)
    }
    var block: [UInt8] = []
    swap(&block, &direction.block)
    decode(block.rawBytes, isCut: isCut, pending, &direction, &handler)
    swap(&block, &direction.block)
  }

  mutating func decode(
    _ block: RawSpan, isCut: Bool, _ pending: Direction.PendingBlock, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    if let rule = direction.decoder.decode(block, isCut: isCut, into: &direction.fields) {
      handler.receive(Violation(rule, stream: pending.stream), pending.origin)
      if rule.losesTable { noteTableLoss(direction, &handler) }
    }
    receiveFields(pending, direction.fields.isCut ? .cut : .whole, &direction, &handler)
  }

  /// A field block that cannot be read at all.
  mutating func loseBlock(
    _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    if let pending = direction.pending {
      direction.pending = nil
      finishBlock(pending, isCut: true, &direction, &handler)
    }
    loseTable(&direction, &handler)
    guard header.type == .headers, header.stream != 0 else { return }
    direction.fields.removeAll()
    let lost = Direction.PendingBlock(
      stream: header.stream, endsStream: header.flags.contains(.endStream), isPromise: false, origin: origin)
    receiveFields(lost, .lost, &direction, &handler)
  }
}
