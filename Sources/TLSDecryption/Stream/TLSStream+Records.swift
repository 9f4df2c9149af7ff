import Bytes
import TLSFoundation

/// Cuts bytes into records, through gaps.
extension TLSStream {
  /// The outcome of a record.
  enum Step {
    case done
    /// The record has to wait.
    case wait(DirectionInput.Reason)
  }

  func read(_ bytes: RawSpan, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver) {
    var offset = 0
    readRecords(bytes, &offset, direction, point, emit)
    guard offset < bytes.byteCount else { return }
    if direction.records.isSearching { direction.searched.append((bytes.byteCount - offset, point)) }
    guard direction.records.collect(bytes.extracting(offset..<bytes.byteCount)) else { return }
    searchAndRead(direction, point, emit)
  }

  /// Reads records until all bytes are used, or the next record's beginning is not known.
  func readRecords(
    _ bytes: RawSpan, _ offset: inout Int, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    while true {
      switch direction.records.next(in: bytes, at: &offset, direction.keys.expectation) {
      case .record(let header, let place):
        guard case .wait(let reason) = process(header, bytes.extracting(place), direction, point, emit) else {
          continue
        }
        wait(direction, for: reason, bytes.extracting(place.lowerBound..<bytes.byteCount), point)
        offset = bytes.byteCount
        return
      case .assembled(let header):
        readAssembled(header, direction, point, emit)
        guard direction.input.isWaiting else { continue }
        if offset < bytes.byteCount { hold(bytes.extracting(offset..<bytes.byteCount), direction, point) }
        offset = bytes.byteCount
        return
      case .hello(let hello): readSSL2Hello(hello.rawBytes, direction)
      case .passed(let tail): direction.keys.noteEnd(tail.bytes.rawBytes)
      case .lost:
        direction.handshake.reset()
        return
      case .done: return
      }
    }
  }

  /// Reads a record that came in pieces.
  private func readAssembled(
    _ header: RecordHeader, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    var record = direction.records.takePartial()
    if case .wait(let reason) = process(header, record.rawBytes, direction, point, emit) {
      wait(direction, for: reason, record.rawBytes, point)
    } else {
      // Its memory is used again.
      record.removeAll(keepingCapacity: true)
      direction.records.returnPartial(record)
    }
  }

  private func readSSL2Hello(_ bytes: RawSpan, _ direction: TLSDirection) {
    direction.records.count += 1
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
    if !direction.keys.isSealed {
      if direction.records.count == 0 && !direction.records.hadGap && !isHello(header, fragment) {
        direction.records.beginInside()
      }
      guard isSealed(header, fragment, direction) else {
        direction.records.count += 1
        readClear(header, fragment, direction)
        return .done
      }
      direction.seal()
    }
    if case .wait(let reason) = open(header, fragment, direction, point, emit) { return .wait(reason) }
    direction.records.count += 1
    return .done
  }

  private func isHello(_ header: RecordHeader, _ fragment: RawSpan) -> Bool {
    switch header.type {
    case .handshake: fragment.byteCount > 0 && fragment.byte(at: 0) <= 2
    case .alert: fragment.byteCount == 2
    default: false
    }
  }

  /// Whether a record that ought to be in the clear is sealed: data always are, and the record before which keys changed
  /// may be missing.
  func isSealed(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) -> Bool {
    switch header.type {
    case .applicationData: return true
    case .handshake:
      guard direction.records.hadGap, direction.handshake.isEmpty else { return false }
      return !isClearHandshake(fragment)
    case .alert: return direction.records.hadGap && fragment.byteCount != 2
    default: return false
    }
  }

  /// Whether a fragment consists of unencrypted handshake messages.
  ///
  /// An encrypted message that begins like an unencrypted one is recognised by its length: a record that is shorter
  /// than senders make them (RFC 6066 §4: 512 bytes at least) ends with a message.
  func isClearHandshake(_ fragment: RawSpan) -> Bool {
    let shortestCut = 512
    var offset = 0
    while fragment.byteCount - offset >= 4 {
      let header = fragment.extracting(offset..<offset + 4)
      let kind = header.byte(at: 0)
      guard kind <= 24, kind != 20, HandshakeMessage.length(header) <= limits.maximumHandshakeLength else {
        return false
      }
      offset += 4 + HandshakeMessage.length(header)
    }
    return offset == fragment.byteCount || fragment.byteCount >= shortestCut
  }

  func readClear(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) {
    switch header.type {
    case .handshake:
      direction.handshake.add(fragment, maximumLength: limits.maximumHandshakeLength) { receive($0, direction) }
    case .alert: note(Alert(fragment), direction)
    case .changeCipherSpec:
      // In TLS 1.3 it has no meaning; there the first encrypted record is recognised by itself.
      if direction.negotiation.version.map({ $0 < .tls13 }) ?? true { changeKeys(direction) }
    default: break
    }
  }
}
