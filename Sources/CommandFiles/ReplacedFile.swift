import Bytes
import Glibc

/// A file that is written piece by piece beside its place, as `NAME.part`, and moved there when it is complete; before,
/// the place keeps its content. A file that is never complete is removed. For documents too large for `WholeDocument`.
package final class ReplacedFile {
  private let path: String
  private let part: String
  private let file: OutputFile
  /// Pieces that are written together.
  private var buffer = ByteWriter(capacity: 1 << 20)
  private var isComplete = false

  /// Throws when there can be no file of this name.
  package init(_ path: String) throws(FileFailure) {
    self.path = path
    part = path + ".part"
    guard !Paths.isDirectory(path) else { throw FileFailure(.writeFailed, path, code: EISDIR) }
    guard let file = OutputFile(later: part) else { throw FileFailure(.writeFailed, part, code: errno) }
    self.file = file
    file.begin()
  }

  deinit { if !isComplete { _ = unsafe unlink(part) } }

  /// `false` when nothing more can be written.
  package func write(_ bytes: RawSpan) -> Bool {
    buffer.write(bytes)
    return buffer.count < 1 << 20 || flush()
  }

  private func flush() -> Bool {
    defer { buffer.removeAll() }
    return file.write(buffer.bytes)
  }

  /// Puts the file in its place. Throws when something could not be written.
  package func finish() throws(FileFailure) {
    _ = flush()
    if let failure = file.failure { throw FileFailure(writing: part, code: failure) }
    guard unsafe rename(part, path) == 0 else { throw FileFailure(.writeFailed, path, code: errno) }
    isComplete = true
  }
}
