import Bytes
import TLSFoundation

/// From bytes to records, through gaps.
extension TLSStream {
  /// What became of a record.
  enum Step {
    case done
    /// It must wait.
    case wait(TLSHalf.Waiting)
  }

  func read(_ bytes: RawSpan, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver) {
    var offset = 0
    readRecords(bytes, &offset, half, point, emit)
    guard offset < bytes.byteCount else { return }
    let rest = bytes.extracting(offset..<bytes.byteCount)
    half.partial.append(copying: rest)
    // What looks like a record is looked at when it is there to its end.
    guard half.partial.count >= half.wanted else { return }
    searchAndRead(half, point, emit)
  }

  /// Reads records until all bytes are used, or the next record's beginning is not known.
  func readRecords(
    _ bytes: RawSpan, _ offset: inout Int, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    while offset < bytes.byteCount && !half.isSearching {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      if half.state == .failed {
        skipInFailure(rest, half)
        offset = bytes.byteCount
        return
      }
      if half.skip > 0 {
        let count = min(half.skip, rest.byteCount)
        half.keepTail(rest.extracting(0..<count))
        half.skip -= count
        half.region?.captured += count
        if half.skip == 0 { half.noteEnd(half.tail.rawBytes) }
        offset += count
        continue
      }
      if half.partial.isEmpty {
        if half.records == 0, let length = beginning(rest, half) {
          // Only a hello in SSL 2.0's form is no record.
          guard length <= rest.byteCount else {
            half.partial.append(copying: rest)
            offset = bytes.byteCount
            return
          }
          readSSL2Hello(rest.extracting(0..<length), half)
          offset += length
          continue
        }
        if rest.byteCount >= RecordHeader.length {
          let header = RecordHeader(rest, at: 0)
          guard isPlausible(header, half) else {
            loseTrack(half)
            continue
          }
          if header.recordLength <= rest.byteCount {
            let record = rest.extracting(0..<header.recordLength)
            if case .wait(let reason) = process(header, record, half, point, emit) {
              wait(half, for: reason, rest, point)
              offset = bytes.byteCount
              return
            }
            offset += header.recordLength
            continue
          }
        }
        half.partial.append(copying: rest)
        offset = bytes.byteCount
        return
      }
      offset += complete(rest, half, point, emit)
    }
  }

  /// Adds to the beginning of a record what `bytes` have of it, and reads it when it is whole. Returns the bytes used.
  private func complete(
    _ bytes: RawSpan, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) -> Int {
    if half.records == 0, let wanted = beginning(half.partial.rawBytes, half) {
      let count = min(bytes.byteCount, wanted - half.partial.count)
      half.partial.append(copying: bytes.extracting(0..<count))
      // The fifth byte tells whether it is a hello, and how long.
      guard let length = beginning(half.partial.rawBytes, half) else {
        loseTrack(half)
        return count
      }
      guard half.partial.count == length else { return count }
      let hello = half.partial
      half.partial = []
      readSSL2Hello(hello.rawBytes, half)
      return count
    }
    var wanted = RecordHeader.length
    if half.partial.count >= RecordHeader.length { wanted = RecordHeader(half.partial.rawBytes, at: 0).recordLength }
    let count = min(bytes.byteCount, wanted - half.partial.count)
    half.partial.append(copying: bytes.extracting(0..<count))
    guard half.partial.count == wanted else { return count }
    let header = RecordHeader(half.partial.rawBytes, at: 0)
    guard isPlausible(header, half) else {
      loseTrack(half)
      return count
    }
    guard half.partial.count == header.recordLength else { return count }
    readAssembled(header, half, point, emit)
    guard half.isWaiting else { return count }
    let rest = bytes.extracting(count..<bytes.byteCount)
    if rest.byteCount > 0 { hold(rest, half, point) }
    return bytes.byteCount
  }

  /// Reads the record that `partial` now holds whole.
  private func readAssembled(
    _ header: RecordHeader, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    // Taken out while it is read, because reading may keep other bytes there.
    var record: [UInt8] = []
    swap(&record, &half.partial)
    if case .wait(let reason) = process(header, record.rawBytes, half, point, emit) {
      wait(half, for: reason, record.rawBytes, point)
    } else if half.partial.isEmpty {
      record.removeAll(keepingCapacity: true)
      swap(&record, &half.partial)
    }
  }

  /// Whether a record may begin so in this direction.
  func isPlausible(_ header: RecordHeader, _ half: TLSHalf) -> Bool {
    guard header.isPlausible else { return false }
    guard half.state == .sealed, let active = half.active else { return true }
    if active.decryptor.version >= .tls13 { return header.version <= .tls12 }
    return header.version == active.decryptor.version
  }

  /// The direction's first bytes: the length of a hello in SSL 2.0's form, `nil` for everything else.
  private func beginning(_ bytes: RawSpan, _ half: TLSHalf) -> Int? {
    guard !half.hadGap, bytes.byteCount > 0 else { return nil }
    if half.side == .client, bytes.byte(at: 0) & 0x80 != 0 {
      if bytes.byteCount < 5 { return 5 }
      if SSL2Hello.begins(bytes) { return 2 + Int(bytes.uint16(at: 0) & 0x7fff) }
    }
    return nil
  }

  private func readSSL2Hello(_ bytes: RawSpan, _ half: TLSHalf) {
    half.records += 1
    guard let hello = SSL2Hello(bytes) else { return }
    half.negotiation.clientRandom = hello.random
    half.negotiation.keep(hello.message, fromClient: true, maximumLength: limits.maximumHandshakeLength)
  }

  // MARK: one record

  /// Reads a whole record: `record` is its header and its fragment.
  private func process(
    _ header: RecordHeader, _ record: RawSpan, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) -> Step {
    let fragment = record.extracting(RecordHeader.length..<record.byteCount)
    switch half.state {
    case .sealed:
      if case .wait(let reason) = open(header, fragment, half, point, emit) { return .wait(reason) }
      half.records += 1
    case .clear:
      if half.records == 0 && !half.hadGap && !isHello(header, fragment) { beginInside(half) }
      if isSealed(header, fragment, half) {
        half.state = .sealed
        half.keyedHandshakes = half.negotiation.number + 1
        return process(header, record, half, point, emit)
      }
      half.records += 1
      readClear(header, fragment, half)
    case .failed: half.region?.captured += record.byteCount
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
  func beginInside(_ half: TLSHalf) {
    var region = SkippedRegion()
    region.highest = limits.maximumMissingRecords
    region.isBeforeCapture = true
    region.isBeforeData = true
    half.region = region
    half.hadGap = true
  }

  /// Whether a record that ought to be in the clear is sealed: data always are, and the record before which keys changed
  /// may be missing.
  func isSealed(_ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf) -> Bool {
    switch header.type {
    case .applicationData: return true
    case .handshake:
      guard half.hadGap, half.handshake.isEmpty else { return false }
      return !isClearHandshake(fragment)
    case .alert: return half.hadGap && fragment.byteCount != 2
    default: return false
    }
  }

  /// Whether a fragment begins with a handshake message that is not sealed.
  func isClearHandshake(_ fragment: RawSpan) -> Bool {
    guard fragment.byteCount >= 4 else { return false }
    let kind = fragment.byte(at: 0)
    return (kind <= 24 && kind != 20) && HandshakeMessage.length(fragment) <= limits.maximumHandshakeLength
  }

  func readClear(_ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf) {
    switch header.type {
    case .handshake:
      half.handshake.add(fragment, maximumLength: limits.maximumHandshakeLength) { receive($0, half) }
    case .alert: note(Alert(fragment), half)
    case .changeCipherSpec:
      // In TLS 1.3 it has no meaning; there the first sealed record shows itself.
      if half.negotiation.version.map({ $0 < .tls13 }) ?? true { changeKeys(half) }
    default: break
    }
  }
}
