import Glibc

/// A temporary file without a name: only this process has it, its owner alone could read it, and it is gone with the
/// process.
package final class UnnamedFile {
  /// Why it cannot be made, written or read.
  package struct Failure: Error, Sendable, CustomStringConvertible {
    /// The folder of temporary files.
    package let folder: String
    /// The system's error text.
    package let problem: String
    package var description: String { "\(folder): \(problem)" }

    init(_ folder: String, code: Int32) { (self.folder, problem) = (folder, SystemError.text(code)) }
  }

  private let descriptor: Int32
  private let folder: String
  /// Bytes that were written.
  package private(set) var count = 0

  /// - Parameter folder: where its bytes are.
  package init(in folder: String) throws(Failure) {
    self.folder = folder
    guard let descriptor = Self.open(in: folder) else { throw Failure(folder, code: errno) }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// A new descriptor of such a file, which programs that are started do not get; `nil` with `errno` set when that fails.
  package static func open(in folder: String) -> Int32? {
    var path = Array("\(folder)/.apnscope-XXXXXX".utf8CString)
    // Safe: the path ends with NUL, and only its last letters are changed. The mode is 0600.
    let descriptor = unsafe mkstemp(&path)
    guard descriptor >= 0 else { return nil }
    _ = unsafe unlink(path)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    return descriptor
  }

  /// Writes all of it at the end.
  package func append(_ bytes: RawSpan) throws(Failure) {
    var offset = 0
    while offset < bytes.byteCount {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      // Safe: the memory lives through the call.
      let written = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else { throw Failure(folder, code: written < 0 ? errno : ENOSPC) }
      offset += written
      count += written
    }
  }

  /// Fills the memory with the bytes at an offset, all of which must have been written.
  package func read(into memory: UnsafeMutableRawBufferPointer, at offset: Int) throws(Failure) {
    var done = 0
    while done < memory.count {
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[done...])
      // Safe: no more is written than the rest has room for.
      let read = unsafe pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
      if read < 0, errno == EINTR { continue }
      guard read > 0 else { throw Failure(folder, code: read < 0 ? errno : EIO) }
      done += read
    }
  }
}
