import CommandFiles
import Glibc

/// A recording, or a folder of recordings, that is read.
package struct RecordingInput: Sendable, Equatable {
  /// The path that it is opened by; `-`: standard input, as it arrives.
  package private(set) var path: String
  /// Its name in records; `-`: standard input.
  package let name: String

  package init(path: String, name: String) { (self.path, self.name) = (path, name) }

  /// Its name in messages.
  package var title: String { name == "-" ? "standard input" : name }

  /// Whether it can be opened more than once. Standard input is read as it arrives, even if it is a file.
  package var isRepeatable: Bool {
    if path == "-" { return false }
    var status = stat()
    // A missing file is reported when it is opened.
    guard unsafe stat(path, &status) == 0 else { return true }
    return status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFDIR
  }

  /// Standard input is in a file, and can be opened more than once.
  mutating func noteKept() { if path == "-" { path = StandardInput.path } }
}
