import Bytes
import Glibc
import Synchronization

/// A file to which the secrets of TLS connections are appended, in the NSS key log format.
///
/// Each line is one system call on a descriptor in append mode, so the lines of several threads and processes never
/// mix. A connection writes once or a few times.
public final class KeyLogFile: Sendable {
  private let descriptor: Int32
  private let problem = Mutex<String?>(nil)
  /// A warning if others than the owner may read the file; `nil` if not, or if it is not a file.
  public let warning: String?

  /// Opens the file, or creates one that only the owner may read. An existing file keeps its mode and its lines,
  /// because it may be shared deliberately, for example through a link.
  ///
  /// - Throws: a `TLSError` of kind `file`.
  public init(path: String) throws(TLSError) {
    let opened = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard opened >= 0 else { throw TLSError(.file, "\(path): \(SystemError.text(errno))") }
    var status = stat()
    let isFile = unsafe fstat(opened, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    let mode = status.st_mode & 0o777
    warning =
      isFile && mode & 0o077 != 0
      ? "\(path): the file is accessible to others (mode \(String(mode, radix: 8))), but would hold the secrets of connections"
      : nil
    descriptor = opened
  }

  deinit { close(descriptor) }

  /// The reason why a line could not be written; `nil` as long as all could.
  public var failure: String? { problem.withLock { $0 } }

  func append(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    // Safe: the array lives through the call.
    let written = unsafe write(descriptor, bytes, bytes.count)
    guard written != bytes.count else { return }
    let text = written < 0 ? SystemError.text(errno) : "no space for a complete line"
    problem.withLock { if $0 == nil { $0 = text } }
  }
}
