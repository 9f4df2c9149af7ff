import SQLite

/// Why a history cannot be used; the description contains the file's name.
public struct HistoryError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Kind: Sendable, Equatable {
    /// The file cannot be opened or created.
    case cannotOpen
    /// The file is not a history.
    case notAHistory
    /// The file was written by a newer version of the program.
    case newerSchema
    /// Another process has locked the file.
    case locked
    /// The disk is full, or the file is damaged.
    case failed
  }

  public let kind: Kind
  public let description: String

  init(_ kind: Kind, _ file: String, _ problem: String) {
    self.kind = kind
    description = "\(file): \(problem)"
  }

  init(_ error: any Error, file: String) {
    if let error = error as? HistoryError {
      self = error
      return
    }
    guard let error = error as? SQLError else {
      self.init(.failed, file, "\(error)")
      return
    }
    switch error.cause {
    case .locked: self.init(.locked, file, "is locked by another program")
    case .notADatabase: self.init(.notAHistory, file, "is not a history of apnscope")
    case .cannotOpen: self.init(.cannotOpen, file, "cannot be opened")
    case .readOnly: self.init(.failed, file, "cannot be written to")
    case .full: self.init(.failed, file, "no space left on the device")
    case .damaged: self.init(.failed, file, "is damaged")
    case .other: self.init(.failed, file, error.message)
    }
  }
}
