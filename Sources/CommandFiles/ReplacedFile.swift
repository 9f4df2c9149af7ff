import Bytes
import Glibc

/// A file that is written piece by piece as a draft, and moved to its path when it is complete; until then the path
/// keeps its content. Nothing remains of a draft that is never completed. For documents too large for `WholeDocument`.
///
/// If two processes write the same file, the one that completes later replaces it as a whole. If the file cannot be
/// replaced (`OutputPlace`), the pieces are written as they come.
package final class ReplacedFile {
  private enum Target {
    case draft(DraftFile, path: String, existing: FileAttributes?)
    /// - ownsRights: of a file that is written over.
    case stream(OutputFile, ownsRights: Bool)
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
        target = .stream(file, ownsRights: true)
      case .open(let file): target = .stream(file, ownsRights: false)
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
    case .stream(let file, _):
      if !file.write(buffer.bytes) { failure = SystemFailure(code: file.failure ?? EIO) }
    }
    return failure == nil
  }

  /// Moves the file to its path. Throws if something could not be written, with `readerGone` if a pipe was closed.
  ///
  /// - Parameter mask: the most permissions that the file gets, even if it replaces one with more.
  package func finish(atMost mask: mode_t = 0o7777) throws(FileFailure) {
    _ = flush()
    do throws(SystemFailure) {
      if let failure { throw failure }
      switch target {
      case .draft(let file, let path, let existing):
        try file.complete(like: existing, atMost: mask)
        try file.replace(path, atMost: mask)
      case .stream(let file, let ownsRights):
        if ownsRights { file.limit(to: mask) }
        if let failure = file.failure { throw SystemFailure(code: failure) }
      }
    } catch {
      throw FileFailure(writing: OutputFile.name(of: path), code: error.code)
    }
  }
}
