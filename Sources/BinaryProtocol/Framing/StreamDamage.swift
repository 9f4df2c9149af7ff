/// Why bytes belong to no whole record.
public enum DamageCause: Sendable {
  /// They are not a record.
  case malformed(ParseError.Problem)
  /// They belong to a record of which other bytes are missing.
  case cut
  /// They end a record that began before the stream was recorded.
  case beforeStart
  /// They begin a record that the stream does not end.
  case streamEnd
  /// They begin a record that was given up, because unfinished ones took too much memory.
  case dropped
}

/// Bytes that belong to no whole record.
public struct StreamDamage<Mark: Sendable>: Sendable {
  public var cause: DamageCause
  /// Stream offset of the first byte.
  public var offset: Int
  public var length: Int
  /// The first bytes, at most 64.
  public var bytes: [UInt8]
  /// Of the piece that brought the last byte.
  public var mark: Mark

  @inlinable
  init(cause: DamageCause, offset: Int, length: Int, bytes: [UInt8], mark: Mark) {
    (self.cause, self.offset, self.length, self.bytes, self.mark) = (cause, offset, length, bytes, mark)
  }
}
