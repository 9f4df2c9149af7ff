/// The members of a small JSON object. The memory is reused for the next one.
package struct JSONObject: Sendable {
  package private(set) var tape = JSONTape()

  package init() {}

  /// Reads an object; `false` if the text is none.
  package mutating func read(_ text: RawSpan) -> Bool { fault(reading: text) == nil }

  /// Reads an object, and returns the offset of the first byte because of which the text is none.
  package mutating func fault(reading text: RawSpan) -> Int? {
    if let fault = tape.read(text) { return fault.offset }
    return tape.kind(0) == .object ? nil : 0
  }

  /// The index on the tape of a member's value.
  package func value(_ key: String, _ text: RawSpan) -> Int? {
    var found: Int?
    tape.forEachKey(ofObject: 0) { if isKey($0, key, text) { found = $0 + 1 } }
    return found
  }

  /// Compares bytes, so that no string of each key is made.
  private func isKey(_ index: Int, _ key: String, _ text: RawSpan) -> Bool {
    guard !tape.nodes[index].hasEscapes else { return tape.string(index, text) == key }
    let contents = tape.contents(index)
    guard contents.count == key.utf8.count else { return false }
    var offset = contents.lowerBound
    for byte in key.utf8 {
      guard text.byte(at: offset) == byte else { return false }
      offset += 1
    }
    return true
  }

  /// A member that is a string.
  package func string(_ key: String, _ text: RawSpan) -> String? {
    guard let value = value(key, text), tape.kind(value) == .string else { return nil }
    return tape.string(value, text)
  }

  /// A member that is a whole number.
  package func integer(_ key: String, _ text: RawSpan) -> Int? {
    guard let value = value(key, text), tape.kind(value) == .number else { return nil }
    return tape.number(value, text).integer
  }

  /// The text of a member's value, as a range of the whole; `nil` without the member.
  package func range(_ key: String, _ text: RawSpan) -> Range<Int>? { value(key, text).map(tape.range) }
}
