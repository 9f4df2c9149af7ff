/// The reason why a document cannot be used.
package struct DocumentFailure: Error, Equatable {
  package enum Problem: Equatable {
    /// It cannot be opened or read, for a reason of the system's, or is too long.
    case unreadable(reason: String)
    /// It is the result of another command.
    case otherKind(String, expected: String)
    /// It has a schema that is not read; with the newest that is.
    case unsupportedSchema(Int, newest: Int)
    /// It is not what was expected, "a result of 'load'", for a reason.
    case notADocument(expected: String, reason: String)
  }

  /// The document's name in messages; its path, if it is a file.
  package var name: String
  package var problem: Problem

  package init(_ name: String, _ problem: Problem) { (self.name, self.problem) = (name, problem) }
}
