/// The counts of one direction: received and delivered bytes.
struct DirectionTally {
  /// Bytes in the capture, as sent.
  var wireBytes = 0
  /// Opened or not.
  var sealedRecords = 0
  /// Sealed records that no keys opened.
  var failures = 0
  /// Records of data that were opened.
  private(set) var openedRecords = 0
  /// Data was opened.
  private(set) var openedData = false
  private(set) var plaintextBytes = 0
  /// Plaintext before the next byte, missing bytes included.
  private(set) var offset = 0
  /// Bytes missing or not decrypted at the end.
  var unread: SkippedRegion?

  /// Counts a record of data that was opened, apart from its content.
  mutating func openData() {
    openedData = true
    openedRecords += 1
  }

  /// Counts plaintext that is given out. Returns its offset.
  mutating func giveOut(_ length: Int) -> Int {
    defer { offset += length }
    plaintextBytes += length
    return offset
  }

  /// Counts plaintext that is missing. Returns its offset.
  mutating func miss(_ length: Int) -> Int {
    defer { offset += length }
    return offset
  }

  /// Counts consecutive records of application data that were decrypted, and their content up to `end`.
  mutating func openStraight(records: Int, upTo end: Int) {
    plaintextBytes += end - offset
    if end > offset { openedData = true }
    offset = end
    sealedRecords += records
    openedRecords += records
  }
}
