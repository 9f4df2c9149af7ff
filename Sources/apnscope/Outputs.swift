import ArgumentParser
import Bytes
import Glibc

/// The files that a command writes: standard output, one file, or several in a directory.
final class Outputs {
  private let path: String?
  private let isDirectory: Bool
  private var files: [(name: String, file: OutputFile)] = []

  /// Makes the directory if there is to be one.
  init(_ path: String?, isDirectory: Bool) throws {
    self.path = path
    self.isDirectory = isDirectory
    if let path, isDirectory, unsafe mkdir(path, 0o755) != 0, errno != EEXIST {
      complain("\(path): \(SystemError.text(errno))")
      throw ExitStatus.inputOutput
    }
  }

  /// What the file had stays until something is written, or `check()` is called.
  func open(_ name: String = "") throws -> (RawSpan) -> Bool {
    guard let path else {
      let file = OutputFile()
      files.append(("standard output", file))
      return { file.write($0) }
    }
    let full = isDirectory ? Self.path(of: name, in: path) : path
    guard let file = OutputFile(later: full) else {
      complain("\(full): \(SystemError.text(errno))")
      throw ExitStatus.inputOutput
    }
    files.append((full, file))
    return { file.write($0) }
  }

  static func path(of name: String, in directory: String) -> String {
    (directory.hasSuffix("/") ? directory : directory + "/") + name
  }

  /// A file for secrets.
  func openKeyLog(_ path: String) throws -> (String) -> Void {
    guard let file = OutputFile(later: path, isSecret: true) else {
      complain("\(path): \(SystemError.text(errno))")
      throw ExitStatus.inputOutput
    }
    files.append((path, file))
    return { _ = file.write(Array($0.utf8).rawBytes) }
  }

  /// Throws when something could not be written; a reader that closed the pipe is a success and ends the command.
  func check() throws {
    for (name, file) in files {
      file.begin()
      guard let failure = file.failure else { continue }
      if failure == EPIPE { throw ExitCode.success }
      complain("\(name): \(SystemError.text(failure))")
      throw ExitStatus.inputOutput
    }
  }
}

/// Standard output as lines of text.
final class TextOutput {
  private let outputs: Outputs
  private let write: (RawSpan) -> Bool

  init() throws {
    outputs = try Outputs(nil, isDirectory: false)
    write = try outputs.open()
  }

  func say(_ line: String) { _ = write(Array((line + "\n").utf8).rawBytes) }

  /// As `Outputs.check()`.
  func check() throws { try outputs.check() }
}
