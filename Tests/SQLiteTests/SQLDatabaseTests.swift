import Foundation
import SQLite
import TestSupport
import Testing

@Suite("SQLite")
struct SQLDatabaseTests {
  private func inMemory() throws -> SQLDatabase { try SQLDatabase(path: nil, label: "test") }

  private func cause(_ body: () throws -> Void) -> SQLError.Cause? {
    do { try body() } catch { return (error as? SQLError)?.cause }
    return nil
  }

  @Test("Values come back as they were given, empty ones too")
  func values() throws {
    let given: [SQLValue] = [
      .null, .integer(.min), .integer(.max), .real(-0.1), .real(1e300), .text(""), .text("a\0b 🦔"), .blob([]),
      .blob([0, 255]),
    ]
    let (stored, types) = try inMemory().perform { database in
      try database.execute("CREATE TABLE t (place INTEGER, value BLOB)")
      for (place, value) in given.enumerated() {
        try database.run("INSERT INTO t VALUES (?, ?)", SQLValue(place), value)
      }
      var (stored, types): ([SQLValue], [String]) = ([], [])
      try database.forEachRow("SELECT value, typeof(value) AS type FROM t ORDER BY place") { row in
        stored.append(row["value"])
        types.append(row["type"].text ?? "")
      }
      return (stored, types)
    }
    #expect(stored == given)
    #expect(types == ["null", "integer", "integer", "real", "real", "text", "text", "blob", "blob"])
  }

  @Test("A value is read as a number, a text or bytes only where it is one")
  func conversions() {
    #expect(SQLValue.integer(3).real == 3 && SQLValue.real(3).integer == 3)
    #expect(SQLValue.real(3.5).integer == nil && SQLValue.real(.nan).integer == nil)
    #expect(SQLValue.text("3").integer == nil && SQLValue.text("3").real == nil && SQLValue.integer(3).text == nil)
    #expect(SQLValue.blob([51]).text == nil && SQLValue.text("3").blob == nil && SQLValue.null.blob == nil)
  }

  @Test("A column that is not there has no value, and of two with a name the first is meant")
  func columns() throws {
    let row = try inMemory().perform { database in
      var first: SQLRow?
      try database.forEachRow("SELECT 1 AS a, 2 AS a, 3") { first = $0 }
      return first
    }
    #expect(row?["a"] == .integer(1) && row?["b"] == .null && row?[2] == .integer(3))
  }

  @Test("A transaction that throws leaves nothing behind, and its error is the one that is thrown")
  func transaction() throws {
    struct Stop: Error {}
    let database = try inMemory()
    try database.perform { try $0.execute("CREATE TABLE t (value INTEGER UNIQUE)") }
    #expect(throws: Stop.self) {
      try database.perform { connection in
        try connection.transaction(.immediate) {
          try connection.run("INSERT INTO t VALUES (1)")
          throw Stop()
        }
      }
    }
    let error = #expect(throws: SQLError.self) {
      try database.perform { connection in
        try connection.transaction(.exclusive) {
          try connection.run("INSERT INTO t VALUES (2)")
          try connection.run("INSERT INTO t VALUES (2)")
        }
      }
    }
    // The message names the column, and not the value.
    #expect(error?.message == "UNIQUE constraint failed: t.value")
    let (count, changes) = try database.perform { connection in
      try connection.transaction(.immediate) { try connection.run("INSERT INTO t VALUES (3), (4)") }
      return (try connection.value("SELECT count(*) FROM t"), connection.changes)
    }
    #expect(count == .integer(2) && changes == 2)
  }

  @Test("A statement that failed, or of which not all rows were taken, can be run again")
  func again() throws {
    struct Enough: Error {}
    let database = try inMemory()
    let sql = "SELECT value FROM json_each('[1,2,3]') WHERE value > ?"
    #expect(throws: Enough.self) {
      try database.perform { try $0.forEachRow(sql, [.integer(0)]) { _ in throw Enough() } }
    }
    let rows = try database.perform { connection in
      var rows: [SQLValue] = []
      try connection.forEachRow(sql, [.integer(1)]) { rows.append($0[0]) }
      // A value that is not given is none: nothing is kept from the run before.
      try connection.forEachRow(sql) { rows.append($0[0]) }
      return rows
    }
    #expect(rows == [.integer(2), .integer(3)])
  }

  @Test("Failures are told apart: no file, no database, locked, read only, full, closed")
  func causes() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-sql-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "a.sqlite").path
    func open(_ access: SQLConnection.Access) throws -> SQLDatabase {
      try SQLDatabase(path: path, access: access, label: "test")
    }
    #expect(cause { _ = try open(.readOnly) } == .cannotOpen)
    let database = try open(.readWrite)
    try database.perform { try $0.execute("CREATE TABLE t (value BLOB)") }
    #expect(cause { try open(.readOnly).perform { try $0.run("INSERT INTO t VALUES (1)") } } == .readOnly)
    try database.perform { try $0.execute("BEGIN EXCLUSIVE") }
    #expect(cause { try open(.readWrite).perform { try $0.run("INSERT INTO t VALUES (1)") } } == .locked)
    try database.perform { try $0.execute("COMMIT; PRAGMA max_page_count = 3") }
    #expect(cause { try database.perform { try $0.run("INSERT INTO t VALUES (zeroblob(100000))") } } == .full)
    database.close()
    database.close()
    let error = #expect(throws: SQLError.self) { try database.perform { try $0.execute("SELECT 1") } }
    #expect(error?.message == "the database is closed")
    try Data(repeating: 7, count: 4_096).write(to: URL(filePath: path))
    #expect(cause { try open(.readWrite).perform { _ = try $0.value("SELECT * FROM t") } } == .notADatabase)
  }

  @Test("Threads use a database one after the other")
  func threads() async throws {
    let database = try inMemory()
    try database.perform { try $0.execute("CREATE TABLE t (value INTEGER); INSERT INTO t VALUES (0)") }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<50 {
            try? database.perform { connection in
              try connection.transaction(.immediate) {
                let value = try connection.value("SELECT value FROM t").integer ?? 0
                try connection.run("UPDATE t SET value = ?", .integer(value + 1))
              }
            }
          }
        }
      }
    }
    #expect(try database.perform { try $0.value("SELECT value FROM t") } == .integer(400))
  }
}
