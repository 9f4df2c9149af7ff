import Bytes

/// Payloads as a provider's app sends them, of each kind: plain and localized alerts, titles, categories, badges, sounds,
/// custom data, in several languages.
///
/// The payload of a number is a pure function of seed, kind and number. All are clean, but that `mutable` cannot be
/// without `mutable_without_alert`, and `empty` without `aps_empty`; silent kinds belong into frames of command 2 with
/// priority 5, and `voip` under a topic that ends in `.voip`.
public struct PayloadSamples: Sendable {
  let seed: UInt64
  /// Year of sending: keys that are younger are left out. `nil`: up to iOS 10.
  let era: Int
  let languages: [Int]

  /// The available languages, the most used ones first.
  public static var languages: [String] { SampleTheme.languages }

  /// Makes a source of payloads.
  ///
  /// - Parameters:
  ///   - seed: determines all payloads, together with kind and number.
  ///   - era: the year of sending, 2009 or later; newer keys are left out. `nil`: 2016.
  ///   - languages: languages to use; unknown ones are ignored, and if none is known, all are used.
  public init(seed: UInt64, era: Int? = nil, languages: [String] = PayloadSamples.languages) {
    self.seed = seed
    self.era = era ?? 2016
    let known = languages.compactMap(SampleTheme.languages.firstIndex)
    self.languages = known.isEmpty ? Array(SampleTheme.languages.indices) : known
  }

  /// The formats that localized payloads need, as `Localizable.strings` of a language has them.
  package static func strings(language: String) -> [String: String] {
    var strings: [String: String] = [:]
    for theme in SampleTheme.all {
      guard let words = theme.words.first(where: { $0.language == language }) else { continue }
      strings[theme.key] = words.format
      strings[theme.key + "_TITLE"] = words.title
    }
    return strings
  }

  /// The categories that payloads name.
  public static var categories: [String: NotificationCategory] {
    var categories: [String: NotificationCategory] = [:]
    for theme in SampleTheme.all {
      categories[theme.category] = NotificationCategory(
        actions: [
          .init(id: "open", title: "Open", isForeground: true), .init(id: "later", title: "Later"),
          .init(id: "mute", title: "Mute", isDestructive: true),
        ], minimal: ["open", "mute"])
    }
    return categories
  }

  /// The payload of `number`, as compact JSON in UTF-8.
  ///
  /// - Parameters:
  ///   - kind: the purpose of the push. `invalid` payloads are letters and digits.
  ///   - number: the number of the payload; equal numbers have equal payloads.
  ///   - size: the desired length in bytes, met exactly unless it is shorter than the kind allows; then the payload is
  ///     as short as possible. `nil`: a usual length.
  public func payload(_ kind: PayloadKind, number: UInt64, size: Int? = nil) -> [UInt8] {
    var draws = SampleDraws(seed: seed, number: number)
    if kind == .invalid { return Array(garbage(max(1, size ?? 24 + draws.below(40)), &draws).utf8) }
    let usual = usual(kind, &draws)
    guard let size, size != usual.utf8.count else { return Array(usual.utf8) }
    if size - usual.utf8.count >= Self.custom(0).utf8.count {
      return Array((usual.dropLast() + custom(ofLength: size - usual.utf8.count, &draws) + "}").utf8)
    }
    return Array(short(kind, size, &draws).utf8)
  }

  /// The shortest length from which on every exact size is possible: that of the kind's shortest payload, with custom
  /// data if the kind has no text.
  package static func shortestExactSize(of kind: PayloadKind) -> Int {
    let shortest = skeleton(kind).utf8.count
    return kind == .alert || kind == .alertBackground || kind == .invalid ? shortest : shortest + custom(0).utf8.count
  }

  // MARK: usual payloads

  private func usual(_ kind: PayloadKind, _ draws: inout SampleDraws) -> String {
    let theme = draws.pick(SampleTheme.all)
    let custom = ",\"\(theme.object)\":\"\(theme.prefix)-\(draws.below(1_000_000))\""
    switch kind {
    case .alert, .alertBackground:
      var aps = alert(theme, &draws)
      if kind == .alertBackground { aps += ",\"content-available\":1" }
      return "{\"aps\":{\(aps)}\(custom)}"
    case .background, .newsstand:
      return "{\"aps\":{\"content-available\":1},\"rev\":\(draws.below(100_000))}"
    case .badgeOnly:
      let sound = draws.happens(oneIn: 4) ? ",\"sound\":\"\(theme.sound)\"" : ""
      return "{\"aps\":{\"badge\":\(draws.below(30))\(sound)}\(draws.happens(oneIn: 2) ? custom : "")}"
    case .soundOnly: return "{\"aps\":{\"sound\":\"\(theme.sound)\"}\(custom)}"
    case .mutable: return "{\"aps\":{\"mutable-content\":1},\"image\":\"\(draws.below(1_000_000)).jpg\"}"
    case .voip:
      return "{\"aps\":{},\"call\":\"c-\(draws.below(1_000_000))\",\"from\":\"\(draws.pick(SampleTheme.callers))\"}"
    case .empty: return "{\"aps\":{}\(custom)}"
    case .invalid: return ""
    }
  }

  /// The members of `aps` of an alert: a third plain text, a third localized on the device, a third with a title.
  private func alert(_ theme: SampleTheme, _ draws: inout SampleDraws) -> String {
    let words = theme.words[draws.pick(languages)]
    let (first, second) = (draws.pick(theme.firsts), draws.pick(theme.seconds))
    let text = LocalizedFormat(words.format).filled(with: [first, second]).text
    var aps: String
    switch draws.below(3) {
    case 0: aps = "\"alert\":\"\(text)\""
    case 1:
      let title = era >= 2015 && draws.happens(oneIn: 2) ? "\"title-loc-key\":\"\(theme.key)_TITLE\"," : ""
      aps = "\"alert\":{\(title)\"loc-key\":\"\(theme.key)\",\"loc-args\":[\"\(first)\",\"\(second)\"]}"
    default:
      let title = "\"title\":\"\(words.title)\",\"body\":\"\(text)\""
      aps = era >= 2015 ? "\"alert\":{\(title)}" : "\"alert\":\"\(words.title): \(text)\""
    }
    if draws.happens(oneIn: 2) { aps += ",\"badge\":\(1 + draws.below(20))" }
    if draws.happens(oneIn: 2) { aps += ",\"sound\":\"\(draws.happens(oneIn: 3) ? theme.sound : "default")\"" }
    if era >= 2014, draws.happens(oneIn: 3) { aps += ",\"category\":\"\(theme.category)\"" }
    if era >= 2016, draws.happens(oneIn: 4) { aps += ",\"thread-id\":\"\(theme.prefix)-\(draws.below(1000))\"" }
    if era >= 2016, draws.happens(oneIn: 8) { aps += ",\"mutable-content\":1" }
    return aps
  }

  // MARK: of a size

  /// The shortest payload of a kind.
  private static func skeleton(_ kind: PayloadKind) -> String {
    switch kind {
    case .alert: "{\"aps\":{\"alert\":\"!\"}}"
    case .alertBackground: "{\"aps\":{\"alert\":\"!\",\"content-available\":1}}"
    case .background, .newsstand: "{\"aps\":{\"content-available\":1}}"
    case .badgeOnly: "{\"aps\":{\"badge\":1}}"
    case .soundOnly: "{\"aps\":{\"sound\":\"default\"}}"
    case .mutable: "{\"aps\":{\"mutable-content\":1}}"
    case .voip, .empty: "{\"aps\":{}}"
    case .invalid: "?"
    }
  }

  private func short(_ kind: PayloadKind, _ size: Int, _ draws: inout SampleDraws) -> String {
    let skeleton = Self.skeleton(kind)
    let left = size - skeleton.utf8.count
    if kind == .alert || kind == .alertBackground {
      let parts = skeleton.split(separator: "!", maxSplits: 1)
      return parts.count == 2 ? "\(parts[0])\(text(ofLength: left + 1, &draws))\(parts[1])" : skeleton
    }
    guard left >= Self.custom(0).utf8.count else { return skeleton }
    return skeleton.dropLast() + custom(ofLength: left, &draws) + "}"
  }

  /// A text of this many bytes, at least one: a theme's text in one language, repeated, and cut between characters.
  private func text(ofLength length: Int, _ draws: inout SampleDraws) -> String {
    var text = ""
    var left = max(1, length)
    let theme = draws.pick(SampleTheme.all)
    let words = theme.words[draws.pick(languages)]
    while left > 0 {
      let sentence = LocalizedFormat(words.format).filled(with: [draws.pick(theme.firsts), draws.pick(theme.seconds)])
      for character in sentence.text + " " {
        let count = character.utf8.count
        // A full stop replaces a character that is too long.
        text += count <= left ? String(character) : "."
        left -= count <= left ? count : 1
        if left == 0 { break }
      }
    }
    return text
  }

  private static func custom(_ length: Int) -> String { ",\"d\":\"\(String(repeating: "0", count: length))\"" }

  /// An object member of this many bytes, including its comma.
  private func custom(ofLength length: Int, _ draws: inout SampleDraws) -> String {
    ",\"d\":\"\(garbage(length - Self.custom(0).utf8.count, &draws))\""
  }

  /// Letters and digits, as in identifiers and signatures; no JSON value begins with the first letter.
  private func garbage(_ length: Int, _ draws: inout SampleDraws) -> String {
    let letters = Array("XABCDEFGHJKLMNPQRSTUVWYZabcdefghijkmnopqrstuvwxyz0123456789-_".unicodeScalars)
    var text = String.UnicodeScalarView()
    for place in 0..<max(0, length) { text.append(place == 0 ? letters[0] : draws.pick(letters)) }
    return String(text)
  }
}
