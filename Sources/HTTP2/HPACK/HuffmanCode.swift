import Bytes

/// The Huffman code of RFC 7541 appendix B.
///
/// The code is canonical: codes of one length are consecutive numbers in the order of their symbols, and continue the
/// shorter ones. So the lengths alone define it.
enum HuffmanCode {
  /// The end-of-string symbol, which never occurs in a string; its first bits are the padding.
  static let endOfString = 256

  /// The length in bits of the code of each byte, and of the end of a string.
  private static let lengths: [UInt8] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28,
    28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
    6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23,
    23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22,
    22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
    27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
    26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
  ]

  /// The codes, in the low bits, by symbol.
  private static let codes: [UInt32] = {
    var codes = [UInt32](repeating: 0, count: lengths.count)
    var (code, length) = (UInt32(0), UInt8(0))
    for symbol in symbolsByLength {
      code <<= UInt32(lengths[symbol] - length)
      length = lengths[symbol]
      codes[symbol] = code
      code += 1
    }
    return codes
  }()

  private static let symbolsByLength = lengths.indices.sorted { (lengths[$0], $0) < (lengths[$1], $1) }

  // MARK: encoding

  /// The length in bits of a byte's code.
  static func bitLength(of byte: UInt8) -> Int { Int(lengths[Int(byte)]) }

  /// The number of bytes that the coded string has.
  static func codedLength(_ bytes: RawSpan) -> Int {
    let lengths = lengths
    var bits = 0
    for offset in 0..<bytes.byteCount { bits += Int(lengths[Int(bytes.byte(at: offset))]) }
    return (bits + 7) / 8
  }

  /// Writes the coded string.
  static func write(_ bytes: RawSpan, to writer: inout ByteWriter) {
    let (codes, lengths) = (codes, lengths)
    var (bits, count) = (UInt64(0), 0)
    for offset in 0..<bytes.byteCount {
      let symbol = Int(bytes.byte(at: offset))
      bits = bits << UInt64(lengths[symbol]) | UInt64(codes[symbol])
      count += Int(lengths[symbol])
      while count >= 8 {
        count -= 8
        writer.write(UInt8(truncatingIfNeeded: bits >> UInt64(count)))
      }
    }
    guard count > 0 else { return }
    let padding = UInt64(8 - count)
    writer.write(UInt8(truncatingIfNeeded: bits << padding | (1 << padding - 1)))
  }

  // MARK: decoding

  /// Bits that are looked up at once: enough for two symbols of the usual text.
  private static let windowBits = 12

  /// One lookup: up to two symbols and the bits of the first, and of both.
  private struct Step {
    /// First symbol, second symbol, bits of the first, bits of all; all 0 when the first code is longer than the window.
    var packed: UInt32

    var first: UInt8 { UInt8(truncatingIfNeeded: packed) }
    var second: UInt8 { UInt8(truncatingIfNeeded: packed >> 8) }
    var firstBits: Int { Int(packed >> 16 & 0xff) }
    var allBits: Int { Int(packed >> 24) }
  }

  private static let window: [Step] = {
    // The symbol that begins each value, and the bits of its code; 0 bits: its code is longer.
    var symbols = [(symbol: UInt32, bits: Int)](repeating: (0, 0), count: 1 << windowBits)
    for (symbol, length) in lengths.enumerated() where length <= windowBits {
      let rest = windowBits - Int(length)
      let start = Int(codes[symbol]) << rest
      for value in start..<start + 1 << rest { symbols[value] = (UInt32(symbol), Int(length)) }
    }
    return symbols.enumerated().map { value, first in
      guard first.bits > 0 else { return Step(packed: 0) }
      // Zeros follow the value's last bits, so a second code counts only if it ends before them.
      let second = symbols[value << first.bits & (1 << windowBits - 1)]
      let isWhole = second.bits > 0 && first.bits + second.bits <= windowBits
      let step = first.symbol | UInt32(first.bits) << 16
      return Step(
        packed: isWhole
          ? step | second.symbol << 8 | UInt32(first.bits + second.bits) << 24 : step | UInt32(first.bits) << 24)
    }
  }()

  /// For each length of a code: the first code, and the place of its symbol in `symbolsByLength`.
  private static let longCodes: [(first: UInt32, count: UInt32, place: Int)] = (0...30).map { length in
    guard let place = symbolsByLength.firstIndex(where: { lengths[$0] == length }) else { return (0, 0, 0) }
    return (codes[symbolsByLength[place]], UInt32(lengths.filter { $0 == length }.count), place)
  }

  /// The most bytes that a coded string of this length stands for.
  static func longestDecoded(_ codedLength: Int) -> Int { codedLength * 8 / 5 }

  /// Decodes a string.
  ///
  /// - Parameters:
  ///   - coded: the coded string.
  ///   - output: receives the string; `longestDecoded` bytes and one more must be there.
  ///   - start: the offset in `output` at which the string begins.
  /// - Returns: the offset after the string.
  /// - Throws: the rule that the coding breaks.
  static func decode(_ coded: RawSpan, to output: inout MutableSpan<UInt8>, at start: Int) throws(Rule) -> Int {
    let steps = window
    let table = steps.span
    var (bits, count) = (UInt64(0), 0)
    var (offset, end) = (0, start)
    let length = coded.byteCount
    decoding: while true {
      // The bits not decoded yet are at the top of `bits`, `count` of them; those below are 0.
      if offset &+ 8 <= length {
        let taken = (63 &- count) >> 3
        bits |= coded.uint64(at: offset) >> UInt64(truncatingIfNeeded: count)
        offset &+= taken
        count &+= taken &* 8
        bits &= ~UInt64(0) << UInt64(truncatingIfNeeded: 64 &- count)
      } else {
        while count <= 56, offset < length {
          bits |= UInt64(coded.byte(at: offset)) << UInt64(truncatingIfNeeded: 56 &- count)
          offset &+= 1
          count &+= 8
        }
      }
      while count >= windowBits {
        // Safe: 12 bits are below the table's 4,096 entries.
        let step = unsafe table[unchecked: Int(truncatingIfNeeded: bits >> 52)]
        guard step.packed != 0 else { break }
        output[end] = step.first
        output[end &+ 1] = step.second
        end &+= step.allBits == step.firstBits ? 1 : 2
        bits <<= UInt64(truncatingIfNeeded: step.allBits)
        count &-= step.allBits
      }
      // Any 30 bits begin with a code.
      guard count >= 30 || offset == length else { continue }
      let step = unsafe table[unchecked: Int(truncatingIfNeeded: bits >> 52)]
      let (symbol, symbolBits): (Int, Int)
      if step.packed != 0 {
        (symbol, symbolBits) = (Int(step.first), step.firstBits)
      } else {
        guard let long = longSymbol(bits, count) else { break decoding }
        (symbol, symbolBits) = long
      }
      guard symbolBits <= count else { break decoding }
      guard symbol != endOfString else { throw .huffmanEndOfString }
      output[end] = UInt8(truncatingIfNeeded: symbol)
      end &+= 1
      bits <<= UInt64(truncatingIfNeeded: symbolBits)
      count &-= symbolBits
    }
    guard count > 0 else { return end }
    let isAllOnes = bits >> UInt64(64 - count) == 1 << UInt64(count) - 1
    guard isAllOnes else { throw .huffmanPaddingBits }
    guard count < 8 else { throw .huffmanPaddingLong }
    return end
  }

  /// The symbol whose code is longer than the window; `nil` if the bits end before it does.
  @inline(never)
  private static func longSymbol(_ bits: UInt64, _ count: Int) -> (symbol: Int, bits: Int)? {
    let codes = longCodes
    for length in windowBits + 1...30 where length <= count {
      let code = UInt32(truncatingIfNeeded: bits >> UInt64(64 - length))
      let (first, number, place) = codes[length]
      if code >= first, code - first < number { return (symbolsByLength[place + Int(code - first)], length) }
    }
    return nil
  }
}
