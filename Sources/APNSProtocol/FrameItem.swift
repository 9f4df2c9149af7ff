import Bytes

/// One item of a command-2 frame: `id u8 | length u16 | data`.
public struct FrameItem: Sendable, Equatable {
  public var id: Identifier
  public var data: [UInt8]

  public init(id: Identifier, data: [UInt8]) {
    self.id = id
    self.data = data
  }

  /// What an item means. Ids outside the documented five are values too, not errors.
  public struct Identifier: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Binary device token; documented as 32 bytes, later up to 100.
    public static let deviceToken = Identifier(rawValue: 1)
    /// JSON, not NUL-terminated.
    public static let payload = Identifier(rawValue: 2)
    // Apple's name of the item, which the rule would cut to "notification".
    // swift-format-ignore: DontRepeatTypeInStaticProperties
    /// Four opaque bytes that an error response gives back.
    public static let notificationIdentifier = Identifier(rawValue: 3)
    /// UNIX seconds UTC, four bytes.
    public static let expiration = Identifier(rawValue: 4)
    /// One byte: 10 or 5.
    public static let priority = Identifier(rawValue: 5)
  }
}

extension PushNotification {
  /// The items of a command-2 frame in wire order, copied; empty for commands 0 and 1.
  ///
  /// A cold path: it is for records that show something unusual.
  public var items: [FrameItem] {
    guard command == .framed else { return [] }
    var items: [FrameItem] = []
    var offset = 5
    while offset + 3 <= frame.byteCount {
      let length = Int(frame.uint16(at: offset + 1))
      // Of a frame whose items do not fit it, only those before the one that does not.
      guard offset + 3 + length <= frame.byteCount else { break }
      let data = frame.extracting(offset + 3..<offset + 3 + length)
      items.append(FrameItem(id: .init(rawValue: frame.byte(at: offset)), data: Array(copying: data)))
      offset += 3 + length
    }
    return items
  }

  /// The items that no field of the notification holds: unknown ids, lengths an id does not have, repeated ids.
  public var unknownItems: [FrameItem] {
    var seen: Set<FrameItem.Identifier> = []
    return items.filter { item in
      let fits =
        switch item.id {
        case .deviceToken, .payload: true
        case .notificationIdentifier, .expiration: item.data.count == 4
        case .priority: item.data.count == 1
        default: false
        }
      return !fits || !seen.insert(item.id).inserted
    }
  }
}
