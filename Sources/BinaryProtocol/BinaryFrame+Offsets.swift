import Bytes

extension BinaryFrame {
  /// The offsets of a frame's parts, in bytes from its command byte; `BinaryFrame` has drawings of the frames.
  ///
  /// All code that reads or writes frames uses these offsets. Everything is inlined, because it is used for each frame.
  @usableFromInline package enum Offsets {
    /// Bytes of the length field before a token or payload of command 0 or 1.
    @inlinable @inline(__always) package static var lengthField: Int { 2 }

    /// The identifier of command 1.
    @inlinable @inline(__always) package static var identifier: Int { 1 }

    /// The expiration of command 1.
    @inlinable @inline(__always) package static var expiration: Int { 5 }

    /// The length of a command-2 frame, which counts the bytes after it: the items.
    @inlinable @inline(__always) package static var frameLength: Int { 1 }

    /// The first item of command 2.
    @inlinable @inline(__always) package static var items: Int { 5 }

    /// The token of command 0 or 1. Its length is in the field before it.
    @inlinable @inline(__always)
    package static func token(of command: UInt8) -> Int { command == 0 ? 3 : 11 }

    /// The payload of command 0 or 1. Its length is in the field before it.
    @inlinable @inline(__always)
    package static func payload(token: Int, length: Int) -> Int { token + length + lengthField }

    /// The length that is in the field before an offset.
    @inlinable @inline(__always)
    package static func length(in bytes: RawSpan, before offset: Int) -> Int {
      Int(bytes.uint16(at: offset - lengthField))
    }
  }
}
