import SQLite

/// Why an operation of a feedback list failed.
public struct FeedbackListError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Kind: Sendable, Equatable {
    /// The file cannot be created, is not a regular file, or is not readable and writable.
    case cannotOpen
    /// The file belongs to another program.
    case notAFeedbackList
    /// The file was written by a version of this program whose lists look different.
    case unknownVersion
    /// Another process, or another list in this one, has the file open.
    case inUse
    /// Too many bytes are pending, so the failures were refused; the completion is not called.
    case tooMuchPending
    /// The disk is full, or the file has reached its limit.
    case full
    /// The list has been closed.
    case closed
    /// SQLite or the system failed in another way.
    case failed
  }

  public let kind: Kind
  /// One sentence, with the file's name.
  public let description: String

  init(_ kind: Kind, _ file: String, _ problem: String) {
    self.kind = kind
    self.description = "\(file): \(problem)"
  }

  /// SQLite's message about the file, without the statement and its arguments, which are tokens.
  init(_ error: any Error, file: String) {
    if let error = error as? FeedbackListError {
      self = error
      return
    }
    guard let error = error as? SQLError else {
      self.init(.failed, file, String(describing: error))
      return
    }
    let kind: Kind =
      switch error.cause {
      case .notADatabase, .damaged: .notAFeedbackList
      case .locked: .inUse
      case .full: .full
      case .cannotOpen: .cannotOpen
      case .readOnly, .other: .failed
      }
    self.init(kind, file, kind == .inUse ? "is open in another process" : error.message)
  }
}
