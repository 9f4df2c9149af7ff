import Bytes
import Testing

@Suite("Hexadecimal digits")
struct HexadecimalDigitsTests {
  @Test("Bytes are read back, in any place of an array and in either case")
  func roundTrip() {
    var random = SystemRandomNumberGenerator()
    for length in 0...40 {
      let bytes = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      for before in 0..<3 {
        for letters in ["0123456789abcdef", "0123456789ABCDEF"].map({ Array($0.utf8) }) {
          let digits = bytes.flatMap { [letters[Int($0 >> 4)], letters[Int($0 & 15)]] }
          var array = [UInt8](repeating: 0x78, count: before) + digits
          let all = array
          let isRead = array.appendBytes(ofHexadecimal: before..<array.count)
          #expect(isRead && array == all + bytes)
        }
      }
    }
  }

  @Test("Any byte in any place is a digit, or nothing is appended")
  func everyByte() {
    for length in [2, 16, 18, 64] {
      for place in 0..<length {
        for byte in UInt8.min ... .max {
          var array = [UInt8](repeating: 0x61, count: length)
          array[place] = byte
          let before = array
          let isDigit = Character(Unicode.Scalar(byte)).isHexDigit && byte < 0x80
          let isRead = array.appendBytes(ofHexadecimal: 0..<length)
          #expect(isRead == isDigit, "\(byte) at \(place)")
          #expect(array.count == length + (isDigit ? length / 2 : 0))
          #expect(array.prefix(length) == before[...])
        }
      }
    }
  }

  @Test("An odd number of digits, and a range outside the array, are refused")
  func refused() {
    var array = [UInt8](repeating: 0x30, count: 20)
    for range in [0..<19, 2..<5, 0..<22, -2..<4] {
      let isRead = array.appendBytes(ofHexadecimal: range)
      #expect(!isRead && array.count == 20)
    }
  }
}
