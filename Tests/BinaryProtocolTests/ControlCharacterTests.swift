import Bytes
import TestSupport
import Testing

@Suite("Control characters")
struct ControlCharacterTests {
  /// All of them, by the property that Unicode gives them and the list of its report on bidirectional text.
  private static let all: Set<UInt32> = Set(0..<0x20).union(0x7f..<0xa0).union([0x61c, 0x200e, 0x200f, 0x2028, 0x2029])
    .union(0x202a...0x202e).union(0x2066...0x2069)

  private func written(_ text: String) -> String {
    var output = ByteWriter(capacity: 16)
    let bytes = Array(text.utf8)
    output.write(escapingControlsOf: bytes.rawBytes)
    return String(decoding: Array(copying: output.bytes), as: UTF8.self)
  }

  @Test("Both ways of escaping escape these and no other character, wherever they stand")
  func every() {
    for value in 0...0x3000 as ClosedRange<UInt32> {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = "12345\(scalar)67890123\(scalar)"
      let digits = String(value, radix: 16)
      let shown = "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      let expected = Self.all.contains(value) ? "12345\(shown)67890123\(shown)" : text
      #expect(ControlCharacters.escaped(text) == expected)
      #expect(written(text) == expected)
      // Alone among plain ones.
      let alone = "123\(scalar)4567890123456"
      #expect(written(alone) == ControlCharacters.escaped(alone))
    }
    #expect(ControlCharacters.escaped("a\nb\u{1b}", keepsLines: true) == "a\nb\\u001b")
    // What joins emoji is none.
    #expect(written("👩\u{200d}👩\u{200d}👧") == "👩\u{200d}👩\u{200d}👧")
  }

  @Test("Random text is escaped alike by both", arguments: seeds(2, of: 20))
  func random(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let choices: [Unicode.Scalar] = [
      "a", "\\", "\"", "\u{7e}", "\u{7f}", "\u{9b}", "\u{a0}", "é", "\u{202e}", "😀", "\n",
    ]
    for _ in 0..<500 {
      var text = String.UnicodeScalarView()
      for _ in 0..<Int.random(in: 0...24, using: &random) { text.append(choices.randomElement(using: &random) ?? "a") }
      #expect(written(String(text)) == ControlCharacters.escaped(String(text)))
    }
  }
}
