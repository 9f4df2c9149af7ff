import Bytes
import TestSupport
import Testing

@Suite("Searching borrowed bytes")
struct ByteSearchTests {
  private func holds(_ bytes: [UInt8], _ first: UInt8, or second: UInt8) -> Bool {
    bytes.rawBytes.contains(first, or: second)
  }

  @Test("One of two bytes is found wherever it stands, and nowhere else", arguments: 0...70)
  func eitherOfTwo(length: Int) {
    var bytes = [UInt8](repeating: 0x61, count: length)
    #expect(!holds(bytes, 0x2d, or: 0x5c))
    for index in bytes.indices {
      for wanted in [0x2d, 0x5c] as [UInt8] {
        bytes[index] = wanted
        #expect(holds(bytes, 0x2d, or: 0x5c))
        #expect(holds(bytes, wanted, or: 0xff))
        #expect(!holds(bytes, 0x2c, or: 0x5d))
        bytes[index] = 0x61
      }
    }
    // What stands around it does not count.
    guard length > 2 else { return }
    bytes[0] = 0x2d
    bytes[length - 1] = 0x5c
    let isInside = bytes.rawBytes.extracting(1..<length - 1).contains(0x2d, or: 0x5c)
    #expect(!isInside)
  }
}
