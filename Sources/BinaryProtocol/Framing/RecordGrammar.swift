/// Whether a record can start at a place where the bytes themselves have to tell.
public enum Plausibility: Sendable {
  case yes
  case no
  /// Unknown until more bytes arrive.
  case needsMore
}

/// What `RecordFramer` must know about a stream of records: how long one is, and how to tell one from other bytes.
public protocol RecordGrammar: Sendable {
  /// How far the record at `offset` reaches, believing its header.
  func extent(_ bytes: RawSpan, _ offset: Int) -> RecordExtent

  /// Whether a complete record is credible without known boundaries. `rest` are the bytes after it, as far as
  /// available.
  func isTrustworthy(_ record: RawSpan, followedBy rest: RawSpan) -> Bool

  /// Whether a record's header can stand at `offset`, where one is expected.
  func canStart(_ bytes: RawSpan, _ offset: Int, atEnd: Bool) -> Plausibility

  /// Whether a record surely starts at `offset` of bytes whose boundaries are not known; all of `bytes` is unexplained.
  ///
  /// - Parameter beginsBetween: the first of `bytes` lies in no record that began before it.
  func probe(_ bytes: RawSpan, _ offset: Int, beginsBetween: Bool, atEnd: Bool) -> Plausibility

  /// Whether bytes of something else would hardly look like this record by chance.
  ///
  /// - Parameter isAligned: it follows on others from the first byte on, so it need only hold something.
  func isCredible(_ record: RawSpan, isAligned: Bool) -> Bool

  /// Receives the first byte of every record, so that later decisions can lean on what the stream has shown.
  mutating func note(firstByte: UInt8)
}
