import Bytes

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
    while offset < bytes.byteCount {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      if half.state == .failed {
        skipInFailure(rest, half)
        return
      }
      if half.isSearching {
        half.partial.append(copying: rest)
        search(half, point, emit)
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
              return
            }
            offset += header.recordLength
            continue
          }
        }
        half.partial.append(copying: rest)
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
  private func isPlausible(_ header: RecordHeader, _ half: TLSHalf) -> Bool {
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
    half.negotiation.clientVersion = hello.version
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
  private func beginInside(_ half: TLSHalf) {
    var region = SkippedRegion()
    region.highest = limits.maximumMissingRecords
    region.isBeforeCapture = true
    region.isBeforeData = true
    half.region = region
    half.hadGap = true
  }

  /// Whether a record that ought to be in the clear is sealed: data always are, and the record before which keys changed
  /// may be missing.
  private func isSealed(_ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf) -> Bool {
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

  private func readClear(_ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf) {
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

  // MARK: gaps

  /// Where the next record begins is not known any more, though nothing is missing.
  private func loseTrack(_ half: TLSHalf) {
    if half.region == nil { half.region = newRegion(half) }
    half.isSearching = true
    half.hadGap = true
    half.handshake.reset()
    half.tail = []
  }

  private func newRegion(_ half: TLSHalf) -> SkippedRegion {
    var region = SkippedRegion()
    region.isBeforeData = !half.hasFinished
    return region
  }

  func readGap(
    _ length: Int, _ reason: PlaintextGapReason, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    // What looked like the beginning of a record may hide whole ones.
    if half.isSearching && !half.partial.isEmpty && half.state != .failed { search(half, point, emit, isFinal: true) }
    var region = half.region ?? newRegion(half)
    region.missing += length
    region.reason = reason
    half.hadGap = true
    half.handshake.reset()
    half.tail = []
    defer { half.region = region }
    guard half.state != .failed else { return }
    if half.isSearching {
      region.captured += half.partial.count
      region.unplaced += half.partial.count + length
    } else if half.skip > 0 {
      let beyond = length - half.skip
      half.skip = max(0, -beyond)
      if beyond > 0 { region.unplaced += beyond }
      half.isSearching = beyond > 0
    } else if half.partial.count >= RecordHeader.length {
      let beyond = length - (RecordHeader(half.partial.rawBytes, at: 0).recordLength - half.partial.count)
      region.captured += half.partial.count
      region.lowest += 1
      region.highest += 1
      half.skip = max(0, -beyond)
      if beyond > 0 { region.unplaced += beyond }
      half.isSearching = beyond > 0
    } else {
      region.captured += half.partial.count
      region.unplaced += half.partial.count + length
      half.isSearching = true
    }
    half.partial = []
    half.noteEnd(RawSpan())
    if half.active?.decryptor.isRC4 == true {
      half.skip = 0
      half.isSearching = false
      fail(half, "RC4 after a gap: the state of its key stream cannot be recovered")
    }
  }

  /// Looks for the next record in the bytes collected.
  ///
  /// - Parameter isFinal: the bytes do not go on, so that what would reach beyond them is no record.
  private func search(_ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver, isFinal: Bool = false) {
    var bytes: [UInt8] = []
    swap(&bytes, &half.partial)
    var start = 0
    while let place = candidate(bytes.rawBytes, from: start, half) {
      let header = RecordHeader(bytes.rawBytes, at: place)
      guard place + header.recordLength <= bytes.count else {
        if isFinal {
          start = place + 1
          continue
        }
        // More is needed to see whether it is one.
        pass(bytes.rawBytes.extracting(0..<place), half)
        half.partial = Array(bytes[place...])
        return
      }
      let record = bytes.rawBytes.extracting(place..<place + header.recordLength)
      if resume(header, record, after: bytes.rawBytes.extracting(0..<place), half, point, emit) {
        let rest = bytes.rawBytes.extracting(place + header.recordLength..<bytes.count)
        if half.isWaiting {
          if rest.byteCount > 0 { hold(rest, half, point) }
        } else {
          read(rest, half, point, emit)
        }
        return
      }
      if half.state == .failed {
        skipInFailure(bytes.rawBytes, half)
        return
      }
      start = place + 1
    }
    let kept = min(bytes.count, RecordHeader.length - 1)
    pass(bytes.rawBytes.extracting(0..<bytes.count - kept), half)
    half.partial = Array(bytes[(bytes.count - kept)...])
  }

  /// The next place from `start` where a record may begin.
  private func candidate(_ bytes: RawSpan, from start: Int, _ half: TLSHalf) -> Int? {
    var place = start
    while place + RecordHeader.length <= bytes.byteCount {
      if 20...23 ~= bytes.byte(at: place), bytes.byte(at: place + 1) == 3 {
        let header = RecordHeader(bytes, at: place)
        if isPlausible(header, half), header.fragmentLength > 0 { return place }
      }
      place += 1
    }
    return nil
  }

  /// Passes over bytes in which no record begins.
  private func pass(_ bytes: RawSpan, _ half: TLSHalf) {
    half.keepTail(bytes)
    half.region?.captured += bytes.byteCount
    half.region?.unplaced += bytes.byteCount
  }

  /// Tries whether a record begins where one may, and reads on from it if so.
  private func resume(
    _ header: RecordHeader, _ record: RawSpan, after before: RawSpan, _ half: TLSHalf, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) -> Bool {
    let region = half.region
    let tail = half.tail
    pass(before, half)
    half.region?.place(shortestRecord: shortestRecord(half))
    half.noteEnd(half.tail.rawBytes)
    half.isSearching = false
    let fragment = record.extracting(RecordHeader.length..<record.byteCount)
    if half.state == .clear && !isSealed(header, fragment, half) {
      half.records += 1
      readClear(header, fragment, half)
      return true
    }
    half.state = .sealed
    half.keyedHandshakes = half.negotiation.number + 1
    switch tryOpen(header, fragment, half, point, emit) {
    case .opened:
      half.records += 1
      return true
    case .wait(let reason):
      wait(half, for: reason, record, point)
      return true
    case .refused:
      half.region = region
      half.tail = tail
      half.isSearching = half.state != .failed
      return false
    }
  }

  /// Bytes of the shortest record that may be missing.
  private func shortestRecord(_ half: TLSHalf) -> Int { half.active?.decryptor.shortestRecord ?? 22 }

  // MARK: ends

  func readEnd(_ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver) {
    if half.isSearching && !half.partial.isEmpty && half.state != .failed { search(half, point, emit, isFinal: true) }
    if !half.partial.isEmpty && half.state != .clear {
      // A record that the capture does not end.
      var region = half.region ?? newRegion(half)
      region.captured += half.partial.count
      region.unplaced += half.partial.count
      half.region = region
    }
    half.partial = []
    half.region?.place(shortestRecord: shortestRecord(half))
    if let region = half.region {
      half.unread = region
      if half.hasFinished || hidesData(region, half) { emitLast(region, half, point, emit) }
    }
    half.region = nil
    emit(.end, half.side, half.offset, point)
  }

  /// Whether there must be data in what is missing of a direction of which no sealed record was opened: keys were in use,
  /// and it is longer than the end of a handshake.
  private func hidesData(_ region: SkippedRegion, _ half: TLSHalf) -> Bool {
    let longestFinished = 128
    guard region.missing > 0, region.missing + region.captured > longestFinished else { return false }
    return half.state == .sealed && half.failures == 0 || self.half(half.side.other).openedData
  }

  /// Gives out what is missing at the end, unless it is as long as the alert that closes a connection.
  private func emitLast(
    _ region: SkippedRegion, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let alert = RecordHeader.length + half.lastOverhead + 2
    if region.lowest == 1 && region.missing + region.captured == alert { return }
    emitRegion(region, records: region.lowest, half, point, emit)
  }

  private func skipInFailure(_ bytes: RawSpan, _ half: TLSHalf) {
    if half.region == nil { half.region = newRegion(half) }
    half.region?.captured += bytes.byteCount
    half.region?.unplaced += bytes.byteCount
  }

  /// Gives out what is missing between the last record that was opened and the next.
  func emitRegion(
    _ region: SkippedRegion, records: Int, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    guard !region.isBeforeCapture else { return }
    let added = RecordHeader.length + (half.active?.decryptor.overhead ?? half.lastOverhead)
    let plain = max(0, region.missing + region.captured - records * added)
    let missing = min(plain, region.missing)
    if missing > 0 {
      emit(.gap(length: missing, reason: region.reason), half.side, half.offset, point)
      half.offset += missing
    }
    if plain > missing {
      emit(.gap(length: plain - missing, reason: .undecrypted), half.side, half.offset, point)
      half.offset += plain - missing
    }
  }
}
