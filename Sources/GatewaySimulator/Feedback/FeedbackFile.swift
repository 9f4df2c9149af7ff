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

  private static func claim(_ path: String) throws(FeedbackListError) {
    do throws(OwnedFile.Fault) {
      try OwnedFile.claim(path, applicationID: applicationID)
    } catch {
      switch error {
      case .cannotOpen(let file, let reason): throw FeedbackListError(.cannotOpen, file, reason)
      case .isOfOthers: throw FeedbackListError(.notAFeedbackList, path, "is not a feedback list")
      }
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
