import Bytes
import TestSupport
import Testing

@Suite("Writing bytes and text")
struct ByteWriterTests {
  private func text(_ write: (inout ByteWriter) -> Void) -> String { String(decoding: written(write), as: UTF8.self) }

  @Test("Hexadecimal digits, for lengths around the four bytes written at once", arguments: 0...21)
  func hex(count: Int) {
    // Every byte value comes up across the shifts.
    for start in stride(from: 0, to: 256, by: 7) {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: start + $0 * 37) }
      let expected = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      #expect(text { $0.write(hex: bytes.rawBytes) } == expected)
    }
  }

  @Test("Every byte value in hexadecimal, in every place of the four")
  func everyHexByte() {
    let all = (0...255).map { UInt8($0) }
    for rotation in 0..<4 {
      let bytes = Array(all[rotation...] + all[..<rotation])
      let expected = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      #expect(text { $0.write(hex: bytes.rawBytes) } == expected)
    }
  }

  @Test(
    "Base64: the vectors of RFC 4648 §10",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func base64(plain: String, encoded: String) {
    let bytes = Array(plain.utf8)
    #expect(text { $0.write(base64: bytes.rawBytes) } == encoded)
  }

  @Test("Base64: all 64 digits in order")
  func base64Digits() {
    // Six bits count from 0 to 63: four digits are three bytes.
    let bytes = stride(from: 0, to: 64, by: 4).flatMap { (first: Int) -> [UInt8] in
      let group = first << 18 | (first + 1) << 12 | (first + 2) << 6 | (first + 3)
      return [UInt8(group >> 16), UInt8(group >> 8 & 255), UInt8(group & 255)]
    }
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    #expect(text { $0.write(base64: bytes.rawBytes) } == digits)
  }

  @Test("Decimal digits at the powers of ten and beside them")
  func decimal() {
    var values: [UInt64] = [0, 1, 9, .max, .max - 1]
    var power: UInt64 = 10
    for _ in 1...19 {
      values += [power - 1, power, power + 1]
      power = power.multipliedReportingOverflow(by: 10).partialValue
    }
    for value in values { #expect(text { $0.write(decimal: value) } == value.description) }
  }

  @Test("Decimal digits of random numbers of every length", arguments: 0...63 as ClosedRange<UInt64>)
  func randomDecimal(shift: UInt64) {
    var random = SeededGenerator(seed: shift)
    for _ in 0..<20 {
      let value = random.next() >> shift
      #expect(text { $0.write(decimal: value) } == value.description)
    }
  }

  @Test(
    "Signed numbers have a minus in front, the least one too",
    arguments: [0, 1, -1, -9, -10, -99, -100, .min, .min + 1, .max] as [Int])
  func signed(value: Int) { #expect(text { $0.write(decimal: value) } == value.description) }

  @Test("A fixed number of digits has zeros in front")
  func width() {
    #expect(text { $0.write(decimal: UInt32(7), width: 9) } == "000000007")
    #expect(text { $0.write(decimal: UInt32(0), width: 2) } == "00")
    #expect(text { $0.write(decimal: UInt32(59), width: 2) } == "59")
    #expect(text { $0.write(decimal: UInt32.max, width: 10) } == "4294967295")
  }

  @Test("Integers are written in network order")
  func bigEndian() {
    let bytes = written { output in
      output.write(bigEndian: UInt16(0x0102))
      output.write(bigEndian: UInt32(0x0304_0506))
      output.write(bigEndian: UInt64(0x0708_090a_0b0c_0d0e))
      output.write(UInt8(0x0f))
    }
    #expect(bytes == Array(1...15))
  }

  @Test("Text and literals keep their UTF-8")
  func textAndLiterals() {
    #expect(text { $0.write("naïve 你好") } == "naïve 你好")
    #expect(text { $0.write(text: "naïve 你好") } == "naïve 你好")
    #expect(text { $0.write("") }.isEmpty)
  }

  /// Each way of writing, over and over through many sizes of memory, gives what one array gives.
  @Test("Growing loses nothing", arguments: 1...10 as ClosedRange<UInt64>)
  func growth(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var output = ByteWriter(capacity: 1)
    var expected: [UInt8] = []
    for _ in 0..<400 {
      let bytes = random.bytes(random.pick([0, 1, 3, 64, 500]))
      switch random.number(0...6) {
      case 0:
        output.write(bytes.rawBytes)
        expected += bytes
      case 1:
        for byte in bytes { output.write(byte) }
        expected += bytes
      case 2:
        output.write(hex: bytes.rawBytes)
        expected += bytes.flatMap { Array((($0 < 16 ? "0" : "") + String($0, radix: 16)).utf8) }
      case 3:
        let value = random.next()
        output.write(decimal: value)
        expected += Array(value.description.utf8)
      case 4:
        let value = random.next()
        output.write(bigEndian: value)
        expected += (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) }
      case 5:
        output.write("literal")
        expected += Array("literal".utf8)
      default:
        output.write(decimal: UInt32(42), width: 12)
        expected += Array("000000000042".utf8)
      }
      let count = output.count
      #expect(count == expected.count)
    }
    let bytes = Array(copying: output.bytes)
    #expect(bytes == expected)
  }

  @Test("Forgetting and truncating")
  func forgetting() {
    var output = ByteWriter(capacity: 4)
    output.write("abcdef")
    output.truncate(to: 2)
    output.write("X")
    #expect(Array(copying: output.bytes) == Array("abX".utf8))
    output.removeAll()
    let count = output.count
    #expect(count == 0)
    output.write("new")
    #expect(Array(copying: output.bytes) == Array("new".utf8))
  }
}
