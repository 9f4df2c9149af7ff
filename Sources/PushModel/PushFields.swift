/// The position of a field in the bytes of its push.
public struct ByteField: Sendable, Equatable {
  @usableFromInline var start: UInt32
  @usableFromInline var count: UInt32

  /// An absent field.
  @inlinable public init() {
    start = 0
    count = 0
  }

  /// Makes the position of a field.
  ///
  /// - Parameters:
  ///   - offset: the offset in bytes from the push's first byte; 0 means an absent field, as no protocol begins a push
  ///     with a field.
  ///   - length: the length in bytes.
  @inlinable public init(offset: Int, length: Int) {
    start = UInt32(truncatingIfNeeded: offset)
    count = UInt32(truncatingIfNeeded: length)
  }

  /// The offset in bytes from the first byte of the push; 0 if the field is absent.
  @inlinable public var offset: Int { Int(start) }
  /// The length in bytes.
  @inlinable public var length: Int { Int(count) }
  /// Whether the push has the field. A present field may be empty.
  @inlinable public var isPresent: Bool { start != 0 }
  /// The range of the field in the bytes of the push; empty if the field is absent.
  @inlinable public var range: Range<Int> { offset..<offset + length }
}

/// The fields of one push: numbers by value, byte strings by position. A plain value of 40 bytes that borrows nothing.
///
/// An absent field is `nil`, or not present, which differs from zero or empty.
public struct PushFields: Sendable, Equatable {
  /// Fields that only the push's protocol has. They precede the other fields, because a parser writes them first.
  public var detail: PushDetail
  /// The time in UNIX seconds UTC after which APNs no longer stores the push; 0: never stored.
  public var expiration: UInt32?
  /// The priority, documented as 10 (immediately) or 5.
  public var priority: UInt8?
  /// The device token.
  public var token = ByteField()
  /// The payload.
  public var payload = ByteField()

  /// Fields of which only the protocol-specific part is known.
  @inlinable public init(_ detail: PushDetail) { self.detail = detail }
}

/// The protocol-specific part of a push.
public enum PushDetail: Sendable, Equatable {
  /// The binary protocol, commands 0 to 2.
  case binary(BinaryDetail)
}

/// The fields of the binary protocol besides token, payload, expiration and priority.
public struct BinaryDetail: Sendable, Equatable {
  /// The command of the frame.
  public let command: BinaryCommand
  /// The four bytes by which an error response names the push, as a big-endian number.
  public var identifier: UInt32?
  /// Unusual properties of the items. One byte instead of two flags: a copy then loads the width that was stored, which
  /// allows store forwarding.
  @usableFromInline var oddities: UInt8 = 0

  /// The fields of a frame without an identifier.
  @inlinable public init(_ command: BinaryCommand) { self.command = command }

  /// Whether the items are not in ascending order of their ids.
  @inlinable public var hasUnusualItemOrder: Bool {
    get { oddities & 1 != 0 }
    set { oddities = newValue ? oddities | 1 : oddities & ~1 }
  }
  /// Whether there are items with an unknown id, with a length that their id does not have, or with a repeated id.
  @inlinable public var hasUnknownItems: Bool {
    get { oddities & 2 != 0 }
    set { oddities = newValue ? oddities | 2 : oddities & ~2 }
  }
}

/// The first byte of a frame of the binary protocol.
public struct BinaryCommand: RawRepresentable, Sendable, Hashable {
  public let rawValue: UInt8
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Token and payload only.
  @inlinable public static var simple: BinaryCommand { BinaryCommand(rawValue: 0) }
  /// A notification with identifier and expiration.
  @inlinable public static var enhanced: BinaryCommand { BinaryCommand(rawValue: 1) }
  /// A frame of items.
  @inlinable public static var framed: BinaryCommand { BinaryCommand(rawValue: 2) }
}

extension PushFields {
  /// The fields of the binary protocol.
  @inlinable public var binary: BinaryDetail {
    @inline(__always) get {
      switch detail {
      case .binary(let detail): detail
      }
    }
    @inline(__always) set { detail = .binary(newValue) }
  }
  /// The command of the frame.
  @inlinable public var command: BinaryCommand { @inline(__always) get { binary.command } }
  /// The four bytes by which an error response names the push, as a big-endian number; `nil` if it has none.
  @inlinable public var identifier: UInt32? { @inline(__always) get { binary.identifier } }
}
