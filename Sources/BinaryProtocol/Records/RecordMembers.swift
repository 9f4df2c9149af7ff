import Bytes

/// Why a line is not a usable record of `apnscope decode`.
public struct RecordError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reason, in words.
  public let description: String
  package init(_ description: String) { self.description = description }
}

/// The members of one record, in their order: a view of its line, which is JSON (Documentation/records.md).
///
/// Names and values are ranges of the line; nothing is copied. A string's range excludes its quotes.
package struct RecordMembers: ~Escapable {
  package enum Kind { case string, number, structure, literal }

  package struct Member {
    package var name: Range<Int>
    package var kind: Kind
    package var value: Range<Int>
  }

  package let line: RawSpan
  private var offset: Int

  /// `nil` for an empty line; throws if the line is not a JSON object.
  @_lifetime(copy line)
  package init?(_ line: RawSpan) throws(RecordError) {
    var start = 0
    while start < line.byteCount, Self.isSpace(line.byte(at: start)) { start += 1 }
    guard start < line.byteCount else { return nil }
    // Everything after it is then known to be well-formed.
    guard line.byte(at: start) == UInt8(ascii: "{"), JSONText.scan(line) != .invalid else {
      throw RecordError("not a JSON object")
    }
    self.line = line
    offset = start + 1
  }

  /// The next member; `nil` after the last.
  package mutating func next() -> Member? {
    skip(to: UInt8(ascii: "\""))
    guard offset < line.byteCount else { return nil }
    let name = offset + 1..<endOfString()
    offset = name.upperBound + 1
    skip(to: UInt8(ascii: ":"))
    offset += 1
    while Self.isSpace(line.byte(at: offset)) { offset += 1 }
    let start = offset
    switch line.byte(at: start) {
    case UInt8(ascii: "\""):
      let value = start + 1..<endOfString()
      offset = value.upperBound + 1
      return Member(name: name, kind: .string, value: value)
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      skipStructure()
      return Member(name: name, kind: .structure, value: start..<offset)
    case let first:
      while !Self.endsScalar(line.byte(at: offset)) { offset += 1 }
      let isNumber = first == UInt8(ascii: "-") || Self.isDigit(first)
      return Member(name: name, kind: isNumber ? .number : .literal, value: start..<offset)
    }
  }

  // MARK: values

  package func isName(_ name: StaticString, of member: Member) -> Bool { isText(name, member.name) }

  package func isText(_ text: StaticString, _ range: Range<Int>) -> Bool {
    range.count == text.utf8CodeUnitCount && line.holds(text, at: range.lowerBound)
  }

  /// Throws unless it is a number of digits alone, up to `most`, which is below 10¹⁸.
  package func number(_ member: Member, _ name: StaticString, most: Int = 999_999_999_999) throws(RecordError) -> Int {
    var value = 0
    guard member.kind == .number || member.kind == .literal || member.kind == .string else {
      throw RecordError("wrong type of value for '\(name)'")
    }
    guard member.kind == .number, member.value.count <= 18 else { throw RecordError("'\(name)' is not a whole number") }
    for offset in member.value {
      guard Self.isDigit(line.byte(at: offset)) else { throw RecordError("'\(name)' is not a whole number") }
      value = value * 10 + Int(line.byte(at: offset) - UInt8(ascii: "0"))
    }
    guard value <= most else { throw RecordError("'\(name)' exceeds \(most)") }
    return value
  }

  /// Throws unless it is a string.
  package func string(_ member: Member, _ name: StaticString) throws(RecordError) -> Range<Int> {
    guard member.kind == .string else { throw RecordError("wrong type of value for '\(name)'") }
    return member.value
  }

  // MARK: the line

  private mutating func skip(to byte: UInt8) {
    while offset < line.byteCount, line.byte(at: offset) != byte { offset += 1 }
  }

  /// The place of the closing quote of the string that begins at `offset`.
  private func endOfString() -> Int {
    var end = offset + 1
    while line.byte(at: end) != UInt8(ascii: "\"") { end += line.byte(at: end) == UInt8(ascii: "\\") ? 2 : 1 }
    return end
  }

  private mutating func skipStructure() {
    var depth = 0
    repeat {
      switch line.byte(at: offset) {
      case UInt8(ascii: "\""): offset = endOfString()
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      default: break
      }
      offset += 1
    } while depth > 0
  }

  package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d }
  package static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
  private static func endsScalar(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || isSpace(byte)
  }
}

/// The kind of a record.
package struct RecordKind {
  /// The number of the records' contract that is understood.
  package static let schema = 1

  package private(set) var isNotification = false
  package private(set) var isCapture = false
  private var hasType = false
  /// The record is known to be neither a notification nor a `capture` record.
  package var isOther: Bool { hasType && !isNotification && !isCapture }
  private var schema: Int?

  package init() {}

  /// Reads a member that identifies the record; `false` for other members.
  package mutating func read(_ member: RecordMembers.Member, of members: borrowing RecordMembers) throws(RecordError)
    -> Bool
  {
    if members.isName("type", of: member) {
      if member.kind == .structure { throw RecordError("wrong type of value for 'type'") }
      guard member.kind == .string else { return true }
      hasType = true
      isNotification = members.isText("notification", member.value)
      isCapture = members.isText("capture", member.value)
    } else if members.isName("schema", of: member) {
      schema = try members.number(member, "schema")
    } else {
      return false
    }
    return true
  }

  /// Throws if the line is not a record, or a record of another schema version.
  package func check() throws(RecordError) {
    guard hasType else { throw RecordError("not a record: missing field 'type'") }
    if isCapture, let schema, schema != Self.schema {
      throw RecordError("unsupported schema \(schema) of records; this apnscope reads schema \(Self.schema)")
    }
  }
}
