/// Bytes on the wire since the last record that was opened, which are missing or could not be opened.
struct SkippedRegion {
  var missing = 0
  var captured = 0
  /// The least and the largest possible number of records.
  var lowest = 0
  var highest = 0
  /// Bytes whose records are not counted yet, because no record's beginning has been found after them.
  var unplaced = 0
  var reason = PlaintextGapReason.lost
  /// It began before any data: it may contain only handshake messages.
  var isBeforeData = false
  /// It was sent before the capture: its content is unknown.
  var isBeforeCapture = false

  init(isBeforeData: Bool = false) { self.isBeforeData = isBeforeData }

  /// The bytes sent before the capture.
  static func beforeCapture(maximumRecords: Int) -> SkippedRegion {
    var region = SkippedRegion(isBeforeData: true)
    region.highest = maximumRecords
    region.isBeforeCapture = true
    return region
  }

  /// Adds captured bytes of records that are not counted yet.
  mutating func add(unplaced: Int) {
    captured += unplaced
    self.unplaced += unplaced
  }

  /// Adds a record with this many captured bytes.
  mutating func addRecord(captured: Int) {
    self.captured += captured
    lowest += 1
    highest += 1
  }

  /// Counts the records in the unplaced bytes, now that the next one begins after them.
  mutating func place(shortestRecord: Int) {
    guard unplaced > 0 else { return }
    let longest = RecordHeader.length + RecordHeader.maximumFragment
    lowest += (unplaced + longest - 1) / longest
    highest += max(1, unplaced / max(1, shortestRecord))
    unplaced = 0
  }

  /// The number of records is known.
  var isExact: Bool { lowest == highest && unplaced == 0 }
}
