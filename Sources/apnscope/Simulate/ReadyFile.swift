import CommandFiles
import Glibc

/// A file that exists while a service accepts connections, and says where.
final class ReadyFile {
  private let path: String
  private let document: WholeDocument

  /// Removes what an earlier run has left. Throws when the file could not be written.
  init(_ path: String) throws(FileFailure) {
    self.path = path
    document = try WholeDocument(path)
    remove()
  }

  func write(_ lines: [String]) { document.write(lines.joined(separator: "\n")) }

  /// Pipes and devices stay.
  func remove() { if document.isFile { _ = unlink(path) } }

  /// Throws when it could not be written.
  func check() throws(FileFailure) { try document.check() }
}
