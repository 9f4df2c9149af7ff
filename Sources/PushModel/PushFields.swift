/// The position of a field in the bytes of its push.
public struct ByteField: Sendable, Equatable {
  @usableFromInline var start: UInt32
  @usableFromInline var count: UInt32

  /// An absent field.
  @inlinable public init() {
    start = 0
    count = 0
  }

  /// - Parameters:
  ///   - offset: the offset in bytes from the push's first byte; 0 means an absent field, as no protocol begins a push
  ///     with a field.
  ///   - length: the length in bytes.
  @inlinable public init(offset: Int, length: Int) {
    start = UInt32(truncatingIfNeeded: offset)
    count = UInt32(truncatingIfNeeded: length)
  }

  /// Bytes from the first byte of the push; 0 when the field is absent.
  @inlinable public var offset: Int { Int(start) }
  /// Bytes.
  @inlinable public var length: Int { Int(count) }
  @inlinable public var isPresent: Bool { start != 0 }
  @inlinable public var range: Range<Int> { offset..<offset + length }
}

/// The fields of one push: numbers by value, byte strings by position. A plain value of 40 bytes that borrows nothing.
///
/// An absent field is `nil`, or not present, which differs from zero or empty.
public struct PushFields: Sendable, Equatable {
  /// Fields that only the push's protocol has. They precede the other fields, because a parser writes them first.
  public var detail: PushDetail
  /// UNIX seconds UTC after which APNs no longer stores the push; 0: never stored.
  public var expiration: UInt32?
  /// 10 or 5, as documented.
  public var priority: UInt8?
  public var token = ByteField()
  public var payload = ByteField()

  @inlinable public init(_ detail: PushDetail) { self.detail = detail }
}

/// The protocol-specific part of a push.
public enum PushDetail: Sendable, Equatable {
  case binary(BinaryDetail)
}

/// The fields of the binary protocol besides token, payload, expiration and priority.
public struct BinaryDetail: Sendable, Equatable {
  public let command: BinaryCommand
  /// The four bytes by which an error response names the push, as a big-endian number.
  public var identifier: UInt32?
  /// Unusual properties of the items. One byte instead of two flags: a copy then loads the width that was stored, which
  /// allows store forwarding.
  @usableFromInline var oddities: UInt8 = 0

  @inlinable public init(_ command: BinaryCommand) { self.command = command }

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
  @inlinable public var command: BinaryCommand { @inline(__always) get { binary.command } }
  @inlinable public var identifier: UInt32? { @inline(__always) get { binary.identifier } }
}
