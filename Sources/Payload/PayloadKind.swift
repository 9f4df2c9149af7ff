/// The purpose of a push, derived from its payload and topic.
public enum PayloadKind: String, Sendable, CaseIterable, Codable {
  case alert
  /// It is shown, and wakes the app.
  case alertBackground = "alert_background"
  /// It wakes the app and shows nothing, though it may set a badge or play a sound.
  case background
  case badgeOnly = "badge_only"
  /// Nothing that the system acts on; Wallet and device management, too.
  case empty
  /// No payload, not a JSON object, or `aps` is not a dictionary.
  case invalid
  /// It requests the app's extension, which does not run without an alert.
  case mutable
  case newsstand
  case soundOnly = "sound_only"
  case voip
}

/// The effects that a payload asks for, whether or not a device has them.
public struct PayloadEffects: OptionSet, Sendable, Hashable {
  public let rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A non-empty text or title, given or to be looked up.
  public static let alert = Self(rawValue: 1)
  /// `content-available` is the number 1.
  public static let background = Self(rawValue: 2)
  /// A sound that is a non-empty string, or a dictionary where those exist.
  public static let sound = Self(rawValue: 4)
  /// A badge that is a number.
  public static let badge = Self(rawValue: 8)
  /// `mutable-content` is the number 1.
  public static let mutable = Self(rawValue: 16)

  // Literals of sets would be built at run time for every payload.
  static let noticed = Self(rawValue: 1 | 4 | 8)
  static let badgeOrSound = Self(rawValue: 4 | 8)

  /// It wakes the app, and the user notices nothing.
  public var isSilent: Bool { contains(.background) && !has(anyOf: .noticed) }

  func has(anyOf others: Self) -> Bool { rawValue & others.rawValue != 0 }

  /// The kind of a JSON object whose `aps` is absent (`hasAPS` false) or a dictionary.
  func kind(hasAPS: Bool, era: Int?, topic: PayloadTopic) -> PayloadKind {
    if topic == .voip { return .voip }
    guard hasAPS else { return .empty }
    if contains(.alert) { return contains(.background) ? .alertBackground : .alert }
    if contains(.mutable), !has(anyOf: .badgeOrSound) { return .mutable }
    if contains(.background) {
      // Until iOS 7, in 2013, only Newsstand apps knew the flag.
      return topic == .newsstand || era.map { $0 <= 2012 } ?? false ? .newsstand : .background
    }
    if contains(.badge) { return .badgeOnly }
    return contains(.sound) ? .soundOnly : .empty
  }
}
