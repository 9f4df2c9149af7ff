import Bytes

extension PushNotification {
  /// The length of the frame at `offset`, from its header alone.
  ///
  /// Needs 3 bytes to begin with (5 for command 2) and never looks further than the length fields.
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

  /// The fields of one frame: numbers by value, byte strings by position. It borrows nothing.
  public struct Layout: Sendable, Equatable {
    public let command: Command
    public var identifier: UInt32?
    public var expiration: UInt32?
    public var priority: UInt8?
    public var token = Field()
    public var payload = Field()
    /// Unusual properties of the items. One byte instead of two flags: copying a layout then loads what was stored with
    /// the same width, which allows store forwarding.
    @usableFromInline var oddities: UInt8 = 0

    /// Items came in another order than by rising id.
    @inlinable public var hasUnusualItemOrder: Bool {
      get { oddities & 1 != 0 }
      set { oddities = newValue ? oddities | 1 : oddities & ~1 }
    }
    /// There are items with an unknown id, with a length their id does not have, or with an id seen before.
    @inlinable public var hasUnknownItems: Bool {
      get { oddities & 2 != 0 }
      set { oddities = newValue ? oddities | 2 : oddities & ~2 }
    }

    /// Reads the fields of a frame that `extent(of:at:limits:)` has found complete; `frame` is exactly that frame.
    @inlinable @inline(__always)
    public init(parsing frame: RawSpan) throws(ParseError) {
      let command = frame.byte(at: 0)
      self.command = Command(rawValue: command)
      if command == 2 {
        if !readUsualItems(frame) { try readItems(frame) }
        return
      }
      if command == 1 {
        identifier = frame.uint32(at: Offsets.identifier)
        expiration = frame.uint32(at: Offsets.expiration)
      }
      let tokenAt = Offsets.token(of: command)
      let tokenLength = Offsets.length(in: frame, before: tokenAt)
      let payloadAt = Offsets.payload(token: tokenAt, length: tokenLength)
      token = Field(offset: tokenAt, length: tokenLength)
      payload = Field(offset: payloadAt, length: Offsets.length(in: frame, before: payloadAt))
    }

    /// Reads what fits of a command-2 frame whose items do not: the fields of the items before the first that does not.
    ///
    /// The frame's own length is right, so the next frame is found; go-libapns writes every notification with a priority
    /// so, rpush and apns4erl those with tokens that are not 32 bytes.
    @usableFromInline package init(fitting frame: RawSpan) {
      command = Command(rawValue: frame.byte(at: 0))
      // Fields that were read before the error stay.
      do throws(ParseError) { try readItems(frame) } catch {}
    }

    /// Reads the items that nearly every client writes, 1 to 5 in this order and no others; `false`, with nothing
    /// changed, when these are not they. Without it the five rounds of `readItems` cost more than all else of a frame.
    ///
    /// ```
    /// 01 length token | 02 length payload | 03 0004 identifier | 04 0004 expiration | 05 0001 priority
    /// ```
    @inlinable @inline(__always)
    mutating func readUsualItems(_ frame: RawSpan) -> Bool {
      let end = frame.byteCount
      let (first, header, rest) = (Offsets.items, FrameItem.headerLength, FrameItem.usualRestLength)
      guard end >= first + header + header + rest, frame.byte(at: first) == 1 else { return false }
      let tokenLength = Int(frame.uint16(at: first + 1))
      let second = first + header &+ tokenLength
      let third = end &- rest
      guard second &+ header <= third, frame.byte(at: second) == 2,
        second &+ header &+ Int(frame.uint16(at: second &+ 1)) == third,
        frame.uint32(at: third) >> 8 == 0x03_0004, frame.uint32(at: third &+ 7) >> 8 == 0x04_0004,
        frame.uint32(at: third &+ 14) >> 8 == 0x05_0001
      else { return false }
      token = Field(offset: first + header, length: tokenLength)
      payload = Field(offset: second &+ header, length: third &- second &- header)
      identifier = frame.uint32(at: third &+ header)
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
        if Int(item.id) <= last { hasUnusualItemOrder = true }
        last = Int(item.id)
      }
    }

    /// Numbers instead of `FrameItem.Identifier`: this runs five times a notification.
    @inlinable @inline(__always)
    mutating func read(item id: UInt8, _ field: Field, of frame: RawSpan) {
      let length = field.length
      if id == 1 && token.start == 0 {
        token = field
      } else if id == 2 && payload.start == 0 {
        payload = field
      } else if id == 3 && length == 4 && identifier == nil {
        identifier = frame.uint32(at: field.offset)
      } else if id == 4 && length == 4 && expiration == nil {
        expiration = frame.uint32(at: field.offset)
      } else if id == 5 && length == 1 && priority == nil {
        priority = frame.byte(at: field.offset)
      } else {
        hasUnknownItems = true
      }
    }
  }
}
