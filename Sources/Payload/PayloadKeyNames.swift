import Bytes

/// Replacements for the undocumented keys of an object: of the same length, equal for equal keys, and different for
/// different keys.
struct PayloadKeyNames {
  /// The position of an object in a payload.
  enum Level {
    case root(hasAPS: Bool)
    case aps, alert, sound
    /// In the app's own data.
    case other

    /// Whether a key is documented for an object of this level, or for another one of `aps`, where it is misplaced.
    func keeps(_ key: Int, _ tape: JSONTape, _ text: RawSpan) -> Bool {
      switch self {
      case .root: tape.isKey(key, "aps", text) || tape.isKey(key, "mdm", text) || tape.knownKey(key, text) != nil
      case .aps, .alert: tape.knownKey(key, text) != nil
      case .sound: tape.isKey(key, "critical", text) || tape.isKey(key, "name", text) || tape.isKey(key, "volume", text)
      case .other: false
      }
    }

    /// The level whose known keys unknown ones are compared with; `nil`: they are not compared.
    fileprivate var compared: PayloadKey.Level? {
      switch self {
      case .aps: .aps
      case .alert: .alert
      default: nil
      }
    }
  }

  private let level: Level
  private var used: Set<[UInt8]> = []
  private var given: [[UInt8]: [UInt8]] = [:]
  /// The number of the next name, by length.
  private var next: [Int: Int] = [:]

  init(_ level: Level) { self.level = level }

  /// Notes a key that stays.
  mutating func keep(_ key: [UInt8]) { used.insert(key) }

  /// The replacement for a key.
  ///
  /// - Parameters:
  ///   - length: the length of the replacement.
  ///   - isDictionary: the value is a dictionary, which may have been meant to be `aps`.
  mutating func name(for key: [UInt8], _ length: Int, isDictionary: Bool) -> [UInt8] {
    if let name = given[key], name.count == length { return name }
    let name = misspelt(key, length, isDictionary) ?? plain(length, isDictionary)
    given[key] = name
    used.insert(name)
    return name
  }

  // MARK: names that resemble nothing

  /// Printed ASCII characters but quotes and backslashes.
  private static let letters: [UInt8] = {
    let words = Array("xabcdefghijklmnopqrstuvwyzXABCDEFGHIJKLMNOPQRSTUVWYZ0123456789".utf8)
    return words + (UInt8(0x20)...0x7f).filter { !words.contains($0) && $0 != 0x22 && $0 != 0x5c }
  }()
  /// The number of replacements that are tried before one is used twice.
  private static let maximumTries = 1_000

  private mutating func plain(_ length: Int, _ isDictionary: Bool) -> [UInt8] {
    let first = next[length] ?? 0
    for number in first..<first + Self.maximumTries {
      guard let name = Self.name(number, length) else { break }
      if used.contains(name) || likeness(name, isDictionary) != nil || isKnown(name) { continue }
      next[length] = number + 1
      return name
    }
    return [UInt8](repeating: UInt8(ascii: "x"), count: length)
  }

  /// `xxx`, `xxa`, `xxb`, …; `nil` behind the last.
  private static func name(_ number: Int, _ length: Int) -> [UInt8]? {
    var name = [UInt8](repeating: letters[0], count: length)
    var rest = number
    for place in name.indices.reversed() where rest > 0 {
      name[place] = letters[rest % letters.count]
      rest /= letters.count
    }
    return rest == 0 ? name : nil
  }

  // MARK: names that resemble a documented key

  private enum Likeness: Equatable {
    case key(PayloadKey)
    case aps
  }

  private func isKnown(_ name: [UInt8]) -> Bool {
    PayloadKey.named(name.rawBytes, name.indices) != nil || name == Array("aps".utf8) || name == Array("mdm".utf8)
  }

  /// The documented key that a name resembles, in the eyes of `PayloadJudge`.
  private func likeness(_ name: [UInt8], _ isDictionary: Bool) -> Likeness? {
    if let compared = level.compared {
      return name.count <= 510
        ? KeyLikeness.best(for: String(decoding: name, as: UTF8.self), in: compared).map { .key($0) } : nil
    }
    guard case .root(hasAPS: false) = level, isDictionary, name.count <= 62 else { return nil }
    return KeyLikeness.isLikeAPS(String(decoding: name, as: UTF8.self)) ? .aps : nil
  }

  private func misspelt(_ key: [UInt8], _ length: Int, _ isDictionary: Bool) -> [UInt8]? {
    guard let likeness = likeness(key, isDictionary) else { return nil }
    let known =
      switch likeness {
      case .key(let known): KeyLikeness.normalForm(known.name.description).map { UInt8(truncatingIfNeeded: $0.value) }
      case .aps: Array("aps".utf8)
      }
    // Low lines are passed over when names are compared.
    let padding = [UInt8](repeating: UInt8(ascii: "_"), count: max(0, length - known.count))
    let base = Array(known.prefix(length)) + padding
    func fits(_ name: [UInt8]) -> Bool {
      !used.contains(name) && !isKnown(name) && self.likeness(name, isDictionary) == likeness
    }
    if fits(base) { return base }
    for place in base.indices.reversed() {
      for letter in "xqzjk".utf8 {
        var name = base
        name[place] = letter
        if fits(name) { return name }
      }
    }
    return nil
  }
}
