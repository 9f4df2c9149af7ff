import Bytes

/// The members of a small JSON object. The memory is reused for the next one.
struct JSONObject: Sendable {
  private var tape = JSONTape()

  /// Reads an object; `false` if the text is none.
  mutating func read(_ text: RawSpan) -> Bool {
    tape.read(text) == nil && tape.kind(0) == .object
  }

  private func value(_ key: String, _ text: RawSpan) -> Int? {
    var found: Int?
    tape.forEachKey(ofObject: 0) { if tape.string($0, text) == key { found = $0 + 1 } }
    return found
  }

  /// A member that is a string.
  func string(_ key: String, _ text: RawSpan) -> String? {
    guard let value = value(key, text), tape.kind(value) == .string else { return nil }
    return tape.string(value, text)
  }

  /// A member that is a whole number.
  func integer(_ key: String, _ text: RawSpan) -> Int? {
    guard let value = value(key, text), tape.kind(value) == .number else { return nil }
    return tape.number(value, text).integer
  }

  /// A member that is a time in seconds, rounded down: a number, or a string with one.
  func time(_ key: String, _ text: RawSpan) -> (seconds: Int, form: ProviderToken.TimeForm)? {
    guard let value = value(key, text) else { return nil }
    switch tape.kind(value) {
    case .number:
      let number = tape.number(value, text)
      if number.isWhole { return number.integer.map { ($0, .integer) } }
      return Self.floor(tape.written(value, text)).map { ($0, .fraction) }
    case .string: return Self.floor(tape.string(value, text)).map { ($0, .string) }
    default: return nil
    }
  }

  private static func floor(_ text: String) -> Int? {
    guard let number = Double(text), number.isFinite, abs(number) < 1e15 else { return nil }
    return Int(number.rounded(.down))
  }
}
