import Bytes
import Glibc

/// Why a file could not be read or written.
package struct FileFailure: Error, Equatable, CustomStringConvertible {
  package enum Kind: Sendable {
    /// The file cannot be opened for reading, or standard input cannot be read.
    case cannotOpen
    /// Reading has failed after the beginning.
    case readFailed
    /// The file cannot be created, opened for writing, or written.
    case writeFailed
    /// Its content cannot be used.
    case unusable
    /// The reader of the output has closed the pipe, which is a normal end.
    case readerGone
  }

  package var kind: Kind
  /// The file's name, perhaps with the number of a line: "records.jsonl:7", "standard output".
  package var name: String
  package var problem: String

  package init(_ kind: Kind, _ name: String, _ problem: String) {
    (self.kind, self.name, self.problem) = (kind, name, problem)
  }

  /// - Parameter code: the system's error number.
  package init(_ kind: Kind, _ name: String, code: Int32) {
    self.init(kind, name, SystemError.text(code))
  }

  /// A file that is written, with the system's error number.
  init(writing name: String, code: Int32) {
    self.init(code == EPIPE ? .readerGone : .writeFailed, name, code: code)
  }

  package var description: String { "\(name): \(problem)" }
}
