import Bytes

extension JSONObject {
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
