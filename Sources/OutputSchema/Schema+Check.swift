extension Schema {
  /// The documents that are checked against the schema.
  public enum Age: Sendable {
    /// Written by this version: every field is there that it always writes.
    case current
    /// Of any version: fields that later versions added may be missing.
    case any
  }

  /// A difference between an output and its schema.
  public struct Problem: Sendable, Equatable, CustomStringConvertible {
    /// The kinds of differences.
    public enum Kind: Sendable, Equatable {
      /// The output is not valid JSON.
      case syntax(String)
      case missingField
      case unknownField
      case repeatedField
      /// A value of another type than the schema's.
      case type(found: String, expected: String)
      case unknownValue(String)
      /// Too few or too many elements of a tuple.
      case length(found: Int, expected: Int)
    }

    /// The path to the problem: `$.phases[2].rates`; in JSON Lines after the line's number.
    public let path: String
    /// The kind of difference.
    public let kind: Kind

    package init(_ path: String, _ kind: Kind) { (self.path, self.kind) = (path, kind) }

    public var description: String {
      switch kind {
      case .syntax(let text): "\(path): not JSON: \(text)"
      case .missingField: "\(path) is missing"
      case .unknownField: "\(path) is not in the schema"
      case .repeatedField: "\(path) is there twice"
      case .type(let found, let expected): "\(path) is \(found), not \(expected)"
      case .unknownValue(let value): "\(path): '\(value)' is not one of the values in the schema"
      case .length(let found, let expected): "\(path) has \(found) elements, not \(expected)"
      }
    }
  }

  /// The most problems that are reported for one output.
  static let maximumProblems = 100

  /// Checks an output against the schema.
  ///
  /// In JSON Lines the last line need not end in a line feed. Settings are checked as a JSON object.
  ///
  /// - Parameters:
  ///   - bytes: the output: a JSON document, JSON Lines, or the JSON form of settings.
  ///   - age: whether fields that later versions added may be missing.
  /// - Returns: the problems in the order of the output, at most 100; empty if it is valid.
  public func check(_ bytes: [UInt8], age: Age = .current) -> [Problem] {
    var check = SchemaCheck(age: age)
    if form == .lines {
      for (index, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
        check.check(Array(line), validRoot, at: "line \(index + 1): $")
      }
    } else {
      check.check(bytes, validRoot, at: "$")
    }
    return check.problems
  }

  /// Checks a text against the schema, like `check(_:age:)` for bytes.
  public func check(_ text: String, age: Age = .current) -> [Problem] { check(Array(text.utf8), age: age) }
}

private struct SchemaCheck {
  let age: Schema.Age
  var problems: [Schema.Problem] = []

  init(age: Schema.Age) { self.age = age }

  private mutating func note(_ path: String, _ kind: Schema.Problem.Kind) {
    if problems.count < Schema.maximumProblems { problems.append(Schema.Problem(path, kind)) }
  }

  mutating func check(_ bytes: [UInt8], _ shape: Shape, at path: String) {
    do {
      check(try JSONValue(parsing: bytes), shape, at: path)
    } catch {
      note(path, .syntax("\(error)"))
    }
  }

  private mutating func check(_ value: JSONValue, _ shape: Shape, at path: String) {
    switch (shape, value) {
    case (.anything, _), (.number, .number), (.boolean, .boolean), (.null, .null), (.string(.any), .string): return
    case (.named(let definition), _): check(value, definition.shape, at: path)
    case (.integer, .number(let digits)) where digits.isWholeNumber: return
    case (.exactly(let number), .number(let digits)) where digits == "\(number)": return
    case (.string(let notation), .string(let text)) where text.isWritten(in: notation): return
    case (.word(let word), .string(let text)) where word == text: return
    case (.enumeration(let values), .string(let text)):
      if !values.contains(where: { $0.name == text }) { note(path, .unknownValue(text)) }
    case (.array(let element), .array(let elements)):
      for (index, value) in elements.enumerated() { check(value, element, at: "\(path)[\(index)]") }
    case (.tuple(let shapes), .array(let elements)):
      guard shapes.count == elements.count else {
        return note(path, .length(found: elements.count, expected: shapes.count))
      }
      for (index, (shape, value)) in zip(shapes, elements).enumerated() { check(value, shape, at: "\(path)[\(index)]") }
    case (.object(let fields), .object(let members)): check(members, fields, at: path)
    case (.map(let key, let shape), .object(let members)):
      checkNames(members, at: path)
      for member in members {
        checkKey(member.name, key, at: "\(path).\(member.name)")
        check(member.value, shape, at: "\(path).\(member.name)")
      }
    case (.choice(let discriminator, let alternatives), .object(let members)):
      check(members, by: discriminator, alternatives, at: path)
    case (.either(let shapes), _): check(value, oneOf: shapes, at: path)
    default: note(path, .type(found: value.typeName, expected: shape.typeName))
    }
  }

  private mutating func check(_ members: [JSONValue.Member], _ fields: [Field], at path: String) {
    checkNames(members, at: path)
    for field in fields {
      if let member = members.first(where: { $0.name == field.name }) {
        check(member.value, field.shape, at: "\(path).\(field.name)")
      } else if isNeeded(field) {
        note("\(path).\(field.name)", .missingField)
      }
    }
    for member in members where !isKnown(member.name, fields) {
      note("\(path).\(member.name)", .unknownField)
    }
  }

  private func isNeeded(_ field: Field) -> Bool {
    switch field.presence {
    case .always: true
    case .when: false
    case .since: age == .current
    case .until: false
    }
  }

  private func isKnown(_ name: String, _ fields: [Field]) -> Bool {
    fields.contains { field in
      if case .until = field.presence, age == .current { return false }
      return field.name == name
    }
  }

  private mutating func checkNames(_ members: [JSONValue.Member], at path: String) {
    var seen: Set<String> = []
    for member in members where !seen.insert(member.name).inserted { note("\(path).\(member.name)", .repeatedField) }
  }

  private mutating func check(
    _ members: [JSONValue.Member], by discriminator: String, _ alternatives: [Shape.Alternative], at path: String
  ) {
    let place = "\(path).\(discriminator)"
    guard let member = members.first(where: { $0.name == discriminator }) else { return note(place, .missingField) }
    guard case .string(let name) = member.value else {
      return note(place, .type(found: member.value.typeName, expected: Shape.text.typeName))
    }
    guard let alternative = alternatives.first(where: { $0.name == name }) else {
      return note(place, .unknownValue(name))
    }
    check(members, [Field(discriminator, .word(name), "")] + alternative.fields, at: path)
  }

  private mutating func checkKey(_ name: String, _ shape: Shape, at path: String) {
    switch shape {
    case .integer where !name.isWholeNumber: note(path, .type(found: "a key", expected: shape.typeName))
    case .enumeration(let values) where !values.contains(where: { $0.name == name }): note(path, .unknownValue(name))
    default: break
    }
  }

  /// Reports the problems of the shape that has the fewest.
  private mutating func check(_ value: JSONValue, oneOf shapes: [Shape], at path: String) {
    let attempts = shapes.map { shape in
      var attempt = SchemaCheck(age: age)
      attempt.check(value, shape, at: path)
      return attempt.problems
    }
    guard let best = attempts.min(by: { $0.count < $1.count }), !best.isEmpty else { return }
    // No shape has the type of the value: all types are expected.
    if case .type(let found, _) = best[0].kind, best[0].path == path {
      return note(path, .type(found: found, expected: Shape.either(shapes).typeName))
    }
    for problem in best { note(problem.path, problem.kind) }
  }
}

extension JSONValue {
  var typeName: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .number(let digits): "the number \(digits)"
    case .string(let text): text.utf8.count <= 40 ? "the string '\(text)'" : "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

extension String {
  /// Whether the text is decimal digits, optionally with a minus; a large number may have an exponent: 10^15 is written
  /// `1e+15`.
  var isWholeNumber: Bool {
    func isDigits(_ text: Substring.UTF8View) -> Bool {
      !text.isEmpty && text.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
    let number = hasPrefix("-") ? dropFirst() : self[...]
    guard let exponent = number.firstRange(of: "e+") else { return isDigits(number.utf8) }
    return isDigits(number[..<exponent.lowerBound].utf8) && isDigits(number[exponent.upperBound...].utf8)
  }

  func isWritten(in notation: Shape.Notation) -> Bool {
    switch notation {
    case .any: true
    case .time: isTime
    case .hexadecimal: utf8.count % 2 == 0 && utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    case .base64: isBase64
    }
  }

  /// `2015-09-16T01:02:03Z`, with or without decimals of the second.
  private var isTime: Bool {
    let pattern = Array("0000-00-00T00:00:00".utf8)
    let characters = Array(utf8)
    guard characters.count > pattern.count, characters.last == UInt8(ascii: "Z") else { return false }
    func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    for (character, expected) in zip(characters, pattern) {
      guard expected == UInt8(ascii: "0") ? isDigit(character) : character == expected else { return false }
    }
    let decimals = characters[pattern.count..<(characters.count - 1)]
    return decimals.isEmpty
      || decimals.first == UInt8(ascii: ".") && decimals.count > 1 && decimals.dropFirst().allSatisfy(isDigit)
  }

  private var isBase64: Bool {
    let padding = utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    return utf8.count % 4 == 0 && padding <= 2
      && utf8.dropLast(padding).allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/")
      }
  }
}
