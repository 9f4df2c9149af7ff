import Bytes
import Glibc

/// A file descriptor that records are written to.
package final class OutputFile {
  private let descriptor: Int32
  /// Set until the file is emptied; `isNew`: it was made here.
  private var unopened: (path: String, isNew: Bool, isSecret: Bool)?
  /// `errno` of the first write that failed; `EPIPE` when the reader has closed the pipe, which is not a failure.
  package private(set) var failure: Int32?

  /// The path that means standard output.
  package static let standardOutput = "-"

  /// The name of an output in messages.
  package static func name(of path: String) -> String { path == standardOutput ? "standard output" : path }

  /// The path of a file; `nil` for standard output, also where that is named.
  package static func file(_ path: String?) -> String? { path == standardOutput ? nil : path }

  /// Standard output.
  package init() { descriptor = STDOUT_FILENO }

  /// Creates or opens a file; `nil` with `errno` set when that fails. The file's content stays until something is
  /// written, or `begin()` is called. If neither happens, a file that was created here is removed again.
  ///
  /// - Parameter isSecret: only the owner may read it, even if it existed before.
  package init?(later path: String, isSecret: Bool = false) {
    if let number = Paths.descriptor(of: path) {
      // Opened again it would be written from its beginning.
      descriptor = fcntl(number, F_DUPFD_CLOEXEC, 3)
      guard descriptor >= 0 else { return nil }
      return
    }
    let mode: mode_t = isSecret ? 0o600 : 0o644
    // A file created here cannot be one of the command's other files.
    var opened = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    let isNew = opened >= 0
    if !isNew { opened = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode) }
    guard opened >= 0 else { return nil }
    descriptor = opened
    unopened = (path, isNew, isSecret)
  }

  deinit {
    if descriptor != STDOUT_FILENO { close(descriptor) }
    if let unopened, unopened.isNew { _ = unsafe unlink(unopened.path) }
  }

  /// Empties it, once, and makes a file for secrets its owner's alone.
  package func begin() {
    guard let isSecret = unopened?.isSecret else { return }
    unopened = nil
    // Devices keep their mode; pipes and devices cannot be truncated.
    guard isRegular else { return }
    if isSecret && fchmod(descriptor, 0o600) != 0 || ftruncate(descriptor, 0) != 0 { failure = errno }
  }

  /// Whether it is a file, and no pipe or device.
  package var isRegular: Bool {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// Removes permissions that `mask` lacks. Pipes and devices stay unchanged.
  package func limit(to mask: mode_t) {
    var status = stat()
    guard isRegular, unsafe fstat(descriptor, &status) == 0, status.st_mode & 0o777 & ~mask != 0 else { return }
    if fchmod(descriptor, status.st_mode & 0o7777 & mask) != 0 { failure = failure ?? errno }
  }

  /// Writes all of it; `false` when nothing more can be written.
  package func write(_ bytes: RawSpan) -> Bool {
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
