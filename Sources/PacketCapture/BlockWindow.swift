import Bytes

/// Bytes of a block that is handed over with the events that are found in them.
struct BlockWindow: ~Escapable {
  let bytes: RawSpan
  /// Where they begin in the block.
  let start: Int
  /// Places from here on are those of copies.
  let blockLength: Int

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan, at start: Int, blockLength: Int) {
    self.bytes = bytes
    self.start = start
    self.blockLength = blockLength
  }

  /// No bytes, for events of what stands elsewhere.
  @_lifetime(immortal)
  static func none(blockLength: Int) -> BlockWindow { BlockWindow(RawSpan(), at: 0, blockLength: blockLength) }
}
