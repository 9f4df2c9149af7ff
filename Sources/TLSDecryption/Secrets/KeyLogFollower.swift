import Bytes
import Glibc

/// Key logs that grow during a capture: reads the lines that were added.
package final class KeyLogFollower {
  private struct File {
    var path: String
    /// Bytes that were read.
    var read: Int
  }

  private static let interval = Duration.milliseconds(200)

  private var files: [File]
  private var last = ContinuousClock.now
  private let maximumLength: Int
  private let maximumLines: Int

  /// Longer than a line. A line that is read twice, or cut at its beginning, does no harm.
  private static let overlap = 4_096

  /// - Parameter paths: key logs. The follower reads what is appended from now on.
  package init(_ paths: [String], maximumLength: Int, maximumLines: Int) {
    files = paths.map { File(path: $0, read: max(0, (Self.size(of: $0) ?? 0) - Self.overlap)) }
    self.maximumLength = maximumLength
    self.maximumLines = maximumLines
  }

  private static func size(of path: String) -> Int? {
    var status = stat()
    guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(status.st_size)
  }

  /// The lines that came since the last call.
  package func next() -> [KeyLog] {
    let now = ContinuousClock.now
    guard last.duration(to: now) >= Self.interval else { return [] }
    last = now
    return files.indices.compactMap { more(at: $0) }
  }

  private func more(at index: Int) -> KeyLog? {
    guard let size = Self.size(of: files[index].path) else { return nil }
    // The file was truncated.
    if size < files[index].read { files[index].read = 0 }
    let length = min(size - files[index].read, maximumLength)
    guard length > 0 else { return nil }
    let file = unsafe open(files[index].path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: length)
    // Safe: at most the array's length is written.
    let count = unsafe pread(file, &bytes, length, files[index].read)
    guard count > 0, let end = bytes[..<count].lastIndex(of: 0x0a) else { return nil }
    files[index].read += end + 1
    return KeyLog(Array(bytes[...end]), maximumLines: maximumLines)
  }
}
