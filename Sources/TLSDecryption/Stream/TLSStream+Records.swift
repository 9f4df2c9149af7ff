import Bytes
import TLSFoundation

/// From bytes to records, through gaps.
extension TLSStream {
  /// What became of a record.
  enum Step {
    case done
    /// It must wait.
    case wait(DirectionInput.Reason)
  }

  func read(_ bytes: RawSpan, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver) {
    var offset = 0
    readRecords(bytes, &offset, direction, point, emit)
    guard offset < bytes.byteCount else { return }
    let rest = bytes.extracting(offset..<bytes.byteCount)
    direction.partial.append(copying: rest)
    // What looks like a record is looked at when it is there to its end.
    guard direction.partial.count >= direction.wanted else { return }
    searchAndRead(direction, point, emit)
  }

  /// Reads records until all bytes are used, or the next record's beginning is not known.
  func readRecords(
    _ bytes: RawSpan, _ offset: inout Int, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    while offset < bytes.byteCount && !direction.isSearching {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      if direction.state == .failed {
        skipInFailure(rest, direction)
        offset = bytes.byteCount
        return
      }
      if direction.skip > 0 {
        let count = min(direction.skip, rest.byteCount)
        direction.keepTail(rest.extracting(0..<count))
        direction.skip -= count
        direction.region?.captured += count
        if direction.skip == 0 { direction.noteEnd(direction.tail.rawBytes) }
        offset += count
        continue
      }
      if direction.partial.isEmpty {
        if direction.records == 0, let length = beginning(rest, direction) {
          // Only a hello in SSL 2.0's form is no record.
          guard length <= rest.byteCount else {
            direction.partial.append(copying: rest)
            offset = bytes.byteCount
            return
          }
          readSSL2Hello(rest.extracting(0..<length), direction)
          offset += length
          continue
        }
        if rest.byteCount >= RecordHeader.length {
          let header = RecordHeader(rest, at: 0)
          guard isPlausible(header, direction) else {
            loseTrack(direction)
            continue
          }
          if header.recordLength <= rest.byteCount {
            let record = rest.extracting(0..<header.recordLength)
            if case .wait(let reason) = process(header, record, direction, point, emit) {
              wait(direction, for: reason, rest, point)
              offset = bytes.byteCount
              return
            }
            offset += header.recordLength
            continue
          }
        }
        direction.partial.append(copying: rest)
        offset = bytes.byteCount
        return
      }
      offset += complete(rest, direction, point, emit)
    }
  }

  /// Adds to the beginning of a record what `bytes` have of it, and reads it when it is whole. Returns the bytes used.
  private func complete(
    _ bytes: RawSpan, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) -> Int {
    if direction.records == 0, let wanted = beginning(direction.partial.rawBytes, direction) {
      let count = min(bytes.byteCount, wanted - direction.partial.count)
      direction.partial.append(copying: bytes.extracting(0..<count))
      // The fifth byte tells whether it is a hello, and how long.
      guard let length = beginning(direction.partial.rawBytes, direction) else {
        loseTrack(direction)
        return count
      }
      guard direction.partial.count == length else { return count }
      let hello = direction.partial
      direction.partial = []
      readSSL2Hello(hello.rawBytes, direction)
      return count
    }
    var wanted = RecordHeader.length
    if direction.partial.count >= RecordHeader.length {
      wanted = RecordHeader(direction.partial.rawBytes, at: 0).recordLength
    }
    let count = min(bytes.byteCount, wanted - direction.partial.count)
    direction.partial.append(copying: bytes.extracting(0..<count))
    guard direction.partial.count == wanted else { return count }
    let header = RecordHeader(direction.partial.rawBytes, at: 0)
    guard isPlausible(header, direction) else {
      loseTrack(direction)
      return count
    }
    guard direction.partial.count == header.recordLength else { return count }
    readAssembled(header, direction, point, emit)
    guard direction.isWaiting else { return count }
    let rest = bytes.extracting(count..<bytes.byteCount)
    if rest.byteCount > 0 { hold(rest, direction, point) }
    return bytes.byteCount
  }

  /// Reads the record that `partial` now holds whole.
  private func readAssembled(
    _ header: RecordHeader, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    // Taken out while it is read, because reading may keep other bytes there.
    var record: [UInt8] = []
    swap(&record, &direction.partial)
    if case .wait(let reason) = process(header, record.rawBytes, direction, point, emit) {
      wait(direction, for: reason, record.rawBytes, point)
    } else if direction.partial.isEmpty {
      record.removeAll(keepingCapacity: true)
      swap(&record, &direction.partial)
    }
  }

  /// Whether a record may begin so in this direction.
  func isPlausible(_ header: RecordHeader, _ direction: TLSDirection) -> Bool {
    guard header.isPlausible else { return false }
    guard direction.state == .sealed, let active = direction.active else { return true }
    if active.decryptor.version >= .tls13 { return header.version <= .tls12 }
    return header.version == active.decryptor.version
  }

  /// The direction's first bytes: the length of a hello in SSL 2.0's form, `nil` for everything else.
  private func beginning(_ bytes: RawSpan, _ direction: TLSDirection) -> Int? {
    guard !direction.hadGap, bytes.byteCount > 0 else { return nil }
    if direction.side == .client, bytes.byte(at: 0) & 0x80 != 0 {
      if bytes.byteCount < 5 { return 5 }
      if SSL2Hello.begins(bytes) { return 2 + Int(bytes.uint16(at: 0) & 0x7fff) }
    }
    return nil
  }

  private func readSSL2Hello(_ bytes: RawSpan, _ direction: TLSDirection) {
    direction.records += 1
    guard let hello = SSL2Hello(bytes) else { return }
    direction.negotiation.clientRandom = hello.random
    direction.negotiation.keep(hello.message, fromClient: true, maximumLength: limits.maximumHandshakeLength)
  }

  // MARK: one record

  /// Reads a whole record: `record` is its header and its fragment.
  private func process(
    _ header: RecordHeader, _ record: RawSpan, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) -> Step {
    let fragment = record.extracting(RecordHeader.length..<record.byteCount)
    switch direction.state {
    case .sealed:
      if case .wait(let reason) = open(header, fragment, direction, point, emit) { return .wait(reason) }
      direction.records += 1
    case .clear:
      if direction.records == 0 && !direction.hadGap && !isHello(header, fragment) { beginInside(direction) }
      if isSealed(header, fragment, direction) {
        direction.state = .sealed
        direction.keyedHandshakes = direction.negotiation.number + 1
        return process(header, record, direction, point, emit)
      }
      direction.records += 1
      readClear(header, fragment, direction)
    case .failed: direction.region?.captured += record.byteCount
    }
    return .done
  }

  private func isHello(_ header: RecordHeader, _ fragment: RawSpan) -> Bool {
    switch header.type {
    case .handshake: fragment.byteCount > 0 && fragment.byte(at: 0) <= 2
    case .alert: fragment.byteCount == 2
    default: false
    }
  }

  /// The capture began in the middle of this direction.
  func beginInside(_ direction: TLSDirection) {
    var region = SkippedRegion()
    region.highest = limits.maximumMissingRecords
    region.isBeforeCapture = true
    region.isBeforeData = true
    direction.region = region
    direction.hadGap = true
  }

  /// Whether a record that ought to be in the clear is sealed: data always are, and the record before which keys changed
  /// may be missing.
  func isSealed(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) -> Bool {
    switch header.type {
    case .applicationData: return true
    case .handshake:
      guard direction.hadGap, direction.handshake.isEmpty else { return false }
      return !isClearHandshake(fragment)
    case .alert: return direction.hadGap && fragment.byteCount != 2
    default: return false
    }
  }

  /// Whether a fragment begins with a handshake message that is not sealed.
  func isClearHandshake(_ fragment: RawSpan) -> Bool {
    guard fragment.byteCount >= 4 else { return false }
    let kind = fragment.byte(at: 0)
    return (kind <= 24 && kind != 20) && HandshakeMessage.length(fragment) <= limits.maximumHandshakeLength
  }

  func readClear(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) {
    switch header.type {
    case .handshake:
      direction.handshake.add(fragment, maximumLength: limits.maximumHandshakeLength) { receive($0, direction) }
    case .alert: note(Alert(fragment), direction)
    case .changeCipherSpec:
      // In TLS 1.3 it has no meaning; there the first sealed record shows itself.
      if direction.negotiation.version.map({ $0 < .tls13 }) ?? true { changeKeys(direction) }
    default: break
    }
  }
}
