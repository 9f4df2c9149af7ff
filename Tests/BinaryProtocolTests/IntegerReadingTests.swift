import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// `#expect` takes no borrowed memory apart, so each reader is called in a function of its own.
extension [UInt8] {
  fileprivate func byte(at offset: Int) -> UInt8 { rawBytes.byte(at: offset) }
  fileprivate func uint16(at offset: Int) -> UInt16 { rawBytes.uint16(at: offset) }
  fileprivate func uint32(at offset: Int) -> UInt32 { rawBytes.uint32(at: offset) }
  fileprivate func uint64(at offset: Int) -> UInt64 { rawBytes.uint64(at: offset) }
  fileprivate func uint16(at offset: Int, bigEndian: Bool) -> UInt16 {
    rawBytes.uint16(at: offset, bigEndian: bigEndian)
  }
  fileprivate func uint32(at offset: Int, bigEndian: Bool) -> UInt32 {
    rawBytes.uint32(at: offset, bigEndian: bigEndian)
  }
  fileprivate func uint64(at offset: Int, bigEndian: Bool) -> UInt64 {
    rawBytes.uint64(at: offset, bigEndian: bigEndian)
  }
  fileprivate func spanEquals(_ other: [UInt8]) -> Bool { rawBytes.elementsEqual(other.rawBytes) }
}

@Suite("Reading integers from borrowed bytes")
struct IntegerReadingTests {
  static let bytes: [UInt8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba]

  @Test("Network order is the default; little-endian is the same bytes backwards")
  func orders() {
    let bytes = Self.bytes
    #expect(bytes.byte(at: 10) == 0xba)
    #expect(bytes.uint16(at: 0) == 0x0123)
    #expect(bytes.uint32(at: 0) == 0x0123_4567)
    #expect(bytes.uint64(at: 0) == 0x0123_4567_89ab_cdef)
    #expect(bytes.uint16(at: 0, bigEndian: false) == 0x2301)
    #expect(bytes.uint32(at: 0, bigEndian: false) == 0x6745_2301)
    #expect(bytes.uint64(at: 0, bigEndian: false) == 0xefcd_ab89_6745_2301)
  }

  @Test("At every alignment, in both orders", arguments: 0...3)
  func alignments(offset: Int) {
    let bytes = Self.bytes
    func value(_ count: Int, _ bigEndian: Bool) -> UInt64 {
      let slice = bytes[offset..<offset + count]
      return (bigEndian ? Array(slice) : slice.reversed()).reduce(0) { $0 << 8 | UInt64($1) }
    }
    for bigEndian in [true, false] {
      #expect(UInt64(bytes.uint16(at: offset, bigEndian: bigEndian)) == value(2, bigEndian))
      #expect(UInt64(bytes.uint32(at: offset, bigEndian: bigEndian)) == value(4, bigEndian))
      #expect(bytes.uint64(at: offset, bigEndian: bigEndian) == value(8, bigEndian))
    }
    #expect(UInt64(bytes.uint16(at: offset)) == value(2, true))
    #expect(UInt64(bytes.uint32(at: offset)) == value(4, true))
    #expect(bytes.uint64(at: offset) == value(8, true))
  }

  @Test("The last bytes can be read")
  func end() {
    let bytes = Self.bytes
    #expect(bytes.uint16(at: 9) == 0xdcba)
    #expect(bytes.uint32(at: 7) == 0xeffe_dcba)
    #expect(bytes.uint64(at: 3) == 0x6789_abcd_effe_dcba)
  }

  @Test("Spans are equal when every byte is", arguments: 0...20)
  func equality(count: Int) {
    var random = SeededGenerator(seed: UInt64(count))
    let bytes = random.bytes(count)
    let copy = bytes
    #expect(bytes.spanEquals(copy))
    for index in 0..<count {
      var other = bytes
      other[index] ^= 1 << UInt8(index % 8)
      #expect(!bytes.spanEquals(other))
    }
    let longer = bytes + [0]
    #expect(!bytes.spanEquals(longer))
    #expect(!longer.spanEquals(bytes))
  }

  @Test("Copies are independent of what they were made from")
  func copying() {
    var bytes = Self.bytes
    let copy = Array(copying: bytes.rawBytes)
    var appended: [UInt8] = [9]
    appended.append(copying: bytes.rawBytes)
    bytes[0] = 0xff
    #expect(copy == Self.bytes)
    #expect(appended == [9] + Self.bytes)
    let none: [UInt8] = []
    #expect(Array(copying: none.rawBytes).isEmpty)
  }

  @Test("An offset outside the span traps, whatever the width")
  func outside() async {
    await #expect(processExitsWith: .failure) {
      let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7]
      _ = bytes.rawBytes.uint64(at: 0)
    }
    await #expect(processExitsWith: .failure) {
      let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7]
      _ = bytes.rawBytes.uint16(at: 6, bigEndian: false)
    }
    await #expect(processExitsWith: .failure) {
      let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7]
      _ = bytes.rawBytes.byte(at: -1)
    }
  }

  @Test("A field too long for its 16-bit length traps instead of writing a wrong length")
  func tooLong() async {
    await #expect(processExitsWith: .failure) {
      let token = [UInt8](repeating: 1, count: 65_536)
      var output = ByteWriter()
      BinaryFrame.encodeSimple(token: token.rawBytes, payload: token.rawBytes, into: &output)
    }
  }
}
