import Bytes
import Glibc
import SQLite

/// The SQLite file of a feedback list: opening it, and all its statements.
///
/// A commit has written its pages to the write-ahead log before it returns. `synchronous = NORMAL` does not wait for
/// the disk: the list survives the end of the process, not a power failure.
enum FeedbackFile {
  /// "apnf" in the header says whose file it is.
  private static let applicationID: Int32 = 0x6170_6e66
  private static let version: Int64 = 1

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

  private static func limit(_ database: SQLConnection, to bytes: Int) throws {
    let pageSize = try database.value("PRAGMA page_size").integer.map(Int.init) ?? 4_096
    try database.execute("PRAGMA max_page_count = \(max(1, min(bytes / pageSize, Int(Int32.max))))")
  }

  static func open(
    _ path: String, maximumBytes: Int, checkpointPages: Int
  ) throws(FeedbackListError) -> SQLDatabase {
    try claim(path)
    return try open(path, path) { database in
      // Exclusive access: no other process can change the counts, and no shared memory file is needed.
      try database.execute("PRAGMA locking_mode = EXCLUSIVE")
      try prepare(database, path)
      // After the schema: the file's own first page says from the first moment whose it is.
      try database.execute("PRAGMA journal_mode = WAL")
      try database.execute("PRAGMA synchronous = NORMAL")
      // In KiB: the index of about 500,000 tokens. Tokens are spread over all of its pages.
      try database.execute("PRAGMA cache_size = -32768")
      try database.execute("PRAGMA wal_autocheckpoint = \(checkpointPages)")
      try limit(database, to: maximumBytes)
    }
  }

  static func inMemory(maximumBytes: Int) throws(FeedbackListError) -> SQLDatabase {
    let name = "feedback list"
    return try open(nil, name) { database in
      try prepare(database, name)
      try limit(database, to: maximumBytes)
    }
  }

  private static func open(
    _ path: String?, _ name: String, _ prepare: @Sendable (SQLConnection) throws -> Void
  ) throws(FeedbackListError) -> SQLDatabase {
    do {
      let database = try SQLDatabase(path: path, label: "apnscope.feedback-list")
      try database.perform(prepare)
      return database
    } catch {
      throw FeedbackListError(error, file: name)
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

  private static func prepare(_ database: SQLConnection, _ path: String) throws {
    let found = try database.value("PRAGMA user_version").integer ?? 0
    switch found {
    case version: return
    case 0:
      // Empty: new, or left by a process that ended while it made the file.
      try database.transaction(.exclusive) { try database.execute(schema) }
    default:
      throw FeedbackListError(
        .unknownVersion, path, "is a feedback list of version \(found); this program reads version \(version)")
    }
  }

  // MARK: statements

  private static func blob(_ topic: String) -> SQLValue { .blob(Array(topic.utf8)) }

  /// Puts a failure on the list, or moves it to the end when it is there already; `true` when it was not.
  static func put(
    _ failure: FeedbackList.Failure, sequence: Int64, _ database: SQLConnection
  ) throws -> Bool {
    let topic = blob(failure.topic)
    let (token, time) = (SQLValue.blob(failure.token), SQLValue.integer(Int64(failure.time)))
    try database.run(
      """
      INSERT INTO failure (topic, sequence, token, time) VALUES (?, ?, ?, ?)
      ON CONFLICT (topic, token) DO NOTHING
      """, topic, .integer(sequence), token, time)
    if database.changes > 0 { return true }
    try database.run(
      "UPDATE failure SET sequence = ?, time = ? WHERE topic = ? AND token = ?",
      .integer(sequence), time, topic, token)
    return false
  }

  static func lastSequence(_ database: SQLConnection) throws -> Int64 {
    try database.value(
      "SELECT max(sequence) FROM (SELECT sequence FROM progress UNION ALL SELECT sequence FROM failure)"
    ).integer ?? 0
  }

  static func waiting(_ database: SQLConnection) throws -> [[UInt8]: Int] {
    var waiting: [[UInt8]: Int] = [:]
    try database.forEachRow("SELECT topic, count(*) FROM failure GROUP BY topic") { row in
      if let topic = row[0].blob, let count = row[1].integer { waiting[topic] = Int(count) }
    }
    return waiting
  }

  static func lastSequence(topic: String, _ database: SQLConnection) throws -> Int64? {
    try database.value("SELECT max(sequence) FROM failure WHERE topic = ?", blob(topic)).integer
  }

  static func entries(
    topic: String, after: Int64, through: Int64, limit: Int, _ database: SQLConnection
  ) throws -> [FeedbackList.Entry] {
    var entries: [FeedbackList.Entry] = []
    try database.forEachRow(
      """
      SELECT sequence, time, token FROM failure
      WHERE topic = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?
      """, [blob(topic), .integer(after), .integer(through), SQLValue(limit)]
    ) { row in
      guard let sequence = row[0].integer, let time = row[1].integer, let token = row[2].blob else { return }
      entries.append(FeedbackList.Entry(sequence: sequence, time: UInt32(truncatingIfNeeded: time), token: token))
    }
    return entries
  }

  /// Removes the first `limit` failures of a topic up to a sequence; returns how many there were.
  static func remove(
    topic: String, through sequence: Int64, limit: Int, lastSequence: Int64, _ database: SQLConnection
  ) throws -> Int {
    let topic = blob(topic)
    let end = try database.value(
      "SELECT sequence FROM failure WHERE topic = ? AND sequence <= ? ORDER BY sequence LIMIT 1 OFFSET ?",
      topic, .integer(sequence), SQLValue(limit - 1)
    ).integer
    try database.run("DELETE FROM failure WHERE topic = ? AND sequence <= ?", topic, .integer(end ?? sequence))
    let removed = database.changes
    // A sequence must never be reused, even after the list is opened again.
    try database.run("UPDATE progress SET sequence = ?", .integer(lastSequence))
    return removed
  }
}
