import Bytes
import Glibc

/// The files that a command writes: standard output, one file, or several in a directory.
package final class Outputs {
  private let path: String?
  private let isDirectory: Bool
  private var files: [(name: String, file: OutputFile)] = []

  /// Creates the directory if `isDirectory`.
  ///
  /// - Parameter path: `nil`: standard output.
  package init(_ path: String?, isDirectory: Bool) throws(FileFailure) {
    self.path = path
    self.isDirectory = isDirectory
    if let path, isDirectory, unsafe mkdir(path, 0o755) != 0, errno != EEXIST {
      throw FileFailure(.writeFailed, path, code: errno)
    }
  }

  /// The file's content stays until something is written, or `check()` is called.
  package func open(_ name: String = "") throws(FileFailure) -> (RawSpan) -> Bool {
    guard let path else {
      let file = OutputFile()
      files.append(("standard output", file))
      return { file.write($0) }
    }
    let full = isDirectory ? Paths.path(of: name, in: path) : path
    let file = try add(full, isSecret: false)
    return { file.write($0) }
  }

  /// A file for secrets.
  package func openKeyLog(_ path: String) throws(FileFailure) -> (String) -> Void {
    let file = try add(path, isSecret: true)
    return { _ = file.write(Array($0.utf8).rawBytes) }
  }

  private func add(_ path: String, isSecret: Bool) throws(FileFailure) -> OutputFile {
    guard let file = OutputFile(later: path, isSecret: isSecret) else {
      throw FileFailure(.writeFailed, path, code: errno)
    }
    files.append((path, file))
    return file
  }

  /// Throws when something could not be written, `readerGone` when a pipe was closed.
  package func check() throws(FileFailure) {
    for (name, file) in files {
      file.begin()
      if let failure = file.failure { throw FileFailure(writing: name, code: failure) }
    }
  }
}

/// Standard output as lines of text.
package final class TextOutput {
  private let outputs: Outputs
  private let write: (RawSpan) -> Bool

  package init() throws(FileFailure) {
    outputs = try Outputs(nil, isDirectory: false)
    write = try outputs.open()
  }

  package func say(_ line: String) { _ = write(Array((line + "\n").utf8).rawBytes) }

  /// Throws when something could not be written. A closed pipe is no error: the exit status is that of the rest of the
  /// command.
  package func check() throws(FileFailure) {
    do throws(FileFailure) {
      try outputs.check()
    } catch {
      if error.kind != .readerGone { throw error }
    }
  }
}
