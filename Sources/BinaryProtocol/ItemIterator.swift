import Bytes
import PushModel

/// Goes from item to item of a command-2 frame: `id u8 | length u16 | data`.
///
/// It holds offsets only, and the frame is given to it again for every step: so it is as fast as a loop by hand, five
/// rounds for a usual notification.
@usableFromInline package struct ItemIterator: Sendable {
  /// An item's id, and the position of its data in the frame. A number instead of `FrameItem.Identifier`, for speed.
  @usableFromInline package struct Item: Sendable, Equatable {
    @usableFromInline package let id: UInt8
    @usableFromInline package let data: ByteField

    @inlinable @inline(__always)
    init(id: UInt8, data: ByteField) {
      self.id = id
      self.data = data
    }
  }

  @usableFromInline var offset: Int
  /// The frame's end.
  @usableFromInline let end: Int

  /// - Parameter end: the frame's length as in its header, even if not all bytes are present.
  @inlinable @inline(__always)
  package init(end: Int) {
    offset = BinaryFrame.Offsets.items
    self.end = end
  }

  /// Whether the frame has another item, and its header is there.
  @inlinable
  package func hasHeader(in frame: RawSpan) -> Bool {
    offset + FrameItem.headerLength <= min(frame.byteCount, end)
  }

  /// The next item; `nil` after the last. Throws when the next one extends past the end of the frame, and on every
  /// later call.
  ///
  /// - Parameter frame: the frame's bytes from the command byte on, at least including the item's header.
  @inlinable @inline(__always)
  package mutating func next(in frame: RawSpan) throws(ParseError) -> Item? {
    guard offset < end else { return nil }
    guard end - offset >= FrameItem.headerLength else { throw ParseError(.itemHeaderCut, at: offset) }
    let id = frame.byte(at: offset)
    let length = Int(frame.uint16(at: offset + 1))
    let data = offset + FrameItem.headerLength
    guard end - data >= length else { throw ParseError(.itemOverrun(item: id, length: length), at: offset) }
    offset = data + length
    return Item(id: id, data: ByteField(offset: data, length: length))
  }
}

extension BinaryFrame {
  /// The offset of a frame's identifier, in bytes from its command byte; `nil` if it has no identifier that is read.
  package static func identifierOffset(in frame: RawSpan) -> Int? {
    switch BinaryCommand(rawValue: frame.byte(at: 0)) {
    case .enhanced: return Offsets.identifier
    case .framed:
      var items = ItemIterator(end: frame.byteCount)
      while let item = try? items.next(in: frame) {
        if item.id == FrameItem.Identifier.notificationIdentifier.rawValue, item.data.length == 4 {
          return item.data.offset
        }
      }
      return nil
    default: return nil
    }
  }
}
