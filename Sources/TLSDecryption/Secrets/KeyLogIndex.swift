import Bytes
import Glibc

/// Where the lines of a key log are that look like secrets.
struct KeyLogIndex {
  /// Longest line that is read; the longest that holds anything has 288 bytes.
  static let lineLength = 1_024
  private static let blockLength = 1 << 20

  /// Hash (20 bits) | label (4) | offset of the line (40), in the order of the lines.
  private(set) var entries: [UInt64] = []
  /// Whether there were more lines than the limit; the rest was not read.
  private(set) var isCut = false
  private let limit: Int
  /// The offset in the key log of the bytes that are added next.
  private var base = 0

  /// - Parameter limit: the most lines that are indexed.
  init(limit: Int) { self.limit = limit }

  /// Indexes all lines that can be read from a file descriptor.
  ///
  /// - Parameters:
  ///   - limit: keeps all bytes in `kept`, this many at most; `nil`: keeps none.
  ///   - kept: receives the bytes.
  /// - Throws: a `SecretsError` if reading fails, or there is more to keep.
  mutating func read(_ descriptor: Int32, keeping limit: Int?, in kept: inout [UInt8]) throws(SecretsError) {
    // A block, and before it the beginning of a line that the last block did not end.
    var buffer = [UInt8](repeating: 0, count: Self.lineLength + Self.blockLength)
    var rest = 0
    var isEnd = false
    while !isEnd && !isCut {
      // Safe: `read` writes at most a block, for which there is space after the rest.
      let count = unsafe buffer.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress.map { unsafe $0 + rest }, Self.blockLength)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw SecretsError(SystemError.text(errno), kind: .readFailed)
      }
      isEnd = count == 0
      if let limit {
        kept += buffer[rest..<rest + count]
        if kept.count > limit { throw SecretsError("is not a plain file and holds more than \(limit) bytes") }
      }
      let end = rest + count
      let offset = add(buffer.span.extracting(0..<end), isEnd: isEnd)
      // The rest is the beginning of a line, within the limit.
      rest = min(end - offset, Self.lineLength)
      for place in 0..<rest {
        let byte = buffer[offset + place]
        buffer[place] = byte
      }
    }
  }

  /// Indexes the complete lines of `text`, or all of it at the end. Returns the offset after the last one.
  mutating func add(_ text: Span<UInt8>, isEnd: Bool) -> Int {
    var offset = 0
    defer { base += offset }
    while offset < text.count {
      let end = Self.endOfLine(text, from: offset)
      if end == text.count && !isEnd {
        // The tail of an endless line is dropped: it holds nothing.
        if text.count - offset > Self.lineLength { offset = text.count - Self.lineLength }
        break
      }
      if end - offset >= 16, let start = KeyLogLineStart(text.extracting(offset..<min(end, offset + Self.lineLength))) {
        guard entries.count < limit else {
          isCut = true
          break
        }
        entries.append(Self.entry(start.hash, start.label, base + offset))
      }
      offset = min(end + 1, text.count)
    }
    return offset
  }

  /// The offset of the end of a line, or of the text.
  static func endOfLine(_ text: Span<UInt8>, from start: Int) -> Int {
    // Safe: memchr reads within the span.
    unsafe text.rawBytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, let found = unsafe memchr(base + start, 0x0a, bytes.count - start)
      else { return bytes.count }
      return unsafe UnsafeRawPointer(found) - base
    }
  }

  /// An entry; those of one label and hash follow each other when sorted.
  static func entry(_ hash: UInt64, _ label: KeyLogLabel, _ offset: Int) -> UInt64 {
    (hash >> 44) << 44 | UInt64(label.rawValue) << 40 | UInt64(offset) & (1 << 40 - 1)
  }
}
