import Bytes

/// The bytes of a hex dump.
struct HexDump {
  private(set) var bytes: [UInt8] = []
  private(set) var badLines = 0
  private(set) var firstBadLine: Int?

  /// The line before `*`, with which hexdump abbreviates repeated lines.
  private var lastLine: [UInt8] = []
  /// Whether lines begin with offsets, so that digits alone are an offset, too: the last line of hexdump.
  private var hasOffsets = false
  private var repeats = false

  /// Whether the first lines are hexadecimal digits in the layout of one of the dump programs.
  static func looksLikeHex(_ bytes: RawSpan) -> Bool {
    var lines = 0
    var offset = 0
    while offset < bytes.byteCount, lines < 8 {
      let (line, next) = Self.line(bytes, from: offset)
      offset = next
      let isCut = next == bytes.byteCount && bytes.byteCount >= 1 << 16
      if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }) { continue }
      if isCut && lines > 0 { break }
      if lines > 0 && line == [UInt8(ascii: "*")] { continue }
      // A line that the end of the block cuts may end within a byte.
      guard let parsed = parse(line) ?? (isCut ? parse(line.dropLast()) : nil) else { return false }
      if parsed.bytes.isEmpty && lines == 0 { return false }
      lines += 1
    }
    return lines > 0
  }

  /// - Parameter maximumLength: the most bytes; bounds what three lines with a `*` can claim.
  init(parsing text: RawSpan, maximumLength: Int) {
    var firstOffset: Int?
    var offset = 0
    var number = 0
    while offset < text.byteCount {
      let (line, next) = Self.line(text, from: offset)
      offset = next
      number += 1
      if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }) { continue }
      if line == [UInt8(ascii: "*")] {
        repeats = true
        continue
      }
      guard let parsed = (hasOffsets ? Self.offsetAlone(line) : nil) ?? Self.parse(line) else {
        badLines += 1
        firstBadLine = firstBadLine ?? number
        continue
      }
      if let shown = parsed.offset {
        hasOffsets = true
        // A dump of a part of a file does not begin at offset 0.
        firstOffset = firstOffset ?? shown
        let end = min(shown - (firstOffset ?? 0), maximumLength)
        while repeats, !lastLine.isEmpty, bytes.count + lastLine.count <= end { bytes.append(contentsOf: lastLine) }
      }
      repeats = false
      bytes.append(contentsOf: parsed.bytes)
      if !parsed.bytes.isEmpty { lastLine = parsed.bytes }
    }
  }

  private static func line(_ bytes: RawSpan, from start: Int) -> (line: [UInt8], next: Int) {
    var end = start
    while end < bytes.byteCount && bytes.byte(at: end) != 0x0a { end += 1 }
    var last = end
    if last > start && bytes.byte(at: last - 1) == 0x0d { last -= 1 }
    return (Array(copying: bytes.extracting(start..<last)), min(end + 1, bytes.byteCount))
  }

  /// The bytes of one line, and the offset before them if it has one; `nil` if it is not a line of a dump.
  ///
  /// ```
  /// 00000010: 7b22 6170 7322 3a7b  {"aps":{                    xxd
  /// 00000010  7b 22 61 70 73 22 3a 7b  … |{"aps":{|            hexdump -C
  /// 7b2261707322                                              plain
  /// ```
  static func parse(_ line: some Collection<UInt8>) -> (offset: Int?, bytes: [UInt8])? {
    var rest = Array(line)[...]
    while let first = rest.first, first == 0x20 || first == 0x09 { rest = rest.dropFirst() }
    let word = rest.prefix { isHexDigit($0) }
    let after = rest.dropFirst(word.count)
    // xxd: digits, a colon and a space, then groups, then two spaces before the text column.
    if !word.isEmpty, after.starts(with: [UInt8(ascii: ":"), 0x20]), let offset = value(word) {
      return groups(after.dropFirst()).map { (offset, $0) }
    }
    // hexdump -C: seven or more digits and two spaces.
    if word.count >= 7, word.count <= 16, after.starts(with: [0x20, 0x20]), let offset = value(word) {
      let text = after.firstIndex(of: UInt8(ascii: "|")) ?? after.endIndex
      return groups(after[..<text], stopAtTwoSpaces: false).map { (offset, $0) }
    }
    let digits = rest.filter { $0 != 0x20 && $0 != 0x09 && $0 != UInt8(ascii: ":") }
    guard digits.allSatisfy(isHexDigit), digits.count % 2 == 0 else { return nil }
    return groups(digits[...]).map { (nil, $0) }
  }

  /// The last line of `hexdump -C`: the length of the file, without bytes.
  private static func offsetAlone(_ line: [UInt8]) -> (offset: Int?, bytes: [UInt8])? {
    let word = line.prefix { isHexDigit($0) }
    guard word.count >= 7, word.count == line.count, let offset = value(word) else { return nil }
    return (offset, [])
  }

  /// Pairs of digits, in groups separated by single spaces; two spaces begin the text column.
  private static func groups(_ text: ArraySlice<UInt8>, stopAtTwoSpaces: Bool = true) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text
    while let first = rest.first {
      if first == 0x20 || first == 0x09 {
        rest = rest.dropFirst()
        if stopAtTwoSpaces && rest.first == 0x20 && !bytes.isEmpty { break }
        continue
      }
      guard isHexDigit(first), let second = rest.dropFirst().first, isHexDigit(second) else { return nil }
      bytes.append(digit(first) << 4 | digit(second))
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  private static func value(_ digits: ArraySlice<UInt8>) -> Int? {
    digits.count <= 15 ? digits.reduce(0) { $0 << 4 | Int(digit($1)) } : nil
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }

  private static func digit(_ byte: UInt8) -> UInt8 {
    byte < 0x40 ? byte - 0x30 : (byte & 0xdf) - 0x41 + 10
  }
}
