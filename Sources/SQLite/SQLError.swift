import CSQLite

/// An error of SQLite.
package struct SQLError: Error, Sendable, CustomStringConvertible {
  /// The causes that callers tell apart.
  package enum Cause: Sendable, Equatable {
    /// Another connection holds a lock.
    case locked
    case notADatabase
    case damaged
    case cannotOpen
    case readOnly
    case full
    case other
  }

  /// The primary result code, as in `sqlite3.h`.
  package let code: Int32
  /// SQLite's words. They name tables and columns, but never values.
  package let message: String

  package var description: String { "\(message) (SQLite error \(code))" }

  package var cause: Cause {
    switch code {
    case SQLITE_BUSY, SQLITE_LOCKED: .locked
    case SQLITE_NOTADB: .notADatabase
    case SQLITE_CORRUPT: .damaged
    case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .cannotOpen
    case SQLITE_READONLY: .readOnly
    case SQLITE_FULL: .full
    default: .other
    }
  }

  init(_ code: Int32, _ message: String) {
    // The upper bytes say more, and no caller tells them apart.
    self.code = code & 0xff
    self.message = message
  }

  static var isClosed: SQLError { SQLError(SQLITE_MISUSE, "the database is closed") }
}
