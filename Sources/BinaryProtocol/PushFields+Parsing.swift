import Bytes
import PushModel

extension PushFields {
  /// Reads the fields of a frame that `extent(of:at:limits:)` has found complete; `frame` is exactly that frame.
  @inlinable @inline(__always)
  public init(parsing frame: RawSpan) throws(ParseError) {
    let command = frame.byte(at: 0)
    self.init(.binary(BinaryDetail(BinaryCommand(rawValue: command))))
    if command == 2 {
      if !readUsualItems(frame) { try readItems(frame) }
      return
    }
    if command == 1 {
      binary.identifier = frame.uint32(at: BinaryFrame.Offsets.identifier)
      expiration = frame.uint32(at: BinaryFrame.Offsets.expiration)
    }
    let tokenAt = BinaryFrame.Offsets.token(of: command)
    let tokenLength = BinaryFrame.Offsets.length(in: frame, before: tokenAt)
    let payloadAt = BinaryFrame.Offsets.payload(token: tokenAt, length: tokenLength)
    token = ByteField(offset: tokenAt, length: tokenLength)
    payload = ByteField(offset: payloadAt, length: BinaryFrame.Offsets.length(in: frame, before: payloadAt))
  }

  /// Reads a command-2 frame whose items do not fit it: the fields of the items before the first that does not fit.
  ///
  /// The frame's own length is valid, so the next frame is found. go-libapns writes every notification with a priority
  /// in this way, rpush and apns4erl those with tokens that are not 32 bytes long.
  @usableFromInline package init(fitting frame: RawSpan) {
    self.init(.binary(BinaryDetail(BinaryCommand(rawValue: frame.byte(at: 0)))))
    // Fields that were read before the error stay.
    do throws(ParseError) { try readItems(frame) } catch {}
  }

  /// Reads the items that nearly every client writes, 1 to 5 in this order and no others; `false`, with nothing
  /// changed, if the frame has other items. Without it the five rounds of `readItems` would cost more than everything
  /// else about a frame.
  ///
  /// ```
  /// 01 length token | 02 length payload | 03 0004 identifier | 04 0004 expiration | 05 0001 priority
  /// ```
  @inlinable @inline(__always)
  mutating func readUsualItems(_ frame: RawSpan) -> Bool {
    let end = frame.byteCount
    let (first, header, rest) = (BinaryFrame.Offsets.items, FrameItem.headerLength, FrameItem.usualRestLength)
    guard end >= first + header + header + rest, frame.byte(at: first) == 1 else { return false }
    let tokenLength = Int(frame.uint16(at: first + 1))
    let second = first + header &+ tokenLength
    let third = end &- rest
    guard second &+ header <= third, frame.byte(at: second) == 2,
      second &+ header &+ Int(frame.uint16(at: second &+ 1)) == third,
      frame.uint32(at: third) >> 8 == 0x03_0004, frame.uint32(at: third &+ 7) >> 8 == 0x04_0004,
      frame.uint32(at: third &+ 14) >> 8 == 0x05_0001
    else { return false }
    token = ByteField(offset: first + header, length: tokenLength)
    payload = ByteField(offset: second &+ header, length: third &- second &- header)
    binary.identifier = frame.uint32(at: third &+ header)
    expiration = frame.uint32(at: third &+ 10)
    priority = frame.byte(at: third &+ 17)
    return true
  }

  @inlinable @inline(__always)
  mutating func readItems(_ frame: RawSpan) throws(ParseError) {
    var items = ItemIterator(end: frame.byteCount)
    var last = -1
    while let item = try items.next(in: frame) {
      read(item: item.id, item.data, of: frame)
      if Int(item.id) <= last { binary.hasUnusualItemOrder = true }
      last = Int(item.id)
    }
  }

  /// Numbers instead of `FrameItem.Identifier`: this runs five times a notification.
  @inlinable @inline(__always)
  mutating func read(item id: UInt8, _ field: ByteField, of frame: RawSpan) {
    let length = field.length
    if id == 1 && !token.isPresent {
      token = field
    } else if id == 2 && !payload.isPresent {
      payload = field
    } else if id == 3 && length == 4 && identifier == nil {
      binary.identifier = frame.uint32(at: field.offset)
    } else if id == 4 && length == 4 && expiration == nil {
      expiration = frame.uint32(at: field.offset)
    } else if id == 5 && length == 1 && priority == nil {
      priority = frame.byte(at: field.offset)
    } else {
      binary.hasUnknownItems = true
    }
  }
}
