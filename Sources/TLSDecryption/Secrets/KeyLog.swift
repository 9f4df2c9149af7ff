import Bytes
import Glibc

/// An NSS key log, in memory or in a file.
///
/// Of a regular file only an index is kept in memory, 8 bytes per line; lines are read again when they are needed, so
/// the secrets of other connections cost almost nothing. Other sources are kept completely. Comments, blank lines and
/// labels that decrypt nothing are skipped; damaged lines are detected when they are needed.
public final class KeyLog {
  /// Longest line that is read; the longest that holds anything has 288 bytes.
  private static let lineLength = 1_024
  private static let blockLength = 1 << 20

  private enum Source {
    /// A file that can be read again, closed with the key log.
    case file(Int32)
    case memory([UInt8])
  }

  private let source: Source
  /// Hash (20 bits) | label (4) | offset of the line (40), sorted.
  private var index: [UInt64] = []
  /// The number of lines that look like secrets.
  public var count: Int { index.count }
  /// Whether there were more lines than the limit; the rest was not read.
  public private(set) var isCut = false
  /// It was converted from `openssl s_client` output, whose sessions may have no identifier on the wire.
  let isOfSessions: Bool

  /// Reads a key log in memory, such as one embedded in a capture file.
  ///
  /// - Parameters:
  ///   - bytes: the text of the key log.
  ///   - maximumLines: the most lines with secrets that are indexed; further lines are ignored.
  public init(_ bytes: [UInt8], maximumLines: Int) {
    source = .memory(bytes)
    isOfSessions = false
    var offset = 0
    Self.index(bytes.span, at: &offset, isEnd: true, base: 0, maximumLines, &index, &isCut)
    index.sort()
  }

  /// Opens a key log.
  ///
  /// - Parameters:
  ///   - path: the path of the file.
  ///   - maximumLength: the most bytes of a source other than a regular file, such as a pipe, which is kept in memory.
  ///   - maximumLines: the most lines with secrets that are indexed; further lines are ignored.
  /// - Throws: a `SecretsError` if the file cannot be opened or read.
  public init(contentsOf path: String, maximumLength: Int, maximumLines: Int) throws(SecretsError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SecretsError(SystemError.text(errno), kind: .cannotOpen) }
    var status = stat()
    let isFile = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    var kept: [UInt8] = []
    // A block, and before it the beginning of a line that the last block did not end.
    var buffer = [UInt8](repeating: 0, count: Self.lineLength + Self.blockLength)
    var rest = 0
    var base = 0
    var isEnd = false
    var failure: SecretsError?
    var index: [UInt64] = []
    var isCut = false
    while !isEnd && !isCut && failure == nil {
      // Safe: `read` writes at most a block, for which there is space after the rest.
      let count = unsafe buffer.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress.map { unsafe $0 + rest }, Self.blockLength)
      }
      if count < 0 {
        if errno == EINTR { continue }
        failure = SecretsError(SystemError.text(errno), kind: .readFailed)
        break
      }
      isEnd = count == 0
      if !isFile {
        kept += buffer[rest..<rest + count]
        if kept.count > maximumLength {
          failure = SecretsError("is not a plain file and holds more than \(maximumLength) bytes")
        }
      }
      var offset = 0
      Self.index(
        buffer.span.extracting(0..<rest + count), at: &offset, isEnd: isEnd, base: base, maximumLines, &index, &isCut)
      base += offset
      // The rest is the beginning of a line, within the limit.
      let end = rest + count
      rest = min(end - offset, Self.lineLength)
      for place in 0..<rest {
        let byte = buffer[offset + place]
        buffer[place] = byte
      }
    }
    // Key logs in UTF-16 and sessions have no line of a key log in ASCII: the whole is read again.
    let pasted =
      index.isEmpty && failure == nil
      ? PastedSecrets(isFile ? (try? SecretsFile.read(path, maximumLength: maximumLength)) ?? [] : kept) : nil
    isOfSessions = pasted?.isOfSessions ?? false
    if let pasted {
      var offset = 0
      Self.index(pasted.keyLog.span, at: &offset, isEnd: true, base: 0, maximumLines, &index, &isCut)
    }
    index.sort()
    self.index = index
    self.isCut = isCut
    if let pasted {
      close(descriptor)
      source = .memory(pasted.keyLog)
    } else if isFile && failure == nil {
      source = .file(descriptor)
    } else {
      close(descriptor)
      source = .memory(kept)
    }
    if let failure { throw failure }
  }

  deinit { if case .file(let descriptor) = source { close(descriptor) } }

  // MARK: the index

  /// Indexes the complete lines of `bytes` from `offset`, which is advanced past the last one.
  private static func index(
    _ text: Span<UInt8>, at offset: inout Int, isEnd: Bool, base: Int, _ maximumLines: Int, _ index: inout [UInt64],
    _ isCut: inout Bool
  ) {
    while offset < text.count {
      let end = endOfLine(text, from: offset)
      if end == text.count && !isEnd {
        // The tail of an endless line is dropped: it holds nothing.
        if text.count - offset > lineLength { offset = text.count - lineLength }
        return
      }
      if end - offset >= 16, let start = KeyLogLineStart(text.extracting(offset..<min(end, offset + lineLength))) {
        guard index.count < maximumLines else {
          isCut = true
          return
        }
        index.append(entry(start.hash, start.label, base + offset))
      }
      offset = min(end + 1, text.count)
    }
  }

  private static func endOfLine(_ text: Span<UInt8>, from start: Int) -> Int {
    // Safe: memchr reads within the span.
    unsafe text.rawBytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, let found = unsafe memchr(base + start, 0x0a, bytes.count - start)
      else { return bytes.count }
      return unsafe UnsafeRawPointer(found) - base
    }
  }

  private static func entry(_ hash: UInt64, _ label: KeyLogLabel, _ offset: Int) -> UInt64 {
    (hash >> 44) << 44 | UInt64(label.rawValue) << 40 | UInt64(offset) & (1 << 40 - 1)
  }

  // MARK: lookup

  /// The number of lines that are read again to find the secrets of one key.
  private static let maximumLinesRead = 4_096

  /// The secrets for `key`, the last line's first; at most `limit`. Of a key with very many lines only the last lines
  /// count.
  func secrets(_ label: KeyLogLabel, for key: [UInt8], limit: Int) -> [[UInt8]] {
    let first = Self.entry(KeyLogHash.of(key), label, 0)
    let end = first + 1 << 40
    var secrets: [[UInt8]] = []
    var position = lowerBound(end) - 1
    let last = max(0, position - Self.maximumLinesRead + 1)
    while position >= last, index[position] >= first, secrets.count < limit {
      if let line = line(at: position), line.label == label, line.key == key, !secrets.contains(line.secret) {
        secrets.append(line.secret)
      }
      position -= 1
    }
    return secrets
  }

  /// Calls `body` with every line of a label until it returns `false`, in no particular order.
  func forEach(_ label: KeyLogLabel, _ body: (KeyLogLine) -> Bool) {
    for position in index.indices where UInt8(truncatingIfNeeded: index[position] >> 40) & 15 == label.rawValue {
      if let line = line(at: position), !body(line) { return }
    }
  }

  private func lowerBound(_ value: UInt64) -> Int {
    var (low, high) = (0, index.count)
    while low < high {
      let middle = (low + high) / 2
      if index[middle] < value { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private func line(at position: Int) -> KeyLogLine? {
    let offset = Int(index[position] & (1 << 40 - 1))
    switch source {
    case .memory(let bytes):
      let end = min(bytes.count, offset + Self.lineLength)
      guard offset < end else { return nil }
      return Self.firstLine(bytes.span.extracting(offset..<end))
    case .file(let descriptor):
      var buffer = [UInt8](repeating: 0, count: Self.lineLength)
      // Safe: `pread` writes at most the buffer's length.
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, offset) }
      guard count > 0 else { return nil }
      return Self.firstLine(buffer.span.extracting(0..<count))
    }
  }

  private static func firstLine(_ text: Span<UInt8>) -> KeyLogLine? {
    KeyLogLine(parsing: text.extracting(0..<endOfLine(text, from: 0)))
  }
}
