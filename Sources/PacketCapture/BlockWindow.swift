import Bytes

/// Bytes of a block that changes owner together with the events found in the bytes.
struct BlockWindow: ~Escapable {
  let bytes: RawSpan
  /// The offset of `bytes` in the block.
  let start: Int
  /// Event offsets from here on refer to copied bytes.
  let blockLength: Int

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan, at start: Int, blockLength: Int) {
    self.bytes = bytes
    self.start = start
    self.blockLength = blockLength
  }

  /// An empty window, for events whose bytes are not in the block.
  @_lifetime(immortal)
  static func none(blockLength: Int) -> BlockWindow { BlockWindow(RawSpan(), at: 0, blockLength: blockLength) }
}
