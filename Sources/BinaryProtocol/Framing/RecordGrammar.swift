/// Whether a record can start at a position, as far as the bytes themselves show.
public enum Plausibility: Sendable {
  case yes
  case no
  /// Unknown until more bytes arrive.
  case needsMore
}

/// The properties of a stream of records that `RecordFramer` needs: the length of a record, and how to distinguish it
/// from other bytes.
public protocol RecordGrammar: Sendable {
  /// The extent of the record at `offset`, if its header is right.
  func extent(_ bytes: RawSpan, _ offset: Int) -> RecordExtent

  /// Whether a complete record is credible without known boundaries. `rest` are the bytes after it, as far as
  /// available.
  func isTrustworthy(_ record: RawSpan, followedBy rest: RawSpan) -> Bool

  /// Whether the bytes at `offset`, where a record is expected, can be its header.
  ///
  /// - Parameters:
  ///   - bytes: bytes of the stream.
  ///   - offset: an offset in `bytes`.
  ///   - atEnd: whether no more bytes follow, so that `needsMore` is no answer.
  func canStart(_ bytes: RawSpan, _ offset: Int, atEnd: Bool) -> Plausibility

  /// Whether a record certainly starts at `offset`, if the boundaries of records are unknown.
  ///
  /// - Parameters:
  ///   - bytes: bytes of the stream, none of which is known to belong to a record.
  ///   - offset: an offset in `bytes`.
  ///   - beginsBetween: whether the first of `bytes` is not inside a record that began before it.
  ///   - atEnd: whether no more bytes follow, so that `needsMore` is no answer.
  func probe(_ bytes: RawSpan, _ offset: Int, beginsBetween: Bool, atEnd: Bool) -> Plausibility

  /// Whether other bytes are unlikely to look like this record by chance.
  ///
  /// - Parameters:
  ///   - record: a complete record.
  ///   - isAligned: whether records are contiguous from the first byte of the stream up to this one, so that the record
  ///     only has to be non-empty.
  func isCredible(_ record: RawSpan, isAligned: Bool) -> Bool

  /// Receives the first byte of every record, so that later decisions can depend on the stream so far.
  mutating func note(firstByte: UInt8)
}
