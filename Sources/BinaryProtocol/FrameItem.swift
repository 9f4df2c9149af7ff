import Bytes
import PushModel

/// One item of a command-2 frame: `id u8 | length u16 | data`.
public struct FrameItem: Sendable, Equatable {
  /// The meaning of the item.
  public var id: Identifier
  /// The data, at most 65,535 bytes.
  public var data: [UInt8]

  /// Makes an item.
  public init(id: Identifier, data: [UInt8]) {
    self.id = id
    self.data = data
  }

  /// Bytes before an item's data.
  @inlinable @inline(__always) package static var headerLength: Int { 3 }

  /// The length of items 3, 4 and 5, with which nearly every client ends a frame.
  @inlinable @inline(__always) static var usualRestLength: Int { 3 * headerLength + 4 + 4 + 1 }

  /// The meaning of an item. Ids outside the documented five are values too, not errors.
  public struct Identifier: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Binary device token; documented as 32 bytes, later up to 100.
    @inlinable public static var deviceToken: Identifier { Identifier(rawValue: 1) }
    /// JSON, not NUL-terminated.
    @inlinable public static var payload: Identifier { Identifier(rawValue: 2) }
    // Apple's name of the item, which the rule would cut to "notification".
    // swift-format-ignore: DontRepeatTypeInStaticProperties
    /// Four opaque bytes that an error response gives back.
    @inlinable public static var notificationIdentifier: Identifier { Identifier(rawValue: 3) }
    /// UNIX seconds UTC, four bytes.
    @inlinable public static var expiration: Identifier { Identifier(rawValue: 4) }
    /// One byte: 10 or 5.
    @inlinable public static var priority: Identifier { Identifier(rawValue: 5) }

    /// The five that Apple's guide describes.
    package static let documented: [Identifier] = [
      .deviceToken, .payload, .notificationIdentifier, .expiration, .priority,
    ]

    /// The name in Apple's guide, in small letters; `unknown` for others.
    package var name: String {
      switch self {
      case .deviceToken: "device token"
      case .payload: "payload"
      case .notificationIdentifier: "notification identifier"
      case .expiration: "expiration date"
      case .priority: "priority"
      default: "unknown"
      }
    }

    /// Whether the identifier is one of the five documented ones, and its data may have this length.
    package func canHave(length: Int) -> Bool {
      switch self {
      case .deviceToken, .payload: true
      case .notificationIdentifier, .expiration: length == 4
      case .priority: length == 1
      default: false
      }
    }
  }
}

extension Push {
  /// The items of a command-2 frame in wire order, copied; empty for commands 0 and 1.
  ///
  /// A cold path: it is for records that show something unusual.
  public var items: [FrameItem] {
    guard command == .framed else { return [] }
    var items: [FrameItem] = []
    var iterator = ItemIterator(end: bytes.byteCount)
    // In a frame whose items do not fit it, only the items before the first that does not.
    while let item = try? iterator.next(in: bytes) {
      let data = bytes.extracting(item.data.range)
      items.append(FrameItem(id: .init(rawValue: item.id), data: Array(copying: data)))
    }
    return items
  }

  /// The items that no field of the notification holds: unknown ids, lengths an id does not have, repeated ids.
  public var unknownItems: [FrameItem] {
    var seen: Set<FrameItem.Identifier> = []
    return items.filter { item in
      !item.id.canHave(length: item.data.count) || !seen.insert(item.id).inserted
    }
  }
}
