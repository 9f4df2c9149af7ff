import Bytes
import Foundation
import TestSupport
import Testing

@Suite("The layout of JSON documents")
struct JSONLayoutTests {
  private func laidOut(_ text: String) -> String {
    String(decoding: JSONLayout.withNumbersInLine(Array(text.utf8)), as: UTF8.self)
  }

  @Test(
    "Numbers of a list are side by side, and all else stays as it is",
    arguments: [
      ("[\n  1,\n  2\n]", "[1, 2]"), ("[1,2]", "[1, 2]"), ("[\n\n]", "[]"), ("{\n\n}", "{}"), ("[ ]", "[]"),
      ("[\n  [\n    0.5,\n    1\n  ],\n  [\n    -1e+15,\n    2\n  ]\n]", "[\n  [0.5, 1],\n  [-1e+15, 2]\n]"),
      ("[\n  \"a\",\n  1\n]", "[\n  \"a\",\n  1\n]"), ("[\n  1,\n  \"a\"\n]", "[\n  1,\n  \"a\"\n]"),
      ("[\n  true,\n  null\n]", "[\n  true,\n  null\n]"), ("{\n  \"a\" : 1\n}", "{\n  \"a\" : 1\n}"),
      (#"{"a\"[1,2]" : "[\n 3,4]\\"}"#, #"{"a\"[1,2]" : "[\n 3,4]\\"}"#), ("12", "12"), ("", ""),
      ("{\n  \"a\" : {\n\n  },\n  \"b\" : [\n    7\n  ]\n}", "{\n  \"a\" : {},\n  \"b\" : [7]\n}"),
      ("[\n  {\n    \"a\" : [\n      1\n    ]\n  }\n]", "[\n  {\n    \"a\" : [1]\n  }\n]"),
    ])
  func layout(text: String, laidOut expected: String) {
    #expect(laidOut(text) == expected)
    #expect(laidOut(expected) == expected)
  }

  @Test("A list of more than ten has ten on each line, as deep as it was")
  func long() {
    let numbers = (1...21).map(String.init)
    let text = "{\n  \"a\" : [\n    \(numbers.joined(separator: ",\n    "))\n  ]\n}"
    let lines = [1...10, 11...20, 21...21].map { $0.map(String.init).joined(separator: ", ") }
    let expected = "{\n  \"a\" : [\n    \(lines.joined(separator: ",\n    "))\n  ]\n}"
    #expect(laidOut(text) == expected)
    #expect(laidOut(expected) == expected)
  }

  @Test("What is cut or no JSON comes out as no less")
  func cut() throws {
    let text = "{\n  \"a\\\\\" : [\n    1,\n    [\n      2,\n      3\n    ]\n  ],\n  \"b\" : {\n\n  }\n}"
    for length in 0...text.utf8.count {
      let part = String(decoding: Array(text.utf8).prefix(length), as: UTF8.self)
      func ink(_ text: String) -> String { text.filter { !$0.isWhitespace } }
      #expect(ink(laidOut(part)) == ink(part))
    }
    for text in ["[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[[[[", "\"", "\"\\", "{", "]", "[1,2"] {
      #expect(laidOut(text).filter { $0 != " " } == text.filter { $0 != " " })
    }
  }

  /// A value of every kind, nested at most so deep.
  private func value(_ random: inout SeededGenerator, depth: Int) -> Any {
    switch random.number(0...(depth > 0 ? 7 : 4)) {
    case 0: return random.number(-1_000...1_000)
    case 1: return Double(random.number(-1_000...1_000)) / 8
    case 2: return random.pick(["", "[1, 2]", "a\"b\\", "{ }", "\n[\n", "é"])
    case 3: return true
    case 4: return NSNull()
    case 5: return (0..<random.number(0...25)).map { _ in random.number(0...99) }
    case 6: return (0..<random.number(0...4)).map { _ in value(&random, depth: depth - 1) }
    default:
      let names = (0..<random.number(0...4)).map { "\($0)[" }
      return Dictionary(uniqueKeysWithValues: names.map { ($0, value(&random, depth: depth - 1)) })
    }
  }

  @Test("It is the same document, and laying it out again changes nothing", arguments: seeds(50, of: 2_000))
  func sameDocument(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let value = ["a": value(&random, depth: 4)]
    func again(_ text: String) throws -> Data {
      let read = try JSONSerialization.jsonObject(with: Data(text.utf8))
      return try JSONSerialization.data(withJSONObject: read, options: [.sortedKeys])
    }
    for options in [[.prettyPrinted, .sortedKeys], [.sortedKeys]] as [JSONSerialization.WritingOptions] {
      let text = String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
      let laidOut = laidOut(text)
      #expect(try again(laidOut) == again(text))
      #expect(self.laidOut(laidOut) == laidOut)
    }
  }
}
