import Bytes
import Foundation
import TestSupport
import Testing

@Suite("Strings of JSON")
struct JSONStringTests {
  private func string(_ text: String, onlyRequired: Bool = false) -> String {
    var output = ByteWriter(capacity: 16)
    output.write(jsonString: text, onlyRequired: onlyRequired)
    return String(decoding: Array(copying: output.bytes), as: UTF8.self)
  }

  @Test(
    "What would end or break a string is escaped",
    arguments: [
      ("", #""""#), ("a", #""a""#), (#"""#, #""\"""#), (#"\"#, #""\\""#), (#"\""#, #""\\\"""#), (#""""#, #""\"\"""#),
      ("\n", #""\u000a""#), ("a\0b", #""a\u0000b""#), ("\u{1f}\"", #""\u001f\"""#), ("é/</script>", #""é/</script>""#),
      ("\u{1F4F1}", "\"\u{1F4F1}\""),
    ])
  func required(text: String, json: String) {
    #expect(string(text) == json)
    #expect(string(text, onlyRequired: true) == json)
  }

  @Test("Characters that steer a terminal are escaped unless JSON's own are enough")
  func marks() {
    for mark in ["\u{7f}", "\u{9b}", "\u{61c}", "\u{2028}", "\u{202e}", "\u{2069}"] {
      let value = mark.unicodeScalars.reduce(0) { $0 + $1.value }
      let digits = String(0x1_0000 + value, radix: 16).dropFirst()
      #expect(string("a\(mark)\"\(mark)b") == "\"a\\u\(digits)\\\"\\u\(digits)b\"")
      #expect(string("a\(mark)\"\(mark)b", onlyRequired: true) == "\"a\(mark)\\\"\(mark)b\"")
    }
  }

  @Test("Another reader finds the text that was written", arguments: 1...8 as ClosedRange<UInt64>)
  func readBack(seed: UInt64) throws {
    // No U+FEFF: Foundation's reader loses it.
    let pieces =
      ["\"", "\\", "\n", "\r", "\t", "\0", "\u{1f}", "\u{7f}", "\u{9b}", "/", "{", "}", "é", "\u{2028}"]
      + ["\u{1F4F1}", "\u{10FFFF}", "\u{300}", "n", "u0041", "</script>"]
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      let text = (0..<random.number(0...10)).map { _ in random.pick(pieces) }.joined()
      for onlyRequired in [false, true] {
        let line = "[" + string(text, onlyRequired: onlyRequired) + "]"
        let read = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String])
        #expect(read.count == 1 && Array(read[0].unicodeScalars) == Array(text.unicodeScalars))
      }
    }
  }
}
