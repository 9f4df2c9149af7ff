import Bytes
import FoundationEssentials
import GRDB
import Glibc

/// The SQLite file of a feedback list: opening it, and all its statements.
///
/// A commit has written its pages to the write-ahead log before it returns. `synchronous = NORMAL` does not wait for
/// the disk: the list survives the end of the process, not a power failure.
enum FeedbackFile {
  /// "apnf" in the header says whose file it is.
  private static let applicationID: Int32 = 0x6170_6e66
  private static let version: Int32 = 1

  // A topic is a BLOB: TEXT would end at a NUL, and a certificate may contain any name.
  private static let schema = """
    CREATE TABLE failure (
      topic BLOB NOT NULL,
      sequence INTEGER NOT NULL,
      token BLOB NOT NULL,
      time INTEGER NOT NULL,
      PRIMARY KEY (topic, sequence)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX failure_token ON failure (topic, token);
    -- The highest sequence that was given to a failure that is gone.
    CREATE TABLE progress (sequence INTEGER NOT NULL);
    INSERT INTO progress VALUES (0);
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    """

  // MARK: opening

  private static func limit(_ database: Database, to bytes: Int) throws {
    let pageSize = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 4_096
    try database.execute(sql: "PRAGMA max_page_count = \(max(1, min(bytes / pageSize, Int(Int32.max))))")
  }

  static func open(
    _ path: String, maximumBytes: Int, checkpointPages: Int
  ) throws(FeedbackListError) -> DatabaseQueue {
    try claim(path)
    var configuration = Configuration()
    configuration.label = "apnscope.feedback-list"
    configuration.prepareDatabase { database in
      // Exclusive access: no other process can change the counts, and no shared memory file is needed.
      try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
      try prepare(database, path)
      // After the schema: the file's own first page says from the first moment whose it is.
      try database.execute(sql: "PRAGMA journal_mode = WAL")
      try database.execute(sql: "PRAGMA synchronous = NORMAL")
      // In KiB: the index of about 500,000 tokens. Tokens are spread over all of its pages.
      try database.execute(sql: "PRAGMA cache_size = -32768")
      try database.execute(sql: "PRAGMA wal_autocheckpoint = \(checkpointPages)")
      try limit(database, to: maximumBytes)
    }
    do {
      // SQLite treats some names specially, instead of as files.
      return try DatabaseQueue(path: path.hasPrefix("/") ? path : "./" + path, configuration: configuration)
    } catch {
      throw FeedbackListError(error, file: path)
    }
  }

  static func inMemory(maximumBytes: Int) throws(FeedbackListError) -> DatabaseQueue {
    var configuration = Configuration()
    configuration.label = "apnscope.feedback-list"
    configuration.prepareDatabase { database in
      try prepare(database, "feedback list")
      try limit(database, to: maximumBytes)
    }
    do {
      return try DatabaseQueue(configuration: configuration)
    } catch {
      throw FeedbackListError(error, file: "feedback list")
    }
  }

  /// Creates the file if missing, and checks its application id before SQLite writes to it.
  ///
  /// Tokens are personal data: only the owner may read the file, and SQLite uses its mode for the write-ahead log.
  private static func claim(_ path: String) throws(FeedbackListError) {
    func failed() -> FeedbackListError { FeedbackListError(.cannotOpen, path, SystemError.text(errno)) }
    let descriptor = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw failed() }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw failed() }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw FeedbackListError(.cannotOpen, path, "is not a regular file")
    }
    // | "SQLite format 3\0" | … | 60: user version u32 | 64 | 68: application id u32 | … 100
    var header = [UInt8](repeating: 0, count: 100)
    // Safe: `pread` writes at most the buffer's length.
    let count = unsafe header.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count >= 0 else { throw failed() }
    if count > 0 {
      let isOurs =
        count == header.count && header.starts(with: Array("SQLite format 3\0".utf8))
        && header.rawBytes.uint32(at: 68) == UInt32(bitPattern: applicationID)
      guard isOurs else { throw FeedbackListError(.notAFeedbackList, path, "is not a feedback list") }
    }
    if status.st_mode & 0o777 != 0o600, fchmod(descriptor, 0o600) != 0 { throw failed() }
    let log = path + "-wal"
    if unsafe chmod(log, 0o600) != 0, errno != ENOENT {
      throw FeedbackListError(.cannotOpen, log, SystemError.text(errno))
    }
  }

  private static func prepare(_ database: Database, _ path: String) throws {
    let found = try Int32.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    switch found {
    case version: return
    case 0:
      // Empty: new, or left by a process that ended while it made the file.
      try database.inTransaction(.exclusive) {
        try database.execute(sql: schema)
        return .commit
      }
    default:
      throw FeedbackListError(
        .unknownVersion, path, "is a feedback list of version \(found); this program reads version \(version)")
    }
  }

  // MARK: statements

  /// Puts a failure on the list, or moves it to the end when it is there already; `true` when it was not.
  static func put(
    _ failure: FeedbackList.Failure, sequence: Int64, _ database: Database
  ) throws -> Bool {
    let topic = Data(failure.topic.utf8)
    let token = Data(failure.token)
    // SQLite may take empty bytes for no value.
    try database.cachedStatement(
      sql: """
        INSERT INTO failure (topic, sequence, token, time) VALUES (ifnull(?, x''), ?, ifnull(?, x''), ?)
        ON CONFLICT (topic, token) DO NOTHING
        """
    ).execute(arguments: [topic, sequence, token, Int64(failure.time)])
    if database.changesCount > 0 { return true }
    try database.cachedStatement(
      sql: "UPDATE failure SET sequence = ?, time = ? WHERE topic = ifnull(?, x'') AND token = ifnull(?, x'')"
    ).execute(arguments: [sequence, Int64(failure.time), topic, token])
    return false
  }

  static func lastSequence(_ database: Database) throws -> Int64 {
    try Int64.fetchOne(
      database, sql: "SELECT max(sequence) FROM (SELECT sequence FROM progress UNION ALL SELECT sequence FROM failure)")
      ?? 0
  }

  static func waiting(_ database: Database) throws -> [[UInt8]: Int] {
    var waiting: [[UInt8]: Int] = [:]
    let rows = try Row.fetchCursor(database, sql: "SELECT topic, count(*) FROM failure GROUP BY topic")
    while let row = try rows.next() {
      waiting[[UInt8](row[0] as Data)] = row[1] as Int
    }
    return waiting
  }

  static func lastSequence(topic: String, _ database: Database) throws -> Int64? {
    try Int64.fetchOne(
      database, sql: "SELECT max(sequence) FROM failure WHERE topic = ifnull(?, x'')",
      arguments: [Data(topic.utf8)])
  }

  static func entries(
    topic: String, after: Int64, through: Int64, limit: Int, _ database: Database
  ) throws -> [FeedbackList.Entry] {
    let statement = try database.cachedStatement(
      sql: """
        SELECT sequence, time, token FROM failure
        WHERE topic = ifnull(?, x'') AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?
        """)
    let rows = try Row.fetchCursor(statement, arguments: [Data(topic.utf8), after, through, limit])
    var entries: [FeedbackList.Entry] = []
    while let row = try rows.next() {
      let token = try row.withUnsafeData(atIndex: 2) { $0.map { [UInt8]($0) } ?? [] }
      entries.append(
        FeedbackList.Entry(sequence: row[0], time: UInt32(truncatingIfNeeded: row[1] as Int64), token: token))
    }
    return entries
  }

  /// Removes the first `limit` failures of a topic up to a sequence; returns how many there were.
  static func remove(
    topic: String, through sequence: Int64, limit: Int, lastSequence: Int64, _ database: Database
  ) throws -> Int {
    let topic = Data(topic.utf8)
    let end = try Int64.fetchOne(
      database.cachedStatement(
        sql: """
          SELECT sequence FROM failure WHERE topic = ifnull(?, x'') AND sequence <= ?
          ORDER BY sequence LIMIT 1 OFFSET ?
          """), arguments: [topic, sequence, limit - 1])
    try database.cachedStatement(sql: "DELETE FROM failure WHERE topic = ifnull(?, x'') AND sequence <= ?")
      .execute(arguments: [topic, end ?? sequence])
    let removed = database.changesCount
    // A sequence must never be reused, even after the list is opened again.
    try database.cachedStatement(sql: "UPDATE progress SET sequence = ?").execute(arguments: [lastSequence])
    return removed
  }
}
