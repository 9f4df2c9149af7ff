import Bytes
import Glibc

/// A document that is replaced at once: its file has the old or the complete new content, even if the disk becomes full
/// or the process is killed.
///
/// The bytes go to a new file in the same folder, which is synced and renamed. It takes the mode, and where allowed the
/// owner, of the file it replaces; a symbolic link stays and its target is replaced. If the file cannot be replaced
/// (`OutputPlace`), the bytes are written directly.
package final class WholeDocument {
  /// The new content, and the file that has it.
  private struct Draft {
    var bytes: [UInt8]
    var file: DraftFile?
  }

  private let path: String
  private let place: OutputPlace
  private var draft: Draft?
  /// `errno` of the first failure; `EPIPE` when the reader has closed the pipe, which is not a failure.
  package private(set) var failure: Int32?

  /// Changes nothing. Throws when the file could not be written, so that a bad path is known early.
  ///
  /// - Parameter path: `-` is standard output.
  package init(_ path: String) throws(FileFailure) {
    self.path = path
    do throws(SystemFailure) {
      place = try OutputPlace(path)
    } catch {
      throw FileFailure(.writeFailed, OutputFile.name(of: path), code: error.code)
    }
  }

  /// Whether a file is made or replaced, and not a pipe or device written to.
  package var isFile: Bool {
    if case .replaceable = place { true } else { false }
  }

  /// Puts this and a line end in the file's place; a failure is kept for `check()`. A later call replaces it again.
  package func write(_ document: String) {
    prepare(Array((document + "\n").utf8))
    commit()
  }

  /// Writes the bytes to a draft, which `commit()` moves to the path. So several documents appear together or not at
  /// all, as far as there is room for them.
  package func prepare(_ bytes: [UInt8]) {
    draft = nil
    guard failure == nil else { return }
    draft = Draft(bytes: bytes, file: nil)
    guard case .replaceable(let path, let existing) = place else { return }
    do throws(SystemFailure) {
      let file = try DraftFile(in: Paths.parts(of: path).folder)
      try file.write(bytes.rawBytes)
      try file.complete(like: existing)
      draft?.file = file
    } catch {
      fail(error.code)
    }
  }

  /// Moves the prepared file to its place.
  package func commit() {
    guard let draft else { return }
    do throws(SystemFailure) {
      switch place {
      case .replaceable(let path, _): try draft.file?.replace(path)
      case .fixed(let path): try Self.overwrite(path, draft.bytes)
      case .open(let file):
        _ = file.write(draft.bytes.rawBytes)
        if let failure = file.failure { throw SystemFailure(code: failure) }
      }
      self.draft = nil
    } catch {
      fail(error.code)
    }
  }

  /// Throws when something could not be written, `readerGone` when a pipe was closed.
  package func check() throws(FileFailure) {
    if let failure { throw FileFailure(writing: OutputFile.name(of: path), code: failure) }
  }

  private func fail(_ code: Int32) {
    draft = nil
    failure = failure ?? code
  }

  private static func overwrite(_ path: String, _ bytes: [UInt8]) throws(SystemFailure) {
    guard let file = OutputFile(later: path) else { throw SystemFailure(code: errno) }
    guard file.write(bytes.rawBytes) else { throw SystemFailure(code: file.failure ?? EIO) }
  }
}
