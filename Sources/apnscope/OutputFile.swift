import Bytes
import Glibc

/// A file descriptor that records are written to.
final class OutputFile {
  private let descriptor: Int32
  /// `errno` of the first write that failed; `EPIPE` when the reader went away, which is no failure.
  private(set) var failure: Int32?

  /// Standard output.
  init() { descriptor = STDOUT_FILENO }

  /// Creates or empties a file; `nil` with `errno` set when that fails.
  ///
  /// - Parameter isSecret: nobody else may read it, also when it existed before.
  init?(creating path: String, isSecret: Bool = false) {
    let opened = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, isSecret ? 0o600 : 0o644)
    guard opened >= 0 else { return nil }
    // A device keeps its mode.
    var status = stat()
    let isFile = unsafe fstat(opened, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    if isSecret, isFile, fchmod(opened, 0o600) != 0 {
      let code = errno
      close(opened)
      errno = code
      return nil
    }
    descriptor = opened
  }

  deinit { if descriptor != STDOUT_FILENO { close(descriptor) } }

  /// Writes all of it; `false` when nothing more can be written.
  func write(_ bytes: RawSpan) -> Bool {
    guard failure == nil else { return false }
    var offset = 0
    while offset < bytes.byteCount {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 {
        if errno == EINTR { continue }
        failure = errno
        return false
      }
      offset += written
    }
    return true
  }
}
