import Bytes
import TLSFoundation

/// Through gaps: what is passed over, where the next record begins, and what of it all was plaintext.
extension TLSStream {
  /// Where the next record begins is not known any more, though nothing is missing.
  func loseTrack(_ half: TLSHalf) {
    if half.records == 0 && !half.hadGap {
      beginInside(half)
    } else if half.region == nil {
      half.region = newRegion(half)
    }
    half.isSearching = true
    half.wanted = 0
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
    if half.isSearching && half.state != .failed { searchAndRead(half, point, emit, isFinal: true) }
    if half.isWaiting { return hold(.gap(length: length, reason, point), 0, half) }
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
    half.wanted = 0
    half.noteEnd(RawSpan())
    if half.active?.decryptor.isRC4 == true {
      half.skip = 0
      half.isSearching = false
      fail(half, "RC4 after a gap: the state of its key stream cannot be recovered")
    }
  }

  /// Looks for the next record in the bytes collected, and reads on from it; again when that does not lead far.
  ///
  /// - Parameter isFinal: the bytes do not go on, so that what would reach beyond them is no record.
  func searchAndRead(_ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver, isFinal: Bool = false) {
    // One copy, in which all goes on: a hostile capture has something to search behind every record.
    var bytes: [UInt8] = []
    swap(&bytes, &half.partial)
    half.wanted = 0
    var offset = 0
    while half.isSearching {
      guard findRecord(bytes.rawBytes, &offset, half, point, emit, isFinal: isFinal) else { return }
      if half.isWaiting {
        if offset < bytes.count { hold(bytes.rawBytes.extracting(offset..<bytes.count), half, point) }
        return
      }
      readRecords(bytes.rawBytes, &offset, half, point, emit)
    }
  }

  /// Finds the next record from `offset`, which ends up behind it; `false` when all bytes were passed over or kept.
  private func findRecord(
    _ bytes: RawSpan, _ offset: inout Int, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver,
    isFinal: Bool
  ) -> Bool {
    let beginning = offset
    var start = offset
    while let place = recordPlace(bytes, from: start, half) {
      let header = RecordHeader(bytes, at: place)
      guard place + header.recordLength <= bytes.byteCount else {
        if isFinal {
          start = place + 1
          continue
        }
        // More is needed to see whether it is one.
        pass(bytes.extracting(beginning..<place), half)
        half.partial = Array(copying: bytes.extracting(place..<bytes.byteCount))
        half.wanted = header.recordLength
        return false
      }
      let record = bytes.extracting(place..<place + header.recordLength)
      if resume(header, record, after: bytes.extracting(beginning..<place), half, point, emit) {
        offset = place + header.recordLength
        return true
      }
      if half.state == .failed {
        skipInFailure(bytes.extracting(beginning..<bytes.byteCount), half)
        half.isSearching = false
        return false
      }
      start = place + 1
    }
    let kept = min(bytes.byteCount - beginning, RecordHeader.length - 1)
    pass(bytes.extracting(beginning..<bytes.byteCount - kept), half)
    half.partial = Array(copying: bytes.extracting(bytes.byteCount - kept..<bytes.byteCount))
    return false
  }

  /// The next place from `start` where a record may begin.
  private func recordPlace(_ bytes: RawSpan, from start: Int, _ half: TLSHalf) -> Int? {
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
    if half.state == .clear { half.keyedHandshakes = half.negotiation.number + 1 }
    half.state = .sealed
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
    if half.isSearching && half.state != .failed { searchAndRead(half, point, emit, isFinal: true) }
    if half.isWaiting { return hold(.end(point), 0, half) }
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
    return half.state == .sealed && half.failures == 0 && half.negotiation.version.map { $0 < .tls13 } == true
  }

  /// Gives out what is missing at the end, unless it is as long as the alert that closes a connection.
  private func emitLast(
    _ region: SkippedRegion, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let bytes = region.missing + region.captured
    if region.lowest == 1 && bytes == RecordHeader.length + half.lastOverhead + 2 { return }
    // No later record tells how many there were: as many as if they were like those before.
    var records = region.lowest
    if half.openedRecords > 0 {
      let usual = half.plaintextBytes / half.openedRecords + RecordHeader.length + half.lastOverhead
      records = min(max(records, (bytes + usual / 2) / usual), max(records, region.highest))
    }
    emitRegion(region, records: records, half, point, emit)
  }

  func skipInFailure(_ bytes: RawSpan, _ half: TLSHalf) {
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
    // What sealing adds is taken from the bytes that are there, as far as they go.
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
