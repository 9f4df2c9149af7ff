import Bytes
import Glibc

/// An NSS key log, in memory or in a file.
///
/// Of a regular file only an index is kept in memory, 8 bytes per line; lines are read again when they are needed, so
/// the secrets of other connections cost almost nothing. Other sources are kept completely. Comments, blank lines and
/// labels that decrypt nothing are skipped; damaged lines are detected when they are needed.
public final class KeyLog {
  private enum Source {
    /// A file that can be read again, closed with the key log.
    case file(Int32)
    case memory([UInt8])
  }

  private let source: Source
  /// The entries of a `KeyLogIndex`, sorted.
  private let index: [UInt64]
  /// The number of lines that look like secrets.
  public var count: Int { index.count }
  /// Whether there were more lines than the limit; the rest was not read.
  public let isCut: Bool
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
    var lines = KeyLogIndex(limit: maximumLines)
    _ = lines.add(bytes.span, isEnd: true)
    (index, isCut) = (lines.entries.sorted(), lines.isCut)
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
    var lines = KeyLogIndex(limit: maximumLines)
    var kept: [UInt8] = []
    do {
      try lines.read(descriptor, keeping: isFile ? nil : maximumLength, in: &kept)
    } catch {
      close(descriptor)
      throw error
    }
    // Key logs in UTF-16 and sessions have no line of a key log in ASCII: the whole is read again.
    let pasted =
      lines.entries.isEmpty
      ? PastedSecrets(isFile ? (try? SecretsFile.read(path, maximumLength: maximumLength)) ?? [] : kept) : nil
    isOfSessions = pasted?.isOfSessions ?? false
    if let pasted {
      close(descriptor)
      source = .memory(pasted.keyLog)
      lines = KeyLogIndex(limit: maximumLines)
      _ = lines.add(pasted.keyLog.span, isEnd: true)
    } else if isFile {
      source = .file(descriptor)
    } else {
      close(descriptor)
      source = .memory(kept)
    }
    (index, isCut) = (lines.entries.sorted(), lines.isCut)
  }

  deinit { if case .file(let descriptor) = source { close(descriptor) } }

  // MARK: lookup

  /// The number of lines that are read again to find the secrets of one key.
  private static let maximumLinesRead = 4_096

  /// The secrets for `key`, the last line's first; at most `limit`. Of a key with very many lines only the last lines
  /// count.
  func secrets(_ label: KeyLogLabel, for key: [UInt8], limit: Int) -> [[UInt8]] {
    let first = KeyLogIndex.entry(KeyLogHash.of(key), label, 0)
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
      let end = min(bytes.count, offset + KeyLogIndex.lineLength)
      guard offset < end else { return nil }
      return Self.firstLine(bytes.span.extracting(offset..<end))
    case .file(let descriptor):
      var buffer = [UInt8](repeating: 0, count: KeyLogIndex.lineLength)
      // Safe: `pread` writes at most the buffer's length.
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, offset) }
      guard count > 0 else { return nil }
      return Self.firstLine(buffer.span.extracting(0..<count))
    }
  }

  private static func firstLine(_ text: Span<UInt8>) -> KeyLogLine? {
    KeyLogLine(parsing: text.extracting(0..<KeyLogIndex.endOfLine(text, from: 0)))
  }
}
