import Dispatch
import Synchronization

/// A database that several threads use one after the other. Thread-safe.
package final class SQLDatabase: Sendable {
  /// `nil` when it is closed.
  private let connection: Mutex<SQLConnection?>
  private let queue: DispatchQueue

  /// Opens a file, or a database in memory; `SQLConnection` describes the parameters.
  ///
  /// - Parameter label: the name of the queue, for debuggers.
  package init(
    path: String?, access: SQLConnection.Access = .readWrite, patience: Int32 = 0, label: String
  ) throws(SQLError) {
    connection = Mutex(try SQLConnection(path: path, access: access, patience: patience))
    queue = DispatchQueue(label: label)
  }

  /// Does work with the database, and waits for it.
  package func perform<Result: Sendable>(
    _ work: @Sendable (SQLConnection) throws -> Result
  ) throws -> Result {
    try connection.withLock { connection in
      guard let connection else { throw SQLError.isClosed }
      return try work(connection)
    }
  }

  /// Does work on the database's queue, in the order of the calls.
  package func enqueue(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

  /// Closes the database after what is running. Idempotent; what comes later fails.
  package func close() { connection.withLock { $0 = nil } }
}
