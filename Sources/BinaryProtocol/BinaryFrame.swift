import Bytes
import PushModel

/// Frames of the binary protocol: their extent, their offsets, parsing and writing them.
///
/// ```
/// command 0  00 | token length u16 | token | payload length u16 | payload
/// command 1  01 | identifier 4 | expiration u32 | token length u16 | token | payload length u16 | payload
/// command 2  02 | frame length u32 | item…            item = id u8 | length u16 | data
/// ```
///
/// All integers are big-endian. Source: Apple's guide of 2015-09-16.
public enum BinaryFrame {
  /// The extent of the frame at `offset`, judged by its header alone.
  ///
  /// Needs 3 bytes at first (5 for command 2), and never looks further than the length fields. Offsets in the result
  /// count from the first byte of the frame.
  ///
  /// - Parameters:
  ///   - bytes: the bytes of the stream that are available.
  ///   - offset: the offset of the command byte in `bytes`.
  ///   - limits: lengths above which the frame counts as malformed.
  /// - Complexity: O(1).
  @inlinable
  public static func extent(of bytes: RawSpan, at offset: Int, limits: ProtocolLimits) -> RecordExtent {
    let available = bytes.byteCount - offset
    guard available > 0 else { return .incomplete(needed: 1) }
    let command = bytes.byte(at: offset)
    switch command {
    case 2:
      guard available >= Offsets.items else { return .incomplete(needed: Offsets.items) }
      let length = Int(bytes.uint32(at: offset + Offsets.frameLength))
      if length > limits.maximumFrameLength {
        return .malformed(ParseError(.frameTooLong(length), at: Offsets.frameLength))
      }
      let end = Offsets.items + length
      return available >= end ? .complete(end) : .incomplete(needed: end)
    case 0, 1:
      let tokenAt = Offsets.token(of: command)
      guard available >= tokenAt else { return .incomplete(needed: tokenAt) }
      let tokenLength = Offsets.length(in: bytes, before: offset + tokenAt)
      if tokenLength > limits.maximumTokenLength {
        return .malformed(ParseError(.tokenTooLong(tokenLength), at: tokenAt - Offsets.lengthField))
      }
      let payloadAt = Offsets.payload(token: tokenAt, length: tokenLength)
      guard available >= payloadAt else { return .incomplete(needed: payloadAt) }
      let payloadLength = Offsets.length(in: bytes, before: offset + payloadAt)
      if payloadLength > limits.maximumPayloadLength {
        return .malformed(ParseError(.payloadTooLong(payloadLength), at: payloadAt - Offsets.lengthField))
      }
      if command == 0 && tokenLength == 0 && payloadLength == 0 {
        return .malformed(ParseError(.emptyNotification, at: 0))
      }
      let length = payloadAt + payloadLength
      return available >= length ? .complete(length) : .incomplete(needed: length)
    default:
      return .malformed(ParseError(.unknownCommand(command), at: 0))
    }
  }
}

extension Push {
  /// Parses the frame that starts at `offset`, and advances `offset` past it. The push is a view of `bytes`.
  ///
  /// - Throws: a `ParseError`; `incomplete` if the bytes end before the frame does, with the needed length as its
  ///   offset. `offset` is then unchanged, as after any error.
  /// - Complexity: O(1) in the lengths of token and payload; nothing is copied.
  @inlinable
  @_lifetime(copy bytes)
  public init(
    parsing bytes: RawSpan, at offset: inout Int, limits: ProtocolLimits = ProtocolLimits()
  ) throws(ParseError) {
    let length: Int
    switch BinaryFrame.extent(of: bytes, at: offset, limits: limits) {
    case .complete(let value): length = value
    case .incomplete(let needed): throw ParseError(.incomplete, at: needed)
    case .malformed(let error): throw error
    }
    let frame = bytes.extracting(offset..<offset + length)
    self.init(try PushFields(parsing: frame), frame)
    offset += length
  }

  /// The command of the frame, its first byte.
  @inlinable public var command: BinaryCommand { fields.command }
  /// The four bytes by which an error response names the notification, as a big-endian number; `nil` if it has none.
  @inlinable public var identifier: UInt32? { fields.identifier }
}
