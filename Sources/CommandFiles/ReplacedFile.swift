import Bytes
import Glibc

/// A file that is written piece by piece beside its place and moved there when it is complete; before, the place keeps
/// its content. Of one that is never complete nothing is left. For documents too large for `WholeDocument`.
///
/// Of two processes that write the same file, the one that completes later has its place, whole. Where nothing can be
/// replaced (`OutputPlace`) the pieces are written as they come.
package final class ReplacedFile {
  private enum Target {
    case draft(DraftFile, path: String, existing: FileAttributes?)
    case stream(OutputFile)
  }

  private let path: String
  private let target: Target
  /// Pieces that are written together.
  private var buffer = ByteWriter(capacity: 1 << 20)
  private var failure: SystemFailure?

  /// Throws when there can be no file of this name.
  ///
  /// - Parameter path: `-` is standard output.
  package init(_ path: String) throws(FileFailure) {
    self.path = path
    do throws(SystemFailure) {
      switch try OutputPlace(path) {
      case .replaceable(let path, let existing):
        target = .draft(try DraftFile(in: Paths.parts(of: path).folder), path: path, existing: existing)
      case .fixed(let path):
        guard let file = OutputFile(later: path) else { throw SystemFailure(code: errno) }
        target = .stream(file)
      case .open(let file): target = .stream(file)
      }
    } catch {
      throw FileFailure(.writeFailed, OutputFile.name(of: path), code: error.code)
    }
  }

  /// `false` when nothing more can be written.
  package func write(_ bytes: RawSpan) -> Bool {
    buffer.write(bytes)
    return buffer.count < 1 << 20 || flush()
  }

  private func flush() -> Bool {
    defer { buffer.removeAll() }
    guard failure == nil else { return false }
    switch target {
    case .draft(let file, _, _):
      do throws(SystemFailure) { try file.write(buffer.bytes) } catch { failure = error }
    case .stream(let file):
      if !file.write(buffer.bytes) { failure = SystemFailure(code: file.failure ?? EIO) }
    }
    return failure == nil
  }

  /// Puts the file in its place. Throws when something could not be written, `readerGone` when a pipe was closed.
  ///
  /// - Parameter mask: the rights that a file has at most, also in the place of one that had more.
  package func finish(atMost mask: mode_t = 0o7777) throws(FileFailure) {
    _ = flush()
    do throws(SystemFailure) {
      if let failure { throw failure }
      guard case .draft(let file, let path, let existing) = target else { return }
      try file.complete(like: existing, atMost: mask)
      try file.move(to: path)
    } catch {
      throw FileFailure(writing: OutputFile.name(of: path), code: error.code)
    }
  }
}
