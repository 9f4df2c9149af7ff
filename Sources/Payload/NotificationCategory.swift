/// A group of actions that an app registered under an identifier; a payload's `category` names one.
///
/// After *Registering Your Actionable Notification Types* of Apple's guide. More than four actions, or two minimal ones,
/// can be given; the first ones are shown.
public struct NotificationCategory: Sendable, Equatable {
  /// An action of a category: a button.
  public struct Action: Sendable, Equatable {
    /// The identifier.
    public var id: String
    /// The title, in the language of the app.
    public var title: String
    /// Whether it brings the app to the foreground, which always requires the passcode.
    public var isForeground: Bool
    /// Whether its button is red.
    public var isDestructive: Bool
    /// Whether it requires the passcode.
    public var needsAuthentication: Bool

    /// Makes an action.
    ///
    /// - Parameters:
    ///   - id: the identifier.
    ///   - title: the title.
    ///   - isForeground: whether it brings the app to the foreground.
    ///   - isDestructive: whether its button is red.
    ///   - needsAuthentication: whether it requires the passcode.
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

  /// The actions, in order.
  public var actions: [Action]
  /// The identifiers of the actions for places with little room; `nil`: the first ones of `actions`.
  public var minimal: [String]?

  /// Makes a category.
  ///
  /// - Parameters:
  ///   - actions: the actions; the first four are shown.
  ///   - minimal: the identifiers for places with little room; the first two are shown.
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

  /// Makes the resources of an app, by default without texts and categories.
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
