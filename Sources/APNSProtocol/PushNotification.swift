import Bytes

/// One notification as it stands on the wire: a view of borrowed bytes.
///
/// ```
/// command 0  00 | token length u16 | token | payload length u16 | payload
/// command 1  01 | identifier 4 | expiration u32 | token length u16 | token | payload length u16 | payload
/// command 2  02 | frame length u32 | item…            item = id u8 | length u16 | data
/// ```
///
/// All integers are big-endian. A field that was absent on the wire is `nil`, which is not the same as zero. Nothing is
/// copied: `token` and `payload` point into the bytes that were parsed. Source: Apple's guide of 2015-09-16.
public struct PushNotification: ~Escapable {
  public let layout: Layout
  /// The whole frame, command byte included.
  public let frame: RawSpan

  @inlinable
  @_lifetime(copy frame)
  public init(layout: Layout, frame: RawSpan) {
    self.layout = layout
    self.frame = frame
  }

  /// Parses the notification that starts at `offset` and advances `offset` past it.
  ///
  /// Throws `.incomplete` when the bytes end first; `offset` is then unchanged, as after any error.
  @inlinable
  @_lifetime(copy bytes)
  public init(
    parsing bytes: RawSpan, at offset: inout Int, limits: ProtocolLimits = ProtocolLimits()
  ) throws(ParseError) {
    let length: Int
    switch Self.extent(of: bytes, at: offset, limits: limits) {
    case .complete(let value): length = value
    case .incomplete(let needed): throw ParseError(.incomplete, at: needed)
    case .malformed(let error): throw error
    }
    let frame = bytes.extracting(offset..<offset + length)
    self.init(layout: try Layout(parsing: frame), frame: frame)
    offset += length
  }

  @inlinable public var command: Command { layout.command }
  @inlinable public var identifier: UInt32? { layout.identifier }
  /// UNIX seconds UTC after which APNs no longer stores the notification; 0: never stored.
  @inlinable public var expiration: UInt32? { layout.expiration }
  /// 10 or 5 as documented; commands 0 and 1 carry none.
  @inlinable public var priority: UInt8? { layout.priority }

  /// The device token as it was sent; empty when the frame has none (see `layout.token`).
  @inlinable
  public var token: RawSpan {
    @_lifetime(copy self)
    get { frame.extracting(layout.token.range) }
  }

  /// The payload bytes, usually JSON; empty when the frame has none (see `layout.payload`).
  @inlinable
  public var payload: RawSpan {
    @_lifetime(copy self)
    get { frame.extracting(layout.payload.range) }
  }
}

extension PushNotification {
  /// The first byte of a frame.
  public struct Command: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Token and payload only.
    @inlinable public static var simple: Command { Command(rawValue: 0) }
    /// With identifier and expiration.
    @inlinable public static var enhanced: Command { Command(rawValue: 1) }
    /// A frame of items.
    @inlinable public static var framed: Command { Command(rawValue: 2) }
  }

  /// Where a field stands in its frame, in bytes from the command byte; `offset` 0 when the field is absent.
  public struct Field: Sendable, Equatable {
    @usableFromInline var start: UInt32
    @usableFromInline var count: UInt32

    @inlinable package init() {
      start = 0
      count = 0
    }
    @inlinable init(offset: Int, length: Int) {
      start = UInt32(truncatingIfNeeded: offset)
      count = UInt32(truncatingIfNeeded: length)
    }
    @inlinable public var offset: Int { Int(start) }
    @inlinable public var length: Int { Int(count) }
    @inlinable public var isPresent: Bool { start != 0 }
    @inlinable public var range: Range<Int> { offset..<offset + length }
  }
}
