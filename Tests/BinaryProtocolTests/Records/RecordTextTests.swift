import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// Strings of records, and the bytes that they stand for.
@Suite("Text of records")
struct RecordTextTests {
  private func read(_ text: [UInt8], _ write: (RawSpan, inout ByteWriter) -> Bool) -> [UInt8]? {
    var isRead = false
    let bytes = written { isRead = write(text.rawBytes, &$0) }
    return isRead ? bytes : nil
  }
  private func hex(_ text: [UInt8]) -> [UInt8]? { read(text) { $1.write(bytesOfHexadecimal: $0) } }
  private func base64(_ text: [UInt8]) -> [UInt8]? { read(text) { $1.write(bytesOfBase64: $0) } }

  // MARK: hexadecimal

  @Test("Hexadecimal digits are pairs, of either case")
  func hexadecimal() {
    for (text, bytes) in [
      ("", []), ("00ff", [0, 255]), ("09afAF", [0x09, 0xaf, 0xaf]), ("5Aa5", [0x5a, 0xa5]), ("0", nil), ("001", nil),
    ] as [(String, [UInt8]?)] {
      #expect(hex(Array(text.utf8)) == bytes, "\(text)")
    }
  }

  @Test("Of all bytes the 22 digits are hexadecimal, first or second")
  func hexadecimalDigits() {
    for byte in 0...255 as ClosedRange<UInt8> {
      let digit = byte < 0x80 ? Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init) : nil
      #expect(hex([byte, 0x31]) == digit.map { [$0 << 4 | 1] }, "\(byte)")
      #expect(hex([0x31, byte]) == digit.map { [0x10 | $0] }, "\(byte)")
    }
  }

  // MARK: Base64

  @Test("Base64 of any bytes is read as those bytes", arguments: 0...64)
  func base64(length: Int) {
    var random = SeededGenerator(seed: UInt64(length))
    let bytes = random.bytes(length)
    #expect(base64(written { $0.write(base64: bytes.rawBytes) }) == bytes)
  }

  @Test("Base64 is whole groups with the padding at the end")
  func base64Forms() {
    for (text, bytes) in [
      ("", []), ("TWFu", [0x4d, 0x61, 0x6e]), ("TWE=", [0x4d, 0x61]), ("TQ==", [0x4d]), ("AAAATQ==", [0, 0, 0, 0x4d]),
      ("TWF", nil), ("T", nil), ("TWFuT", nil), ("T===", nil), ("====", nil), ("=AAA", nil), ("A=AA", nil),
      ("AA=A", nil), ("TQ==AAAA", nil), ("TWE=TWE=", nil), ("TW\nu", nil), ("TWE-", nil), ("TWE_", nil),
    ] as [(String, [UInt8]?)] {
      #expect(base64(Array(text.utf8)) == bytes, "\(text)")
    }
  }

  @Test("Of all bytes 64 are digits of Base64, in the order of their values")
  func base64Digits() {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    for byte in 0...255 as ClosedRange<UInt8> where byte != UInt8(ascii: "=") {
      let value = digits.firstIndex(of: byte).map { UInt8($0) }
      #expect(base64([0x41, 0x41, 0x41, byte]) == value.map { [0, 0, $0] }, "\(byte)")
      #expect(base64([byte, 0x41, 0x41, 0x41]) == value.map { [$0 << 2, 0, 0] }, "\(byte)")
    }
  }

  // MARK: escapes

  @Test("Escapes stand for their characters")
  func unescaped() {
    for (text, expected) in [
      ("", ""), ("plain é", "plain é"), (#"\"\\\/"#, #""\/"#), (#"\b\f\n\r\t"#, "\u{8}\u{c}\n\r\t"),
      (#"\u0041\u00e9\u20AC\u0000"#, "Aé€\u{0}"), (#"a\\u0041b"#, #"a\u0041b"#), (#"\ud7ff\ue000"#, "\u{d7ff}\u{e000}"),
      // The first and the last of the surrogate pairs.
      (#"\ud800\udc00"#, "\u{10000}"), (#"\udbff\udfff!"#, "\u{10ffff}!"), (#"\ud83d\ude00"#, "😀"),
      (#"x\ud801\udc37y"#, "x\u{10437}y"),
      // Halves.
      (#"\ud83d"#, "\u{fffd}"), (#"\ude00"#, "\u{fffd}"), (#"\udc00\udc00"#, "\u{fffd}\u{fffd}"),
      (#"\ud800\udbff"#, "\u{fffd}\u{fffd}"), (#"\ud800\ue000"#, "\u{fffd}\u{e000}"), (#"\ud83dx"#, "\u{fffd}x"),
      (#"\ud83d\n12345"#, "\u{fffd}\n12345"), (#"\ud83d\u0041"#, "\u{fffd}A"), (#"\ud83dxude00"#, "\u{fffd}xude00"),
      (#"\ud7ff\udc00"#, "\u{d7ff}\u{fffd}"),
      // Text that was cut.
      (#"a\"#, #"a\"#), (#"\u12"#, "\u{fffd}"), (#"\u004"#, "\u{fffd}"), (#"\ud83d\u12"#, "\u{fffd}\u{fffd}"),
      (#"\ud83d\"#, "\u{fffd}\\"), (#"\u00g1"#, "\u{fffd}"), (#"\ud83d\ude0g"#, "\u{fffd}\u{fffd}"),
    ] {
      let said = RecordText.unescaped(Array(text.utf8).rawBytes)
      #expect(said == expected, "\(text)")
    }
  }

  @Test("Of a list the strings are read")
  func strings() {
    for (text, expected) in [
      ("[]", []), (#"["a","b\"c","\\"]"#, ["a", #"b"c"#, #"\"#]),
      (#"[1,"x",null,["y"],{"k":"v"}]"#, ["x", "y", "k", "v"]),
      (#"["",""]"#, ["", ""]), (#"["\u0041","\n"]"#, ["A", "\n"]), ("", []),
      // Text that was cut.
      (#"["abc"#, ["abc"]), (#"["ab\"#, [#"ab\"#]), (#"[""#, [""]), (#"["ab\""#, [#"ab""#]),
    ] {
      let said = RecordText.strings(Array(text.utf8).rawBytes)
      #expect(said == expected, "\(text)")
    }
  }

  // MARK: control characters

  private func restored(_ text: String, less excess: Int) -> String {
    let bytes = Array(text.utf8)
    return String(
      decoding: written { RecordText.write(restoringControlsOf: bytes.rawBytes, bytesLess: excess, into: &$0) },
      as: UTF8.self)
  }

  @Test("Control characters are restored from the first on, until enough bytes are saved")
  func controls() {
    let text = #"{"a":"\u009b-\u007f-\u202e"}"#
    for (excess, expected) in [
      (-1, text), (0, text), (1, "{\"a\":\"\u{9b}-\\u007f-\\u202e\"}"), (4, "{\"a\":\"\u{9b}-\\u007f-\\u202e\"}"),
      (5, "{\"a\":\"\u{9b}-\u{7f}-\\u202e\"}"), (9, "{\"a\":\"\u{9b}-\u{7f}-\\u202e\"}"),
      (10, "{\"a\":\"\u{9b}-\u{7f}-\u{202e}\"}"), (100, "{\"a\":\"\u{9b}-\u{7f}-\u{202e}\"}"),
    ] {
      #expect(restored(text, less: excess) == expected, "\(excess)")
    }
  }

  @Test("What is restored are control characters that JSON may have as they are")
  func controlsOnly() {
    for (text, expected) in [
      (#"\u007F"#, "\u{7f}"), (#"\u009f"#, "\u{9f}"), (#"\u00a0"#, #"\u00a0"#), (#"\u007e"#, #"\u007e"#),
      (#"\u2066"#, "\u{2066}"), (#"\u0085"#, "\u{85}"), (#"\u001b"#, #"\u001b"#), (#"\u0041"#, #"\u0041"#),
      (#"\ud800"#, #"\ud800"#), (#"\n\\\"\u009b"#, "\\n\\\\\\\"\u{9b}"), (#"\\u009b"#, #"\\u009b"#),
      (#"\u009"#, #"\u009"#), (#"\u00gb"#, #"\u00gb"#), (#"a\"#, #"a\"#), (#"\u009b\"#, "\u{9b}\\"), ("", ""),
      (#"xu009b"#, #"xu009b"#), (#"é\u009bé"#, "é\u{9b}é"),
    ] {
      #expect(restored(text, less: 100) == expected, "\(text)")
    }
  }
}
