import Bytes
import TLSFoundation

/// Through gaps: what is passed over, where the next record begins, and what of it all was plaintext.
extension TLSStream {
  /// Where the next record begins is not known any more, though nothing is missing.
  func loseTrack(_ direction: TLSDirection) {
    if direction.records == 0 && !direction.hadGap {
      beginInside(direction)
    } else if direction.region == nil {
      direction.region = newRegion(direction)
    }
    direction.isSearching = true
    direction.wanted = 0
    direction.hadGap = true
    direction.handshake.reset()
    direction.tail = []
  }

  private func newRegion(_ direction: TLSDirection) -> SkippedRegion {
    var region = SkippedRegion()
    region.isBeforeData = !direction.hasFinished
    return region
  }

  func readGap(
    _ length: Int, _ reason: PlaintextGapReason, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) {
    // What looked like the beginning of a record may hide whole ones.
    if direction.isSearching && direction.state != .failed { searchAndRead(direction, point, emit, isFinal: true) }
    if direction.isWaiting { return hold(.gap(length: length, reason, point), direction) }
    var region = direction.region ?? newRegion(direction)
    region.missing += length
    region.reason = reason
    direction.hadGap = true
    direction.handshake.reset()
    direction.tail = []
    defer { direction.region = region }
    guard direction.state != .failed else { return }
    if direction.isSearching {
      region.captured += direction.partial.count
      region.unplaced += direction.partial.count + length
    } else if direction.skip > 0 {
      let beyond = length - direction.skip
      direction.skip = max(0, -beyond)
      if beyond > 0 { region.unplaced += beyond }
      direction.isSearching = beyond > 0
    } else if direction.partial.count >= RecordHeader.length {
      let beyond = length - (RecordHeader(direction.partial.rawBytes, at: 0).recordLength - direction.partial.count)
      region.captured += direction.partial.count
      region.lowest += 1
      region.highest += 1
      direction.skip = max(0, -beyond)
      if beyond > 0 { region.unplaced += beyond }
      direction.isSearching = beyond > 0
    } else {
      region.captured += direction.partial.count
      region.unplaced += direction.partial.count + length
      direction.isSearching = true
    }
    direction.partial = []
    direction.wanted = 0
    direction.noteEnd(RawSpan())
    if direction.active?.decryptor.isRC4 == true {
      direction.skip = 0
      direction.isSearching = false
      fail(direction, "RC4 after a gap: the state of its key stream cannot be recovered")
    }
  }

  /// Looks for the next record in the bytes collected, and reads on from it; again when that does not lead far.
  ///
  /// - Parameter isFinal: the bytes do not go on, so that what would reach beyond them is no record.
  func searchAndRead(_ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver, isFinal: Bool = false)
  {
    // One copy, in which all goes on: a hostile capture has something to search behind every record.
    var bytes: [UInt8] = []
    swap(&bytes, &direction.partial)
    direction.wanted = 0
    var offset = 0
    while direction.isSearching {
      guard findRecord(bytes.rawBytes, &offset, direction, point, emit, isFinal: isFinal) else { return }
      if direction.isWaiting {
        if offset < bytes.count { hold(bytes.rawBytes.extracting(offset..<bytes.count), direction, point) }
        return
      }
      readRecords(bytes.rawBytes, &offset, direction, point, emit)
    }
  }

  /// Finds the next record from `offset`, which ends up behind it; `false` when all bytes were passed over or kept.
  private func findRecord(
    _ bytes: RawSpan, _ offset: inout Int, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver,
    isFinal: Bool
  ) -> Bool {
    let beginning = offset
    var start = offset
    while let place = recordPlace(bytes, from: start, direction) {
      let header = RecordHeader(bytes, at: place)
      guard place + header.recordLength <= bytes.byteCount else {
        if isFinal {
          start = place + 1
          continue
        }
        // More is needed to see whether it is one.
        pass(bytes.extracting(beginning..<place), direction)
        direction.partial = Array(copying: bytes.extracting(place..<bytes.byteCount))
        direction.wanted = header.recordLength
        return false
      }
      let record = bytes.extracting(place..<place + header.recordLength)
      if resume(header, record, after: bytes.extracting(beginning..<place), direction, point, emit) {
        offset = place + header.recordLength
        return true
      }
      if direction.state == .failed {
        skipInFailure(bytes.extracting(beginning..<bytes.byteCount), direction)
        direction.isSearching = false
        return false
      }
      start = place + 1
    }
    let kept = min(bytes.byteCount - beginning, RecordHeader.length - 1)
    pass(bytes.extracting(beginning..<bytes.byteCount - kept), direction)
    direction.partial = Array(copying: bytes.extracting(bytes.byteCount - kept..<bytes.byteCount))
    return false
  }

  /// The next place from `start` where a record may begin.
  private func recordPlace(_ bytes: RawSpan, from start: Int, _ direction: TLSDirection) -> Int? {
    var place = start
    while place + RecordHeader.length <= bytes.byteCount {
      if 20...23 ~= bytes.byte(at: place), bytes.byte(at: place + 1) == 3 {
        let header = RecordHeader(bytes, at: place)
        if isPlausible(header, direction), header.fragmentLength > 0 { return place }
      }
      place += 1
    }
    return nil
  }

  /// Passes over bytes in which no record begins.
  private func pass(_ bytes: RawSpan, _ direction: TLSDirection) {
    direction.keepTail(bytes)
    direction.region?.captured += bytes.byteCount
    direction.region?.unplaced += bytes.byteCount
  }

  /// Tries whether a record begins where one may, and reads on from it if so.
  private func resume(
    _ header: RecordHeader, _ record: RawSpan, after before: RawSpan, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) -> Bool {
    let region = direction.region
    let tail = direction.tail
    pass(before, direction)
    direction.region?.place(shortestRecord: shortestRecord(direction))
    direction.noteEnd(direction.tail.rawBytes)
    direction.isSearching = false
    let fragment = record.extracting(RecordHeader.length..<record.byteCount)
    if direction.state == .clear && !isSealed(header, fragment, direction) {
      direction.records += 1
      readClear(header, fragment, direction)
      return true
    }
    if direction.state == .clear { direction.keyedHandshakes = direction.negotiation.number + 1 }
    direction.state = .sealed
    switch tryOpen(header, fragment, direction, point, emit) {
    case .opened:
      direction.records += 1
      return true
    case .wait(let reason):
      wait(direction, for: reason, record, point)
      return true
    case .refused:
      direction.region = region
      direction.tail = tail
      direction.isSearching = direction.state != .failed
      return false
    }
  }

  /// Bytes of the shortest record that may be missing.
  private func shortestRecord(_ direction: TLSDirection) -> Int { direction.active?.decryptor.shortestRecord ?? 22 }

  // MARK: ends

  func readEnd(_ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver) {
    if direction.isSearching && direction.state != .failed { searchAndRead(direction, point, emit, isFinal: true) }
    if direction.isWaiting { return hold(.end(point), direction) }
    if !direction.partial.isEmpty && direction.state != .clear {
      // A record that the capture does not end.
      var region = direction.region ?? newRegion(direction)
      region.captured += direction.partial.count
      region.unplaced += direction.partial.count
      direction.region = region
    }
    direction.partial = []
    direction.region?.place(shortestRecord: shortestRecord(direction))
    if let region = direction.region {
      direction.tally.unread = region
      if direction.hasFinished || hidesData(region, direction) { emitLast(region, direction, point, emit) }
    }
    direction.region = nil
    emit(.end, direction.side, direction.tally.offset, point)
  }

  /// Whether there must be data in what is missing of a direction of which no sealed record was opened: keys were in use,
  /// and it is longer than the end of a handshake.
  private func hidesData(_ region: SkippedRegion, _ direction: TLSDirection) -> Bool {
    let longestFinished = 128
    guard region.missing > 0, region.missing + region.captured > longestFinished else { return false }
    return direction.state == .sealed && direction.tally.failures == 0
      && direction.negotiation.version.map { $0 < .tls13 } == true
  }

  /// Gives out what is missing at the end, unless it is as long as the alert that closes a connection.
  private func emitLast(
    _ region: SkippedRegion, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let bytes = region.missing + region.captured
    if region.lowest == 1 && bytes == RecordHeader.length + direction.lastOverhead + 2 { return }
    // No later record tells how many there were: as many as if they were like those before.
    var records = region.lowest
    if direction.tally.openedRecords > 0 {
      let usual =
        direction.tally.plaintextBytes / direction.tally.openedRecords + RecordHeader.length + direction.lastOverhead
      records = min(max(records, (bytes + usual / 2) / usual), max(records, region.highest))
    }
    emitRegion(region, records: records, direction, point, emit)
  }

  func skipInFailure(_ bytes: RawSpan, _ direction: TLSDirection) {
    if direction.region == nil { direction.region = newRegion(direction) }
    direction.region?.captured += bytes.byteCount
    direction.region?.unplaced += bytes.byteCount
  }

  /// Gives out what is missing between the last record that was opened and the next.
  func emitRegion(
    _ region: SkippedRegion, records: Int, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    guard !region.isBeforeCapture else { return }
    let added = RecordHeader.length + (direction.active?.decryptor.overhead ?? direction.lastOverhead)
    let plain = max(0, region.missing + region.captured - records * added)
    // What sealing adds is taken from the bytes that are there, as far as they go.
    let missing = min(plain, region.missing)
    if missing > 0 {
      emit(.gap(length: missing, reason: region.reason), direction.side, direction.tally.miss(missing), point)
    }
    if plain > missing {
      let unopened = plain - missing
      emit(.gap(length: unopened, reason: .undecrypted), direction.side, direction.tally.miss(unopened), point)
    }
  }
}
