import Bytes
import Glibc

/// An SQLite file that only this program writes, and only its owner may read, because tokens are personal data.
enum OwnedFile {
  enum Fault: Error {
    case cannotOpen(file: String, reason: String)
    /// It has other content.
    case isOfOthers
  }

  /// Creates the file if missing, and checks its application id before SQLite writes to it.
  ///
  /// SQLite uses the file's mode for the write-ahead log.
  static func claim(_ path: String, applicationID: Int32) throws(Fault) {
    func failed() -> Fault { .cannotOpen(file: path, reason: SystemError.text(errno)) }
    let descriptor = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw failed() }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw failed() }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .cannotOpen(file: path, reason: "is not a regular file") }
    // | "SQLite format 3\0" | … | 60: user version u32 | 64 | 68: application id u32 | … 100
    var header = [UInt8](repeating: 0, count: 100)
    // Safe: `pread` writes at most the buffer's length.
    let count = unsafe header.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count >= 0 else { throw failed() }
    if count > 0 {
      let isOurs =
        count == header.count && header.starts(with: Array("SQLite format 3\0".utf8))
        && header.rawBytes.uint32(at: 68) == UInt32(bitPattern: applicationID)
      guard isOurs else { throw .isOfOthers }
    }
    if status.st_mode & 0o777 != 0o600, fchmod(descriptor, 0o600) != 0 { throw failed() }
    let log = path + "-wal"
    if unsafe chmod(log, 0o600) != 0, errno != ENOENT { throw .cannotOpen(file: log, reason: SystemError.text(errno)) }
  }
}
