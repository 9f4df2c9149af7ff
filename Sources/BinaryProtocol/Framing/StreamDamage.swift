/// The reason why bytes belong to no complete record.
public enum DamageCause: Sendable {
  /// The bytes are not a record.
  case malformed(ParseError.Problem)
  /// The bytes belong to a record with missing bytes.
  case cut
  /// The bytes end a record that began before the stream was recorded.
  case beforeStart
  /// The bytes begin a record that is incomplete at the stream's end.
  case streamEnd
  /// The bytes begin a record that was dropped, because incomplete records used too much memory.
  case dropped
}

/// Bytes that belong to no whole record.
public struct StreamDamage<Mark: Sendable>: Sendable {
  /// The reason.
  public var cause: DamageCause
  /// The stream offset of the first byte.
  public var offset: Int
  /// The number of bytes.
  public var length: Int
  /// The first bytes, at most 64.
  public var bytes: [UInt8]
  /// The mark of the piece with the last byte.
  public var mark: Mark

  @inlinable
  init(cause: DamageCause, offset: Int, length: Int, bytes: [UInt8], mark: Mark) {
    (self.cause, self.offset, self.length, self.bytes, self.mark) = (cause, offset, length, bytes, mark)
  }
}
