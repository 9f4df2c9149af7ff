/// A group of actions that an app registered under an identifier; a payload's `category` names one.
///
/// After *Registering Your Actionable Notification Types* of Apple's guide. More than four actions, or two minimal ones,
/// can be given; the first ones are shown.
public struct NotificationCategory: Sendable, Equatable {
  public struct Action: Sendable, Equatable {
    public var id: String
    public var title: String
    /// It brings the app to the foreground, and always asks for the passcode.
    public var isForeground: Bool
    /// Its button is red.
    public var isDestructive: Bool
    public var needsAuthentication: Bool

    public init(
      id: String, title: String, isForeground: Bool = false, isDestructive: Bool = false,
      needsAuthentication: Bool = false
    ) {
      self.id = id
      self.title = title
      self.isForeground = isForeground
      self.isDestructive = isDestructive
      self.needsAuthentication = needsAuthentication
    }
  }

  public var actions: [Action]
  /// The identifiers of the actions for narrow places; `nil`: the first of `actions`.
  public var minimal: [String]?

  public init(actions: [Action], minimal: [String]? = nil) {
    self.actions = actions
    self.minimal = minimal
  }

  /// The titles of the actions under *Options*: at most four.
  var options: [String] { actions.prefix(4).map(\.title) }

  /// The titles on the lock screen, in banners and in Notification Center: two at most.
  var compact: [String] {
    guard let minimal else { return actions.prefix(2).map(\.title) }
    return minimal.compactMap { id in actions.first { $0.id == id }?.title }.prefix(2).map(\.self)
  }
}

/// The resources of an app that decide how a push looks: its texts by language, and its categories.
public struct AppResources: Sendable {
  /// `Localizable.strings` by language (`ja`, `pt-BR`): key to format.
  public var strings: [String: [String: String]]
  /// Categories by identifier.
  public var categories: [String: NotificationCategory]

  public init(strings: [String: [String: String]] = [:], categories: [String: NotificationCategory] = [:]) {
    self.strings = strings
    self.categories = categories
  }
}

/// Systems as far as they show pushes differently.
public enum SystemVersion: Int, Sendable, CaseIterable, Comparable {
  case iOS7 = 7
  /// 8.2 and later.
  case iOS8 = 8
  case iOS9 = 9
  case iOS10 = 10

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
