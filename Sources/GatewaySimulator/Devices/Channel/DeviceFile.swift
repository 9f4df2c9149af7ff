import SQLite

/// The SQLite file of registered devices: their tokens, and what waits for them or is not acknowledged.
///
/// A commit has written its pages to the write-ahead log before it returns. `synchronous = NORMAL` does not wait for the
/// disk: the file survives the end of the process, not a power failure.
final class DeviceFile: Sendable {
  /// "apnd" in the header says whose file it is.
  private static let applicationID: Int32 = 0x6170_6e64
  private static let version: Int64 = 1

  // A topic is a BLOB: TEXT would end at a NUL.
  private static let schema = """
    CREATE TABLE app (
      topic BLOB NOT NULL,
      token BLOB NOT NULL,
      device INTEGER NOT NULL,
      generation INTEGER NOT NULL,
      -- UNIX milliseconds since when it is not valid; NULL: it is.
      retired INTEGER,
      PRIMARY KEY (topic, token)
    ) WITHOUT ROWID;
    CREATE TABLE notification (
      number INTEGER PRIMARY KEY,
      topic BLOB NOT NULL,
      token BLOB NOT NULL,
      payload BLOB NOT NULL,
      priority INTEGER NOT NULL,
      push_type TEXT,
      expiration INTEGER,
      collapse BLOB NOT NULL,
      background INTEGER NOT NULL,
      sent INTEGER NOT NULL,
      last_moment INTEGER NOT NULL,
      released INTEGER NOT NULL,
      -- That it was sent to the device with; NULL: it was not sent.
      sequence INTEGER
    );
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    """

  /// Its path, for messages.
  let path: String
  private let database: SQLDatabase

  /// Opens the file, or creates it.
  init(_ path: String) throws(SimulatorError) {
    self.path = path
    do {
      try OwnedFile.claim(path, applicationID: Self.applicationID)
      database = try SQLDatabase(path: path, label: "apnscope.device-store")
      try database.perform { database in
        try database.execute("PRAGMA locking_mode = EXCLUSIVE")
        switch try database.value("PRAGMA user_version").integer ?? 0 {
        case Self.version: break
        case 0: try database.transaction(.exclusive) { try database.execute(Self.schema) }
        case let found:
          throw SimulatorError("is a store of version \(found); this program reads version \(Self.version)")
        }
        try database.execute("PRAGMA journal_mode = WAL")
        try database.execute("PRAGMA synchronous = NORMAL")
      }
    } catch {
      throw Self.error(error, path)
    }
  }

  /// SQLite's message about the file, without the statement and its arguments, which are tokens.
  private static func error(_ error: any Error, _ path: String) -> SimulatorError {
    switch error {
    case OwnedFile.Fault.cannotOpen(let file, let reason): SimulatorError("\(file): \(reason)")
    case OwnedFile.Fault.isOfOthers: SimulatorError("\(path): is not a store of devices")
    case let error as SimulatorError: SimulatorError("\(path): \(error.description)")
    case let error as SQLError:
      SimulatorError("\(path): \(error.cause == .locked ? "is open in another process" : error.message)")
    default: SimulatorError("\(path): \(error)")
    }
  }

  private func perform<Result: Sendable>(
    _ work: @Sendable (SQLConnection) throws -> Result
  ) throws(SimulatorError) -> Result {
    do { return try database.perform(work) } catch { throw Self.error(error, path) }
  }

  // MARK: writing

  /// Keeps a notification that is not sent yet.
  func insert(_ held: HeldNotification, topic: String, token: [UInt8]) throws(SimulatorError) {
    let values: [SQLValue] = [
      .integer(Int64(clamping: held.number)), .blob(Array(topic.utf8)), .blob(token), .blob(held.payload),
      SQLValue(Int(held.priority)), SQLValue(held.pushType), held.expiration.map { SQLValue(Int($0)) } ?? .null,
      .blob(held.collapseID), SQLValue(held.isBackground ? 1 : 0), .integer(held.sent), .integer(held.lastMoment),
      .integer(held.releasedAt), .null,
    ]
    try perform { try $0.run("INSERT INTO notification VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values) }
  }

  /// Makes changes, all or none of them.
  func apply(_ changes: [RegisteredDevices.Change]) throws(SimulatorError) {
    try perform { database in
      try database.transaction(.immediate) {
        for change in changes { try Self.apply(change, database) }
      }
    }
  }

  private static func apply(_ change: RegisteredDevices.Change, _ database: SQLConnection) throws {
    switch change {
    case .app(let topic, let token, let device, let generation, let retiredAt):
      try database.run(
        "INSERT OR REPLACE INTO app VALUES (?, ?, ?, ?, ?)", .blob(Array(topic.utf8)), .blob(token),
        .integer(Int64(bitPattern: device)), .integer(Int64(bitPattern: generation)),
        retiredAt.map { .integer($0) } ?? .null)
    case .sent(let number, let sequence):
      try database.run(
        "UPDATE notification SET sequence = ? WHERE number = ?", .integer(Int64(clamping: sequence)),
        .integer(Int64(clamping: number)))
    case .settled(let number):
      try database.run("DELETE FROM notification WHERE number = ?", .integer(Int64(clamping: number)))
    }
  }

  // MARK: reading

  /// A token of an earlier run.
  struct App: Sendable {
    let topic: String
    let token: [UInt8]
    let device: UInt64
    let generation: UInt64
    let retiredAt: Int64?
  }

  /// A notification of an earlier run, and the sequence that it was sent with.
  struct Kept: Sendable {
    let topic: String
    let token: [UInt8]
    let held: HeldNotification
    let sequence: UInt64?
  }

  /// Hands out all tokens, and then all notifications in the order in which they were accepted.
  func forEach(
    app: @Sendable (App) -> Void, notification: @Sendable (Kept) -> Void
  ) throws(SimulatorError) {
    try perform { database in
      try database.forEachRow("SELECT topic, token, device, generation, retired FROM app") { row in
        guard let topic = row[0].blob, let token = row[1].blob, let device = row[2].integer,
          let generation = row[3].integer
        else { return }
        app(
          App(
            topic: String(decoding: topic, as: UTF8.self), token: token, device: UInt64(bitPattern: device),
            generation: UInt64(bitPattern: generation), retiredAt: row[4].integer))
      }
      try database.forEachRow("SELECT * FROM notification ORDER BY number") { row in
        if let kept = Self.kept(row) { notification(kept) }
      }
    }
  }

  private static func kept(_ row: SQLRow) -> Kept? {
    guard let number = row[0].integer, let topic = row[1].blob, let token = row[2].blob, let payload = row[3].blob,
      let priority = row[4].integer, let collapseID = row[7].blob, let background = row[8].integer,
      let sent = row[9].integer, let lastMoment = row[10].integer, let released = row[11].integer
    else { return nil }
    let held = HeldNotification(
      number: UInt64(clamping: number), origin: .init(), payload: payload, priority: UInt8(clamping: priority),
      pushType: row[5].text, expiration: row[6].integer.map { UInt32(clamping: $0) }, collapseID: collapseID,
      isBackground: background != 0, sent: sent, lastMoment: lastMoment, releasedAt: released)
    return Kept(
      topic: String(decoding: topic, as: UTF8.self), token: token, held: held,
      sequence: row[12].integer.map { UInt64(clamping: $0) })
  }

  /// Closes the file; what comes later fails.
  func close() { database.close() }
}
