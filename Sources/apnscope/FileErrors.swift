import ArgumentParser
import CommandFiles
import Reporting

/// Complains of a file or a history that cannot be used, and throws an exit code.
func complaining<Value>(_ body: () throws -> Value) throws -> Value {
  do {
    return try body()
  } catch let error as HistoryError {
    complain("\(error)")
    throw ExitStatus.code(for: error)
  } catch let failure as FileFailure {
    throw ExitStatus.complaining(of: failure)
  }
}

/// Throws a usage error if a file to be written is also read by the command, or written twice.
func refuseConflicts(reading: [String], writing: [(name: String, path: String?)]) throws {
  do {
    try FilesInUse.check(reading: reading, writing: writing)
  } catch {
    throw ValidationError("\(error).")
  }
}

extension ExitStatus {
  /// Reports an error of a file. A closed pipe is not reported: it ends a command normally.
  static func complaining(of failure: FileFailure) -> ExitCode {
    if failure.kind != .readerGone { complain("\(failure)") }
    return code(for: failure)
  }

  /// Reports why a result cannot be used.
  static func complaining(of failure: DocumentFailure) -> ExitCode {
    complain("\(failure.name): \(failure.text)")
    if case .unreadable = failure.problem { return cannotOpen }
    return damaged
  }

  static func code(for failure: FileFailure) -> ExitCode {
    switch failure.kind {
    case .cannotOpen: cannotOpen
    case .readFailed, .writeFailed: inputOutput
    case .unusable: damaged
    case .readerGone: .success
    }
  }
}

extension DocumentFailure {
  /// The problem in words.
  var text: String {
    switch problem {
    case .unreadable(let reason): return reason
    case .otherKind(let kind, let expected): return "is a result of '\(kind)', not of '\(expected)'"
    case .unsupportedSchema(let schema, let newest):
      return "unsupported schema \(schema); this apnscope reads schema \(newest)"
    case .notADocument(let expected, let reason):
      if let kind = FileKind(beginning: FileKind.beginning(of: name)) { return "\(kind.advice); expected \(expected)" }
      return "is not \(expected): \(reason)"
    }
  }
}
