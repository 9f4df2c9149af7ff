import ArgumentParser
import CommandFiles
import Glibc
import Synchronization

/// Inputs that can be read more than once.
enum RepeatableInput {
  /// The path to open it by.
  static func path(of input: String) -> String { input == "-" && isKept ? StandardInput.path : input }

  /// The input that is opened by a path.
  static func name(of path: String) -> String { isKept && path == StandardInput.path ? "-" : path }

  private static let kept = Atomic<Bool>(false)
  private static var isKept: Bool { kept.load(ordering: .relaxed) }

  /// Whether the input is a file, or was copied to one. Standard input is read as it arrives, even if it is a file.
  static func isRepeatable(_ input: String) -> Bool {
    if input == "-" { return isKept }
    var status = stat()
    // A missing file is reported when it is read.
    return unsafe stat(input, &status) != 0 || status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFDIR
  }

  /// Makes all inputs repeatable: standard input from a pipe is copied to an unnamed file. Ctrl-C ends the copying: the
  /// copied part is the input, and the result is `true`.
  static func require(_ inputs: [String], for what: String) throws -> Bool {
    if inputs.contains("-") {
      if !StandardInput.isWholeFile { try StandardInput.keep(in: TemporaryFiles.folder) { Interrupt.isRequested } }
      kept.store(true, ordering: .relaxed)
    }
    for input in inputs where !isRepeatable(input) {
      throw ValidationError("\(what) reads its input twice, and \(input) is not a file; use standard input (-).")
    }
    return Interrupt.take()
  }
}

/// Where temporary files are.
enum TemporaryFiles {
  static var folder: String {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
    return folder.isEmpty ? "/tmp" : folder
  }
}
