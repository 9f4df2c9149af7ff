import Bytes

/// A push as a user would have seen it, of an app that is not in the foreground and may use alerts, badges and sounds.
public struct PayloadRendering: Sendable, Equatable {
  /// A part that is not shown, or not as it was sent; the raw values are the words of JSON output.
  public enum Note: String, Sendable, CaseIterable, Comparable {
    case alertIgnored = "alert_ignored"
    case argsNotStrings = "args_not_strings"
    /// A placeholder without an argument is shown as is; what a device shows is not documented.
    case argsTooFew = "args_too_few"
    /// Whether the app wakes is not certain.
    case backgroundUnsure = "background_unsure"
    case badgeIgnored = "badge_ignored"
    case categoryIgnored = "category_ignored"
    case categoryUnknown = "category_unknown"
    case invalid
    case keyMissing = "key_missing"
    case mutableIgnored = "mutable_ignored"
    case nothingShown = "nothing_shown"
    case soundDefault = "sound_default"
    case soundEmpty = "sound_empty"
    case soundIgnored = "sound_ignored"
    case subtitleIgnored = "subtitle_ignored"
    /// Reports differ on which of the two is shown; here it is the key's.
    case textAndKey = "text_and_key"
    /// Only the beginning of a text is shown.
    case textCut = "text_cut"
    case threadIgnored = "thread_ignored"
    case titleIgnored = "title_ignored"
    /// The title is in Notification Center and on a watch, not in banners or on the lock screen.
    case titleWatchAndCenter = "title_watch_and_center"

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    /// The rule that the payload breaks along with the note, if any.
    public var rule: PayloadRule? {
      switch self {
      case .alertIgnored: .alertType
      case .argsNotStrings: .locArgsType
      case .argsTooFew: .locArgsTooFew
      case .backgroundUnsure: .contentAvailableValue
      case .keyMissing: .locKeyNotFound
      case .soundDefault, .soundEmpty: .soundFileName
      case .soundIgnored: .soundType
      case .textAndKey: .locKeyAndText
      case .badgeIgnored, .categoryIgnored, .categoryUnknown, .invalid, .mutableIgnored, .nothingShown,
        .subtitleIgnored, .textCut, .threadIgnored, .titleIgnored, .titleWatchAndCenter:
        nil
      }
    }
  }

  /// Buttons by place. Close, View, Options and OK are names: a device shows them in its language.
  public struct Buttons: Sendable, Equatable {
    /// The buttons of the alert.
    public var dialog: [String] = []
    /// The actions under *Options*.
    public var options: [String] = []
    /// The actions on the lock screen, in banners and in Notification Center.
    public var compact: [String] = []
  }

  /// The title; `nil` if none is shown.
  public var title: String?
  /// The subtitle; `nil` if none is shown.
  public var subtitle: String?
  /// The text with its arguments; `nil` if none is shown.
  public var body: String?
  /// The buttons of the notification.
  public var buttons = Buttons()
  /// The number on the app's icon; 0 removes it, `nil` leaves it unchanged.
  public var badge: Int?
  /// The sound: `default`, or the name of a file; `nil` for none.
  public var sound: String?
  /// Whether the app wakes in the background.
  public var wakesApp = false
  /// Whether the app's extension may replace the texts before they are shown.
  public var mayBeChanged = false
  /// The parts that are not shown as sent; sorted, without repetitions.
  public internal(set) var notes: [Note] = []

  init() {}

  /// Renders a payload as a device would that runs `system` in `language`.
  ///
  /// There is no fallback to another language: a language without a table has no keys. A payload that is not valid JSON
  /// has the note `invalid`.
  ///
  /// - Parameters:
  ///   - payload: the bytes as they were sent.
  ///   - system: the version of the system.
  ///   - language: a key of `resources.strings`.
  ///   - resources: the texts and categories of the app.
  public init(of payload: RawSpan, on system: SystemVersion, language: String, resources: AppResources) {
    var renderer = PayloadRenderer(
      system: system, strings: resources.strings[language] ?? [:], categories: resources.categories)
    renderer.render(payload)
    self = renderer.shown
    notes = renderer.notes.sorted()
  }
}

/// A rendering while it is made.
struct PayloadRenderer {
  let system: SystemVersion
  let strings: [String: String]
  let categories: [String: NotificationCategory]
  var shown = PayloadRendering()
  var notes: Set<PayloadRendering.Note> = []

  init(system: SystemVersion, strings: [String: String], categories: [String: NotificationCategory]) {
    self.system = system
    self.strings = strings
    self.categories = categories
  }

  mutating func render(_ payload: RawSpan) {
    let text = PayloadText(of: payload)
    guard text.encoding == .utf8 else {
      guard let converted = text.converted(payload) else { return note(.invalid) }
      return render(text: converted.rawBytes)
    }
    render(text: payload.extracting(text.start..<text.end))
  }

  private mutating func render(text: RawSpan) {
    var tape = JSONTape()
    guard tape.read(text) == nil, tape.kind(0) == .object else { return note(.invalid) }
    var aps: Int?
    tape.forEachKey(ofObject: 0) { key in if tape.isKey(key, "aps", text) { aps = key + 1 } }
    guard let aps else { return note(.nothingShown) }
    guard tape.kind(aps) == .object else { return note(.invalid) }
    let members = tape.members(of: aps, .aps, text)
    let alert = renderAlert(members, tape, text)
    renderButtons(members, alert: alert, tape, text)
    renderBadgeAndSound(members, tape, text)
    renderFlags(members, tape, text)
    if shown.body == nil, shown.title == nil, shown.subtitle == nil, shown.badge == nil, shown.sound == nil {
      note(.nothingShown)
    }
  }

  mutating func note(_ note: PayloadRendering.Note) { notes.insert(note) }

  private mutating func renderBadgeAndSound(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    if let badge = members[.badge] {
      if let number = tape.smallNumber(badge, text), number >= 0 { shown.badge = number } else { note(.badgeIgnored) }
    }
    guard let sound = members[.sound] else { return }
    if tape.kind(sound) != .string {
      note(.soundIgnored)
    } else if tape.isEmptyString(sound) {
      note(.soundEmpty)
    } else if SoundName.isValid(tape, sound, text) {
      shown.sound = tape.string(sound, text)
    } else {
      shown.sound = "default"
      note(.soundDefault)
    }
  }

  private mutating func renderFlags(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    if let flag = members[.contentAvailable] {
      switch tape.smallNumber(flag, text) {
      case 1: shown.wakesApp = true
      case 0: break
      default: note(.backgroundUnsure)
      }
    }
    if let flag = members[.mutableContent] {
      switch tape.smallNumber(flag, text) {
      case 0: break
      case 1 where system >= .iOS10 && (shown.body != nil || shown.title != nil): shown.mayBeChanged = true
      default: note(.mutableIgnored)
      }
    }
    if members[.threadID] != nil, system < .iOS10 { note(.threadIgnored) }
  }
}

extension JSONTape {
  /// The known keys of a dictionary of `level`.
  func members(of object: Int, _ level: PayloadKey.Level, _ text: RawSpan) -> PayloadMembers {
    var members = PayloadMembers()
    forEachKey(ofObject: object) { key in
      if let known = knownKey(key, text), known.level == level { members.set(known, to: key + 1) }
    }
    return members
  }
}
