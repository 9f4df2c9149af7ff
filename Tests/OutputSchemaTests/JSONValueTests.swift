import OutputSchema
import Testing

@Suite("JSON values")
struct JSONValueTests {
  private func parsed(_ text: String) throws -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

  @Test("Members keep their order, and numbers their digits")
  func asWritten() throws {
    #expect(
      try parsed(" {\"b\": [1.50, -0, 1e+9, true, false, null],\n\"a\": {}, \"b\": \"\"} ")
        == .object([
          .init("b", [.number("1.50"), .number("-0"), .number("1e+9"), true, false, .null]), .init("a", .object([])),
          .init("b", ""),
        ]))
  }

  @Test("Escapes are characters, also those that need two")
  func escapes() throws {
    #expect(try parsed(#""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00""#) == "a\"\\/\u{8}\u{c}\n\r\téé😀")
  }

  @Test("Half of a pair stands for itself", arguments: [#""\ud83d""#, #""\ude00""#, #""\ud83d\u0041""#])
  func halves(text: String) throws {
    let value = try parsed(text)
    guard case .string(let string) = value else {
      Issue.record("\(value)")
      return
    }
    #expect(string.unicodeScalars.first == "\u{fffd}")
    #expect(string.hasSuffix("A") == text.contains("0041"))
  }

  @Test(
    "A syntax error says where it is",
    arguments: [
      ("", 0), ("{", 1), ("[1,]", 3), ("[1 2]", 3), ("{\"a\" 1}", 5), ("{a:1}", 1), ("{\"a\":1,}", 7), ("nul", 0),
      ("01", 1), ("1.", 2), ("-", 1), ("1e", 2), ("\"a", 2), ("\"\\x\"", 3), ("\"\\u12\"", 3), ("1 1", 2), ("tru", 0),
      ("\"\u{1}\"", 1),
    ])
  func errors(text: String, offset: Int) {
    let error = #expect(throws: JSONError.self) { try parsed(text) }
    #expect(error?.offset == offset, "\(text): \(error.map { "\($0)" } ?? "")")
  }

  @Test("Values that are nested without end are an error")
  func depth() {
    #expect(throws: JSONError.self) { try parsed(String(repeating: "[", count: 100_000)) }
    #expect(throws: Never.self) {
      try parsed(String(repeating: "[", count: 500) + String(repeating: "]", count: 500))
    }
  }

  @Test("A printed value reads back as the same")
  func printed() throws {
    let value: JSONValue = [
      "a": ["x\n\u{1}\u{9b}\"\\é", .number("1.50"), [], .object([]), .null, true], "b": ["c": 1],
    ]
    #expect(try parsed(value.text) == value)
    #expect(
      (["a": [1], "b": .object([])] as JSONValue).text == """
        {
          "a": [
            1
          ],
          "b": {}
        }
        """)
    #expect(!value.text.unicodeScalars.contains { (0x7f..<0xa0).contains($0.value) })
  }
}
