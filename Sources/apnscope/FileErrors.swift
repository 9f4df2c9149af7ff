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
    switch failure.kind {
    case .cannotOpen: return cannotOpen
    case .readFailed, .writeFailed: return inputOutput
    case .unusable: return damaged
    case .readerGone: return .success
    }
  }
}
