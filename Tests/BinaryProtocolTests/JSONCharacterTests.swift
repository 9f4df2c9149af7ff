import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// Payloads are embedded in records, so only well-formed UTF-8 may count as JSON (RFC 3629), and compacting may not
/// change a byte of any string.
@Suite("JSON text: characters and compact form")
struct JSONCharacterTests {
  private func scan(_ bytes: [UInt8]) -> JSONText.Verdict { JSONText.scan(bytes.rawBytes) }

  private func inString(_ bytes: [UInt8]) -> [UInt8] { [0x22] + bytes + [0x22] }

  @Test("The first and last character of every length of UTF-8, and those beside the surrogates")
  func boundaries() {
    for scalar in [
      "\u{7f}", "\u{80}", "\u{7ff}", "\u{800}", "\u{d7ff}", "\u{e000}", "\u{feff}", "\u{ffff}", "\u{10000}",
      "\u{10ffff}", "\u{fffe}", "\u{1f600}",
    ] {
      for padding in 0...9 {
        let bytes = inString(Array(repeating: 0x78, count: padding) + Array(scalar.utf8) + [0x78])
        #expect(scan(bytes) == .valid(isCompact: true))
      }
    }
  }

  static let malformedCharacters = [
    "80", "bf", "c0 80", "c0 af", "c1 bf", "e0 80 80", "e0 9f bf", "f0 80 80 80", "f0 8f bf bf",  // too long
    "ed a0 80", "ed bf bf", "ed a0 b4 ed b4 9e",  // surrogates
    "f4 90 80 80", "f5 80 80 80", "f7 bf bf bf", "f8 88 80 80 80", "fc 84 80 80 80 80", "fe", "ff",  // above U+10FFFF
    "c3", "e2", "e2 82", "f0 9f", "f0 9f 98", "c3 78", "e2 78 ac", "e2 82 78", "f0 78 98 80", "f0 9f 78 80",  // cut
    "f0 9f 98 78", "c3 c3", "e2 82 e2", "c3 a9 a9", "e2 82 ac ac",
  ]

  @Test("Malformed UTF-8 is no JSON, wherever it stands", arguments: malformedCharacters)
  func malformed(hex: String) {
    let bytes = Array(hex: hex)
    for padding in 0...9 {
      let before = [UInt8](repeating: 0x78, count: padding)
      #expect(scan(inString(before + bytes)) == .invalid)
      #expect(scan(inString(before + bytes + before)) == .invalid)
      // Also when the text ends there.
      #expect(scan([0x22] + before + bytes) == .invalid)
    }
    #expect(scan(bytes) == .invalid)
  }

  @Test(
    "Two bytes of any value in a string: valid exactly when they are UTF-8",
    arguments: 0x80...0xff as ClosedRange<UInt8>)
  func pairs(first: UInt8) {
    for second in 0x80...0xff as ClosedRange<UInt8> {
      let isCharacter = String(validating: [first, second], as: UTF8.self) != nil
      #expect(scan(inString([first, second])) == (isCharacter ? .valid(isCompact: true) : .invalid))
    }
  }

  @Test("Random bytes above 0x7f: valid exactly when they are UTF-8", arguments: 1...20 as ClosedRange<UInt64>)
  func randomCharacters(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var counts = (valid: 0, invalid: 0)
    for _ in 0..<200 {
      var bytes = (0..<random.number(1...4)).flatMap { _ in
        Array(String(random.pick(["é", "€", "😀", "x", "\u{7ff}", "\u{10ffff}", "\u{e000}"])).utf8)
      }
      if random.happens(oneIn: 2) { bytes[random.number(0...bytes.count - 1)] = UInt8(random.number(0x80...0xff)) }
      let isText = String(validating: bytes, as: UTF8.self) != nil
      #expect(scan(inString(bytes)) == (isText ? .valid(isCompact: true) : .invalid))
      if isText { counts.valid += 1 } else { counts.invalid += 1 }
    }
    #expect(counts.valid > 20 && counts.invalid > 20)
  }

  @Test("No byte order mark, no NUL, no other encoding")
  func encodings() {
    #expect(scan([0xef, 0xbb, 0xbf] + Array("{}".utf8)) == .invalid)
    #expect(scan(Array("{}".utf8) + [0]) == .invalid)
    #expect(scan([0] + Array("{}".utf8)) == .invalid)
    let littleEndian = "{\"a\":1}".utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
    #expect(scan(littleEndian) == .invalid)
    #expect(scan([0xff, 0xfe] + littleEndian) == .invalid)
    #expect(scan("{\"a\":1}".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }) == .invalid)
    #expect(scan([0xc2, 0xa0] + Array("{}".utf8)) == .invalid)  // a no-break space is no white space of JSON
  }

  // MARK: the compact form

  private func compacted(_ text: String) -> String {
    let bytes = Array(text.utf8)
    return String(decoding: written { JSONText.writeCompact(bytes.rawBytes, into: &$0) }, as: UTF8.self)
  }

  @Test(
    "White space outside strings goes, everything else stays byte for byte",
    arguments: [
      (" { \"a b\" : 1 ,\n\t\"c\" : [ 1 , 2 ] } ", "{\"a b\":1,\"c\":[1,2]}"),
      ("{}", "{}"), ("[ ]", "[]"), (" 1 ", "1"), ("\t\r\n true", "true"),
      (#"[ "  a\" b\\" , "c \\\" d " ]"#, #"["  a\" b\\","c \\\" d "]"#),
      (#"{ "\\" : " " }"#, #"{"\\":" "}"#), (#"[ "\u0020 \/" ]"#, #"["\u0020 \/"]"#),
      ("[ 1.50e+05 , 10000000000000000000000000 , -0 ]", "[1.50e+05,10000000000000000000000000,-0]"),
      ("{ \"a\" : 1 , \"a\" : 2 }", "{\"a\":1,\"a\":2}"), ("[ \"é 😀 \" ]", "[\"é 😀 \"]"),
    ])
  func compacting(text: String, expected: String) {
    #expect(scan(Array(text.utf8)) != .invalid)
    #expect(compacted(text) == expected)
    #expect(scan(Array(expected.utf8)) == .valid(isCompact: true))
  }

  /// Tokens joined without white space are the compact form, so joining them with some must compact to that.
  @Test("Compacting takes out what was put in", arguments: 1...30 as ClosedRange<UInt64>)
  func randomSpaces(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<20 {
      var tokens: [String] = []
      random.appendValue(to: &tokens, depth: 0)
      let compact = tokens.joined()
      var spaced = ""
      var hasSpace = false
      for token in tokens {
        if random.happens(oneIn: 3) {
          spaced += random.pick([" ", "\n", "\t", "\r\n", "   "])
          hasSpace = true
        }
        spaced += token
      }
      #expect(scan(Array(spaced.utf8)) == .valid(isCompact: !hasSpace))
      #expect(compacted(spaced) == compact)
      #expect(compacted(compact) == compact)
    }
  }
}

extension SeededGenerator {
  /// Appends the tokens of a random value; a string is one token.
  mutating func appendValue(to tokens: inout [String], depth: Int) {
    let strings = [#""""#, #""a b""#, #"" ""#, #""\"""#, #""\\""#, #""\\\" x""#, "\"é 😀\"", #""\u0041\n""#]
    switch number(0...(depth < 5 ? 6 : 3)) {
    case 0: tokens.append(pick(["0", "-0", "12.5e-3", "18446744073709551616", "1E+2"]))
    case 1: tokens.append(pick(["true", "false", "null"]))
    case 2, 3: tokens.append(pick(strings))
    case 4, 5:
      tokens.append("{")
      for index in 0..<number(0...4) {
        if index > 0 { tokens.append(",") }
        tokens += [pick(strings), ":"]
        appendValue(to: &tokens, depth: depth + 1)
      }
      tokens.append("}")
    default:
      tokens.append("[")
      for index in 0..<number(0...4) {
        if index > 0 { tokens.append(",") }
        appendValue(to: &tokens, depth: depth + 1)
      }
      tokens.append("]")
    }
  }
}
