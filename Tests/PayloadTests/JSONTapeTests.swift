import Bytes
import TestSupport
import Testing

@Suite("JSON with positions")
struct JSONTapeTests {
  private func fault(_ text: String) -> JSONFault? {
    var tape = JSONTape()
    let bytes = Array(text.utf8)
    return tape.read(bytes.rawBytes)
  }

  @Test(
    "A fault says what is wrong and where",
    arguments: [
      ("", .truncated, 0), (" ", .truncated, 1), ("tru", .truncated, 3), ("[-", .truncated, 2), ("[1.", .truncated, 3),
      ("[1e+", .truncated, 4), ("\"\\u00", .truncated, 5), ("\"\\", .truncated, 2), ("[\"a\"", .truncated, 4),
      ("[1,]", .trailingComma, 2), ("{\"a\":1 , }", .trailingComma, 7), ("[1,}", .trailingComma, 2),
      ("[1 2]", .missingComma, 3), ("[\"a\"\"b\"]", .missingComma, 4), ("[{}{}]", .missingComma, 3),
      ("{\"a\":1 \"b\":2}", .missingComma, 7), ("[1 true]", .missingComma, 3), ("[1 tru]", .other, 3),
      ("['a']", .singleQuote, 1), ("{'a':1}", .singleQuote, 1), ("'a'", .singleQuote, 0),
      ("{\"a\":'b'}", .singleQuote, 5),
      ("\"a\nb\"", .controlCharacter, 2), ("[\"\u{1f}\"]", .controlCharacter, 2), ("[\u{1}]", .other, 1),
      ("[01]", .other, 2), ("[1.]", .other, 1), ("[+1]", .other, 1), ("[.5]", .other, 1), ("[0x1]", .other, 2),
      ("[\"\\x\"]", .other, 2), ("[\"\\u00g0\"]", .other, 2), ("[True]", .other, 1), ("[NaN]", .other, 1),
      ("{a:1}", .other, 1), ("{\"a\" 1}", .other, 5), ("{\"a\"}", .other, 4), ("{,}", .other, 1), ("[,1]", .other, 1),
      ("[1,,2]", .other, 3), ("{} {}", .other, 3), ("{}}", .other, 2), ("[}", .other, 1), ("{]", .other, 1),
      ("{\"a\":1]", .other, 6), ("1 2", .other, 2), ("/**/1", .other, 0), ("[1/**/]", .other, 2), ("-", .truncated, 1),
      ("[1e]", .other, 1), ("{\"a\":}", .other, 5), ("nul1", .other, 0),
    ] as [(String, JSONFault.Problem, Int)])
  func faults(text: String, problem: JSONFault.Problem, offset: Int) {
    #expect(fault(text) == JSONFault(problem, at: offset))
    #expect(JSONText.scan(Array(text.utf8).rawBytes) == .invalid)
  }

  @Test("Bytes that are not UTF-8 are a fault of their own")
  func badCharacters() {
    var tape = JSONTape()
    let bytes: [UInt8] = [0x22, 0x61, 0xc3, 0x22]
    #expect(tape.read(bytes.rawBytes) == JSONFault(.badUTF8, at: 2))
  }

  @Test("Nesting is read down to 512 levels")
  func depth() {
    func nested(_ levels: Int) -> String {
      String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
    #expect(fault(nested(512)) == nil)
    #expect(fault(nested(513)) == JSONFault(.other, at: 512))
    #expect(fault(String(repeating: "{\"a\":", count: 300) + "1" + String(repeating: "}", count: 300)) == nil)
  }

  @Test("Keys that come again are marked, escaped or not, in small and in large objects")
  func repeatedKeys() {
    func repeated(_ text: String) -> (offset: Int?, count: Int) {
      var tape = JSONTape()
      let bytes = Array(text.utf8)
      #expect(tape.read(bytes.rawBytes) == nil)
      return (tape.repeatedKey, tape.nodes.filter(\.isRepeated).count)
    }
    #expect(repeated(#"{"a":1,"b":{"a":1},"A":2}"#) == (nil, 0))
    #expect(repeated(#"{"a":1,"b":2,"a":3}"#) == (13, 1))
    #expect(repeated(#"{"a":1,"a":2,"a":3}"#) == (7, 2))
    #expect(repeated(#"{"a":{"x":1,"\u0078":2},"a":3}"#) == (12, 2))
    for count in [15, 16, 17, 200] {
      let members = (0..<count).map { "\"k\($0)\":[\($0),{}]" }.joined(separator: ",")
      #expect(repeated("{\(members)}") == (nil, 0))
      #expect(repeated("{\(members),\"k3\":1}") == (members.utf8.count + 2, 1))
    }
  }

  @Test("Strings are read with their escapes")
  func strings() {
    func read(_ text: String) -> (text: String, lone: Int?) {
      var tape = JSONTape()
      let bytes = Array(text.utf8)
      #expect(tape.read(bytes.rawBytes) == nil)
      return (tape.string(0, bytes.rawBytes), tape.loneSurrogate)
    }
    #expect(read(#""é\u00e9\ud83c\udf0a\n\t\r\b\f\/\\\"""#) == ("éé🌊\n\t\r\u{8}\u{c}/\\\"", nil))
    #expect(read(#""a\ud83c""#) == ("a\u{fffd}", 2))
    #expect(read(#""\ud83c\ud83c\udf0a""#) == ("\u{fffd}🌊", 1))
    #expect(read(#""\udf0a\ufffd""#) == ("\u{fffd}\u{fffd}", 1))
    #expect(read(#""\ufffd\\ud83c""#) == ("\u{fffd}\\ud83c", nil))
  }

  @Test(
    "Numbers are read exactly",
    arguments: [
      ("0", false, true, 0), ("-0.0e9", false, true, 0), ("12", false, true, 12), ("-7", true, true, -7),
      ("1.2e1", false, true, 12), ("1200e-2", false, true, 12), ("0.5", false, false, nil), ("1e-1", false, false, nil),
      ("-1.50e1", true, true, -15), ("10.0", false, true, 10), ("1e400", false, true, nil),
      ("1e-400", false, false, nil),
      ("9223372036854775807", false, true, Int.max), ("9223372036854775808", false, true, nil),
      ("100000000000000000000000.5", false, false, nil), ("0.0000000000000000000000001e25", false, true, 1),
      ("1e99999999999999999999", false, true, nil), ("-0.1", true, false, nil),
    ] as [(String, Bool, Bool, Int?)])
  func numbers(text: String, isNegative: Bool, isWhole: Bool, integer: Int?) {
    let number = JSONNumber(Array(text.utf8).rawBytes)
    #expect(number.isNegative == isNegative)
    #expect(number.isWhole == isWhole)
    #expect(number.integer == integer)
  }
}
