import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// RFC 8259, sentence by sentence.
@Suite("JSON text")
struct JSONTextTests {
  static func scan(_ bytes: [UInt8]) -> JSONText.Verdict { JSONText.scan(bytes.rawBytes) }
  static func scan(_ text: String) -> JSONText.Verdict { scan(Array(text.utf8)) }

  @Test(
    "A text without white space is valid and compact",
    arguments: [
      "{}", "[]", "\"\"", "0", "true", "false", "null", "\"a\"", "[1,2]", "[[]]", "[{}]", "{\"a\":{}}", "{\"a\":[]}",
      "{\"a\":1,\"b\":[true,null,{\"c\":\"d\"}]}", "{\"\":0}", "{\"a\":1,\"a\":2}", "[[],[],{}]", "[0,-1,\"\",[1]]",
      "{\"aps\":{\"alert\":\"hi\"}}", "[\"a b\"]", "\" \"", "[[1],{\"a\":[{}]},2]",
    ])
  func compact(text: String) { #expect(Self.scan(text) == .valid(isCompact: true)) }

  @Test(
    "White space is space, tab, line feed and carriage return, anywhere between tokens",
    arguments: [
      " {}", "{} ", "{ }", "[ ]", "[1 ,2]", "[1, 2]", "{\"a\" :1}", "{\"a\": 1}", "\t[\n1\r]", "\r\n{}\r\n", " 1", "1 ",
      "true\n", " \"a\" ", "{\"a\":1, \"b\":2}",
    ])
  func spaced(text: String) { #expect(Self.scan(text) == .valid(isCompact: false)) }

  @Test(
    "What is no JSON text",
    arguments: [
      "", " ", "\n", ",", ":", "{", "}", "[", "]", "{]", "[}", "{}}", "[]]", "[[]", "{{}}", "{\"a\"}", "{\"a\":}",
      "{:1}", "{1:2}", "{\"a\":1,}", "[1,]", "[,1]", "[,]", "{,}", "[1,,2]", "{\"a\":1,,\"b\":2}", "{\"a\":1 \"b\":2}",
      "[1 2]",
      "{\"a\"::1}", "{\"a\",1}", "[\"a\":1]", "1 2", "1,2", "{} {}", "[][]", "\"a\"\"b\"", "{}x", "x{}", "'a'", "{a:1}",
      "[1}", "{\"a\":1]", "[{]}", "[{}", "{\"a\":[}", "{\"a\":[1,{]}}", "/* c */1", "1//c", "{null:1}", "[1;2]",
      "{true:1}", "{[]:1}", "{\"a\":1:2}", "{\"a\" \"b\"}",
    ])
  func invalid(text: String) { #expect(Self.scan(text) == .invalid) }

  @Test(
    "Literals are lower case and whole",
    arguments: [
      "t", "tru", "True", "TRUE", "truee", "true1", "f", "fals", "falsee", "n", "nul", "nulll", "NULL", "nan", "NaN",
      "Infinity", "-Infinity", "undefined", "truefalse", "[truefalse]", "[nul]", "true\"\"", "none",
    ])
  func badLiterals(text: String) { #expect(Self.scan(text) == .invalid) }

  static let numbers = [
    "0", "-0", "1", "-1", "10", "1234567890", "0.0", "-0.5", "1.5", "10.25", "1e5", "1E5", "1e+5", "1e-5", "1.5E+10",
    "0e0", "-0e-0", "0E1", "1e05", "123456789012345678901234567890123456789012345678901234567890", "1e999", "-1e-999",
    "0.00000000000000000000000000000000000000000001",
  ]
  static let noNumbers = [
    "01", "-01", "00", "-", "+1", "--1", "-a", "1.", ".5", "-.5", "1.e5", "1e", "1e+", "1e-", "1E", "1e5.5", "1.5.5",
    "0x10", "1_000", "1,000", "1a", "1e5e5", "0b1", "1.+5", "e5", "1 .5", "- 1", "1e 5", "٣",
  ]

  @Test("Numbers, at the top and inside", arguments: numbers)
  func number(text: String) {
    #expect(Self.scan(text) == .valid(isCompact: true))
    #expect(Self.scan("[\(text)]") == .valid(isCompact: true))
    #expect(Self.scan("{\"a\":\(text),\"b\":\(text)}") == .valid(isCompact: true))
  }

  @Test("What is no number", arguments: noNumbers)
  func noNumber(text: String) {
    #expect(Self.scan(text) == .invalid)
    // In an array "1,000" would be two elements, of which "000" is none.
    #expect(Self.scan("[\(text)]") == .invalid)
    #expect(Self.scan("{\"a\":\(text)}") == .invalid)
  }

  // MARK: strings

  @Test(
    "Every escape of the grammar is valid, at any place",
    arguments: [
      #"\""#, #"\\"#, #"\/"#, #"\b"#, #"\f"#, #"\n"#, #"\r"#, #"\t"#, #"\u0000"#, #"\u001f"#, #"\u20AC"#, #"\u20ac"#,
      #"\uABCD"#, #"\uabcd"#, #"\ud834\udd1e"#, #"\uD834"#, #"\uDD1E"#, #"\udd1e\ud834"#, #"\\u12"#, #"\\\""#,
      #"\u00e9é"#,
    ])
  func escapes(escape: String) {
    // A lone surrogate escape is within the grammar (RFC 8259 §8.2).
    #expect(Self.scan("\"\(escape)\"") == .valid(isCompact: true))
    // At every place relative to the eight bytes read at once.
    for count in 0...9 {
      let padding = String(repeating: "x", count: count)
      #expect(Self.scan("[\"\(padding)\(escape)\(padding)\"]") == .valid(isCompact: true))
      #expect(Self.scan("{\"\(padding)\(escape)\":0}") == .valid(isCompact: true))
    }
  }

  @Test(
    "What is no escape",
    arguments: [
      #"\a"#, #"\v"#, #"\0"#, #"\x41"#, #"\'"#, #"\U0041"#, #"\u"#, #"\u0"#, #"\u00"#, #"\u004"#, #"\u004g"#,
      #"\uG041"#, #"\u 041"#, #"\u{41}"#, #"\B"#, #"\N"#, #"\ "#, #"\é"#, #"\\\a"#, #"\u+041"#, #"\u-041"#, "\\\n",
    ])
  func noEscape(escape: String) {
    for count in 0...9 {
      let padding = String(repeating: "x", count: count)
      #expect(Self.scan("\"\(padding)\(escape)\(padding)\"") == .invalid)
    }
  }

  @Test("A backslash before the closing quote leaves the string open")
  func openStrings() {
    for text in [#"""#, #""a"#, #""\""#, #""\\\""#, #""\u004"#, #""\"#, #"{"a"#, #"["a]"#] {
      #expect(Self.scan(text) == .invalid)
    }
  }

  @Test(
    "Every single byte in a string, at every place of the eight read at once", arguments: 0...255 as ClosedRange<UInt8>)
  func byteInString(byte: UInt8) {
    // Control characters must be escaped; above 0x7f a single byte is no UTF-8; a quote or backslash breaks the string.
    let isAllowed = byte >= 0x20 && byte < 0x80 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    for before in 0...9 {
      for after in 0...9 {
        let text =
          Array("\"".utf8) + Array(repeating: 0x78, count: before) + [byte]
          + Array(repeating: 0x78, count: after) + Array("\"".utf8)
        let verdict = Self.scan(text)
        #expect(verdict == (isAllowed ? .valid(isCompact: true) : .invalid), "\(before) before, \(after) after")
      }
    }
  }

  @Test("Every single byte outside strings", arguments: 0...255 as ClosedRange<UInt8>)
  func byteOutside(byte: UInt8) {
    let isSpace = [0x20, 0x09, 0x0a, 0x0d].contains(byte)
    let isDigit = (0x30...0x39).contains(byte)
    #expect(Self.scan([byte]) == (isDigit ? .valid(isCompact: true) : .invalid))
    #expect(Self.scan([byte] + Array("{}".utf8)) == (isSpace ? .valid(isCompact: false) : .invalid))
    #expect(Self.scan(Array("{}".utf8) + [byte]) == (isSpace ? .valid(isCompact: false) : .invalid))
  }

  @Test("Depth: 512 levels are valid, 513 are not, of arrays, objects and both")
  func depth() {
    #expect(JSONText.deepestNesting == 512)
    for (open, close, inside) in [("[", "]", ""), ("{\"a\":", "}", "0"), ("[{\"a\":", "}]", "null")] {
      let levels = open.hasPrefix("[{") ? 2 : 1
      func text(_ count: Int) -> String {
        String(repeating: open, count: count) + inside + String(repeating: close, count: count)
      }
      #expect(Self.scan(text(512 / levels)) == .valid(isCompact: true))
      #expect(Self.scan("[" + text(512 / levels) + "]") == .invalid)
      #expect(Self.scan(text(100_000)) == .invalid)
    }
    // What was closed no longer counts.
    let deep = String(repeating: "[", count: 511) + String(repeating: "]", count: 511)
    let wide = "[\(deep),\(deep),\(deep)]"
    #expect(Self.scan(wide) == .valid(isCompact: true))
  }

  @Test("A closing bracket belongs to the level it closes, at every depth", arguments: 1...5 as ClosedRange<UInt64>)
  func brackets(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for depth in [1, 2, 63, 64, 65, 127, 128, 129, 511, 512] {
      let kinds = (0..<depth).map { _ in random.happens(oneIn: 2) }
      // Empty at the core, so every level holds one value only.
      let opening = kinds.enumerated().map { $0.element ? ($0.offset == depth - 1 ? "{" : "{\"k\":") : "[" }.joined()
      let closing = kinds.reversed().map { $0 ? "}" : "]" }
      #expect(Self.scan(opening + closing.joined()) == .valid(isCompact: true))
      let wrong = random.number(0...depth - 1)
      var broken = closing
      broken[wrong] = broken[wrong] == "}" ? "]" : "}"
      #expect(Self.scan(opening + broken.joined()) == .invalid)
    }
  }

  @Test("No prefix of an object is valid", arguments: Vector.jsonPayloads)
  func prefixes(bytes: [UInt8]) {
    #expect(Self.scan(bytes) != .invalid)
    for count in 0..<bytes.count { #expect(Self.scan(Array(bytes.prefix(count))) == .invalid) }
  }
}
