import ArgumentParser
import CommandFiles
import Glibc
import Synchronization

/// Inputs as they can be read more than once.
enum RepeatableInput {
  /// What it is opened by. Standard input that is a file is opened anew each time, if it must be.
  static func path(of input: String) -> String { input == "-" && isKept ? StandardInput.path : input }

  private static let kept = Atomic<Bool>(false)
  private static var isKept: Bool { kept.load(ordering: .relaxed) }

  /// Whether it is a file, or was made one. Standard input is read as it comes, also when it is a file.
  static func isRepeatable(_ input: String) -> Bool {
    if input == "-" { return isKept }
    var status = stat()
    // What is not there cannot be read at all.
    return unsafe stat(input, &status) != 0 || status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFDIR
  }

  /// Makes all inputs such that can be read again; what comes through a pipe is kept in an unnamed file. Ctrl-C ends it:
  /// what has come by then is the input, and `true` is returned.
  static func require(_ inputs: [String], for what: String) throws -> Bool {
    if inputs.contains("-") {
      if !StandardInput.isWholeFile { try StandardInput.keep(in: folder) { Interrupt.isRequested } }
      kept.store(true, ordering: .relaxed)
    }
    for input in inputs where !isRepeatable(input) {
      throw ValidationError("\(what) needs its input twice, and \(input) is no file; give it as standard input (-).")
    }
    return Interrupt.take()
  }

  /// For what need not outlive the process.
  private static var folder: String {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
    return folder.isEmpty ? "/tmp/" : folder.hasSuffix("/") ? folder : folder + "/"
  }
}
