import Bytes
import Glibc

/// A file descriptor that records are written to.
final class OutputFile {
  private let descriptor: Int32
  /// What is not emptied yet, and whether it was made for this.
  private var unopened: (path: String, isNew: Bool)?
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

  /// The same for what is written after long work: what the file had stays until then, also when it never comes to that.
  /// A file that was not there goes again.
  init?(later path: String) {
    // A file that is made here is no other's.
    var opened = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    let isNew = opened >= 0
    if !isNew { opened = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) }
    guard opened >= 0 else { return nil }
    descriptor = opened
    unopened = (path, isNew)
  }

  deinit {
    if descriptor != STDOUT_FILENO { close(descriptor) }
    if let unopened, unopened.isNew { _ = unsafe unlink(unopened.path) }
  }

  /// Empties it, if that was left for later.
  func begin() {
    guard unopened != nil else { return }
    unopened = nil
    // What is no file, as a pipe, has nothing to be emptied.
    if ftruncate(descriptor, 0) != 0, errno != EINVAL { failure = errno }
  }

  /// Writes all of it; `false` when nothing more can be written.
  func write(_ bytes: RawSpan) -> Bool {
    begin()
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
