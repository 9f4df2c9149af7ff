import Bytes
import TLSFoundation

/// Gaps: resumes at the next record that opens, and delivers the estimated plaintext length of the gap.
extension TLSStream {
  func readGap(
    _ length: Int, _ reason: PlaintextGapReason, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) {
    // Bytes that looked like the beginning of a record may contain complete records.
    if direction.records.isSearching { searchAndRead(direction, point, emit, isFinal: true) }
    if direction.input.isWaiting { return hold(.gap(length: length, reason, point), direction) }
    direction.records.gap(length, reason, direction.keys.expectation)
    direction.handshake.reset()
    direction.keys.noteEnd(RawSpan())
    if direction.keys.active?.decryptor.isRC4 == true {
      fail(direction, "RC4 after a gap: the state of its key stream cannot be recovered")
    }
  }

  /// Looks for the next record in the bytes collected, and reads on from it; again when that does not lead far.
  ///
  /// - Parameter isFinal: no more bytes follow, so a candidate that extends past them is not a record.
  func searchAndRead(
    _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver, isFinal: Bool = false
  ) {
    // One copy in which the search continues: a hostile capture requires a search after every record.
    let bytes = direction.records.takeCollected()
    let pieces = takePieces(of: bytes.count, direction, point)
    var offset = 0
    search: while direction.records.isSearching {
      guard findRecord(bytes.rawBytes, &offset, direction, pieces, emit, isFinal: isFinal) else {
        return keepPieces(pieces, direction)
      }
      for piece in pieces where piece.end > offset {
        if direction.input.isWaiting {
          hold(bytes.rawBytes.extracting(offset..<piece.end), direction, piece.point)
          offset = piece.end
        } else {
          readRecords(bytes.rawBytes.extracting(0..<piece.end), &offset, direction, piece.point, emit)
          if direction.records.isSearching { continue search }
        }
      }
      return
    }
  }

  /// The pieces in which a record is searched, each with its end.
  private func takePieces(
    of count: Int, _ direction: TLSDirection, _ point: CapturePoint
  ) -> [(end: Int, point: CapturePoint)] {
    var pieces: [(end: Int, point: CapturePoint)] = []
    var end = count
    for piece in direction.searched.reversed() where end > 0 {
      pieces.append((end, piece.point))
      end -= piece.count
    }
    direction.searched = []
    if end > 0 { pieces.append((end, pieces.last?.point ?? point)) }
    return pieces.reversed()
  }

  /// Keeps the pieces with the bytes that are searched again.
  private func keepPieces(_ pieces: [(end: Int, point: CapturePoint)], _ direction: TLSDirection) {
    let end = pieces.last?.end ?? 0
    var start = end - direction.records.keptBytes
    for piece in pieces where piece.end > start {
      direction.searched.append((piece.end - start, piece.point))
      start = piece.end
    }
  }

  /// Finds the next record from `offset`, which ends up after it; `false` when all bytes were passed over or kept.
  private func findRecord(
    _ bytes: RawSpan, _ offset: inout Int, _ direction: TLSDirection, _ pieces: [(end: Int, point: CapturePoint)],
    _ emit: PlaintextReceiver, isFinal: Bool
  ) -> Bool {
    let beginning = offset
    var start = offset
    while let candidate = direction.records.candidate(
      in: bytes, after: beginning, from: start, direction.keys.expectation, isFinal: isFinal)
    {
      let place = candidate.place
      let before = bytes.extracting(beginning..<place.lowerBound)
      // The record came with its last byte.
      guard let point = pieces.first(where: { $0.end >= place.upperBound })?.point else { return false }
      if resume(candidate.header, bytes.extracting(place), after: before, direction, point, emit) {
        offset = place.upperBound
        return true
      }
      if direction.records.hasFailed {
        direction.records.countUnread(bytes.byteCount - beginning, direction.keys.expectation)
        return false
      }
      start = place.lowerBound + 1
    }
    return false
  }

  /// Tries a possible beginning of a record, and continues from it if it is one.
  private func resume(
    _ header: RecordHeader, _ record: RawSpan, after before: RawSpan, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) -> Bool {
    let searching = direction.records
    let tail = direction.records.align(after: before, shortestRecord: direction.keys.shortestRecord)
    direction.keys.noteEnd(tail.bytes.rawBytes)
    let fragment = record.extracting(RecordHeader.length..<record.byteCount)
    if !direction.keys.isSealed {
      guard isSealed(header, fragment, direction) else {
        direction.records.count += 1
        readClear(header, fragment, direction)
        return true
      }
      direction.seal()
    }
    switch tryOpen(header, fragment, direction, point, emit) {
    case .opened:
      direction.records.count += 1
      return true
    case .wait(let reason):
      wait(direction, for: reason, record, point)
      return true
    case .refused:
      let hasFailed = direction.records.hasFailed
      direction.records = searching
      if hasFailed { direction.records.fail() }
      return false
    }
  }

  // MARK: ends

  func readEnd(_ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver) {
    if direction.records.isSearching { searchAndRead(direction, point, emit, isFinal: true) }
    if direction.input.isWaiting { return hold(.end(point), direction) }
    let region = direction.records.end(
      countsPartial: direction.keys.isSealed, shortestRecord: direction.keys.shortestRecord, direction.keys.expectation)
    if let region {
      direction.tally.unread = region
      if direction.keys.hasFinished || hidesData(region, direction) { emitLast(region, direction, point, emit) }
    }
    emit(.end, direction.side, direction.tally.offset, point)
  }

  /// Whether the missing bytes of a direction without any opened sealed record must contain data: keys were in use, and
  /// they are longer than the end of a handshake.
  private func hidesData(_ region: SkippedRegion, _ direction: TLSDirection) -> Bool {
    let longestFinished = 128
    guard region.missing > 0, region.missing + region.captured > longestFinished else { return false }
    return direction.keys.isSealed && !direction.records.hasFailed && direction.tally.failures == 0
      && direction.negotiation.version.map { $0 < .tls13 } == true
  }

  /// Delivers a gap for the bytes missing at the end, unless they have the length of a close_notify alert.
  private func emitLast(
    _ region: SkippedRegion, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let bytes = region.missing + region.captured
    if region.lowest == 1 && bytes == RecordHeader.length + direction.keys.overhead + 2 { return }
    // No later record shows how many were missing: assume records like the earlier ones.
    var records = region.lowest
    if direction.tally.openedRecords > 0 {
      let usual =
        direction.tally.plaintextBytes / direction.tally.openedRecords + RecordHeader.length + direction.keys.overhead
      records = min(max(records, (bytes + usual / 2) / usual), max(records, region.highest))
    }
    emitRegion(region, records: records, direction, point, emit)
  }

  /// Delivers a gap for the bytes between the last opened record and the next.
  func emitRegion(
    _ region: SkippedRegion, records: Int, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    guard !region.isBeforeCapture else { return }
    let added = RecordHeader.length + direction.keys.overhead
    let plain = max(0, region.missing + region.captured - records * added)
    // The overhead of sealing is subtracted from the captured bytes as far as possible.
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
