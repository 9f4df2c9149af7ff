import CSQLite

/// An open database, and its statements, which are compiled once.
///
/// One thread uses it at a time: `SQLDatabase` sees to that.
@safe
package final class SQLConnection {
  /// How a file is opened.
  package enum Access: Sendable {
    case readOnly
    /// The file is created when it is missing.
    case readWrite
  }

  /// When a transaction takes its lock.
  package enum Transaction: String, Sendable {
    /// Nobody else writes from its beginning on.
    case immediate = "IMMEDIATE"
    /// Nobody else reads or writes from its beginning on.
    case exclusive = "EXCLUSIVE"
  }

  private let pointer: OpaquePointer
  private var statements: [String: Statement] = [:]

  /// Opens a file, or a database in memory.
  ///
  /// - Parameters:
  ///   - path: `nil`: in memory.
  ///   - patience: milliseconds to wait for another connection's lock.
  package init(path: String?, access: Access, patience: Int32) throws(SQLError) {
    // Several connections may be used by several threads, each by one at a time.
    let flags =
      SQLITE_OPEN_NOMUTEX | (access == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    // SQLite takes some names for something else than files.
    let name = path.map { $0.hasPrefix("/") ? $0 : "./" + $0 } ?? ":memory:"
    var opened: OpaquePointer?
    let code = unsafe sqlite3_open_v2(name, &opened, flags, nil)
    guard let opened = unsafe opened else { throw SQLError(code, "out of memory") }
    guard code == SQLITE_OK else {
      let error = unsafe Self.error(opened, code)
      unsafe sqlite3_close_v2(opened)
      throw error
    }
    unsafe sqlite3_busy_timeout(opened, patience)
    unsafe pointer = opened
  }

  deinit {
    // SQLite closes a database that has no statements any more.
    statements.removeAll()
    unsafe sqlite3_close_v2(pointer)
  }

  private static func error(_ pointer: OpaquePointer, _ code: Int32) -> SQLError {
    // Safe: SQLite's text lives until the next call with the connection, and is copied here.
    SQLError(code, unsafe sqlite3_errmsg(pointer).map { unsafe String(cString: $0) } ?? "")
  }

  private func check(_ code: Int32) throws(SQLError) {
    guard code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW else { throw unsafe Self.error(pointer, code) }
  }

  // MARK: statements

  /// Runs statements one after the other, such as a schema; results are ignored.
  package func execute(_ script: String) throws(SQLError) {
    try check(unsafe sqlite3_exec(pointer, script, nil, nil, nil))
  }

  /// Runs a statement without a result.
  package func run(_ sql: String, _ values: SQLValue...) throws(SQLError) { try run(sql, values) }

  /// Runs a statement without a result.
  package func run(_ sql: String, _ values: [SQLValue]) throws(SQLError) {
    let statement = try statement(sql, values)
    defer { statement.reset() }
    while try step(statement) {}
  }

  /// Hands out the rows of a result one by one.
  package func forEachRow(
    _ sql: String, _ values: [SQLValue] = [], _ body: (SQLRow) throws -> Void
  ) throws {
    let statement = try statement(sql, values)
    defer { statement.reset() }
    var places: [String: Int]?
    while try step(statement) {
      if places == nil { places = statement.places }
      try body(SQLRow(places: places ?? [:], values: statement.row))
    }
  }

  /// The first value of the first row; `.null` without rows.
  package func value(_ sql: String, _ values: SQLValue...) throws(SQLError) -> SQLValue {
    let statement = try statement(sql, values)
    defer { statement.reset() }
    return try step(statement) ? statement.value(0) : .null
  }

  /// The rows that the last statement inserted, changed or deleted.
  package var changes: Int { unsafe Int(sqlite3_changes64(pointer)) }

  /// Runs `body` in a transaction, which is undone when `body` throws or the end cannot be written.
  package func transaction<Result>(
    _ kind: Transaction, _ body: () throws -> Result
  ) throws -> Result {
    try execute("BEGIN \(kind.rawValue)")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // SQLite has undone it by itself after some errors. The first error is the one that tells why.
      if unsafe sqlite3_get_autocommit(pointer) == 0 { try? execute("ROLLBACK") }
      throw error
    }
  }

  /// The statement, compiled and with its values.
  private func statement(_ sql: String, _ values: [SQLValue]) throws(SQLError) -> Statement {
    let statement: Statement
    if let known = statements[sql] {
      statement = known
    } else {
      var compiled: OpaquePointer?
      try check(unsafe sqlite3_prepare_v3(pointer, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &compiled, nil))
      guard let compiled = unsafe compiled else { throw SQLError(SQLITE_MISUSE, "no statement") }
      statement = unsafe Statement(owning: compiled)
      statements[sql] = statement
    }
    for (index, value) in values.enumerated() { try check(statement.bind(value, Int32(index + 1))) }
    return statement
  }

  /// Whether there is another row.
  private func step(_ statement: Statement) throws(SQLError) -> Bool {
    let code = statement.step()
    try check(code)
    return code == SQLITE_ROW
  }
}

/// A compiled statement.
@safe
private final class Statement {
  private let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe sqlite3_finalize(pointer) }

  func step() -> Int32 { unsafe sqlite3_step(pointer) }

  /// Values are let go, too, which may be tokens.
  func reset() {
    unsafe sqlite3_reset(pointer)
    unsafe sqlite3_clear_bindings(pointer)
  }

  func bind(_ value: SQLValue, _ index: Int32) -> Int32 {
    switch value {
    case .null: return unsafe sqlite3_bind_null(pointer, index)
    case .integer(let number): return unsafe sqlite3_bind_int64(pointer, index, number)
    case .real(let number): return unsafe sqlite3_bind_double(pointer, index, number)
    case .text(var text):
      return text.withUTF8 {
        unsafe apnscope_bind_text(pointer, index, $0.baseAddress, UInt64($0.count))
      }
    case .blob(let bytes):
      return unsafe bytes.withUnsafeBytes {
        unsafe apnscope_bind_blob(pointer, index, $0.baseAddress, UInt64($0.count))
      }
    }
  }

  private var columns: Range<Int32> { unsafe 0..<sqlite3_column_count(pointer) }

  var places: [String: Int] {
    var places: [String: Int] = [:]
    for column in columns {
      guard let name = unsafe sqlite3_column_name(pointer, column) else { continue }
      let text = unsafe String(cString: name)
      if places[text] == nil { places[text] = Int(column) }
    }
    return places
  }

  var row: [SQLValue] { columns.map(value) }

  func value(_ column: Int32) -> SQLValue {
    switch unsafe sqlite3_column_type(pointer, column) {
    case SQLITE_INTEGER: return .integer(unsafe sqlite3_column_int64(pointer, column))
    case SQLITE_FLOAT: return .real(unsafe sqlite3_column_double(pointer, column))
    // Safe: the bytes live until the next step, as many as SQLite says after it was asked for them, and are copied.
    case SQLITE_TEXT:
      guard let start = unsafe sqlite3_column_text(pointer, column) else { return .null }
      let count = unsafe Int(sqlite3_column_bytes(pointer, column))
      return .text(unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
    case SQLITE_BLOB:
      guard let start = unsafe sqlite3_column_blob(pointer, column) else { return .blob([]) }
      let count = unsafe Int(sqlite3_column_bytes(pointer, column))
      return .blob(unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: count)))
    default: return .null
    }
  }
}
