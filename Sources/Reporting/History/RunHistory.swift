import Bytes
import Glibc
import Measurement
import SQLite

/// Results of many runs in one SQLite file: each row has the main figures as columns, and the whole document.
///
/// Table `run` has one row per run: `id`, `kind` (load, capacity, simulate), `started`, `apnscope`, `host`, `command`, the
/// figures of `RunFigure.all`, `RunFigure.ofLedgers` and `sustained_per_s` as REAL (times in microseconds), and `document`, the JSON. Any
/// SQLite program can read it; several processes may append at the same time.
public final class RunHistory: Sendable {
  /// "apnh" in the header identifies the file as a history.
  private static let applicationID: Int32 = 0x6170_6e68
  private static let version: Int64 = 1
  /// Milliseconds that an append waits for another one.
  private static let patience: Int32 = 5_000

  let database: SQLDatabase
  private let path: String

  /// A row of the history.
  public struct Run: Sendable, Equatable {
    /// The run's number, from 1, in the order in which runs were appended.
    public var number: Int
    /// `load`, `capacity` or `simulate`.
    public var kind: String
    /// The time of the start: UTC, RFC 3339.
    public var started: String
    /// The version that made the result.
    public var apnscope: String
    /// The host on which the run was made.
    public var host: String
    /// The command line of the run.
    public var command: String
    /// The figures of the run by name; times in microseconds.
    public var figures: [String: Double]
    /// The labels of the run: `branch=main host=a`; empty without any.
    public var labels: String
    /// The plan of the run as JSON; empty without one.
    public var plan: String
    /// Whether the run was interrupted.
    public var wasInterrupted: Bool
    /// The method by which the figures were computed, as in `RunResult.measuredBy`.
    public var measuredBy: Int?

    package init(
      number: Int, kind: String, started: String, apnscope: String, host: String, command: String,
      figures: [String: Double], labels: String = "", plan: String = "", wasInterrupted: Bool = false,
      measuredBy: Int? = RunResult.currentMeasure
    ) {
      self.number = number
      self.kind = kind
      self.started = started
      self.apnscope = apnscope
      self.host = host
      self.command = command
      self.figures = figures
      (self.labels, self.plan) = (labels, plan)
      self.wasInterrupted = wasInterrupted
      self.measuredBy = measuredBy
    }

    /// Whether it is a load whose figures were computed differently from this version's.
    package var hasOldMeasure: Bool { kind == "load" && measuredBy != RunResult.currentMeasure }

    /// The kind, with remarks needed to interpret its figures.
    package var kindAndState: String {
      kind + (wasInterrupted ? ", interrupted" : "") + (hasOldMeasure ? ", old measure" : "")
    }
  }

  /// The names of figures that a history has columns for.
  package static let figureNames = RunFigure.all.map(\.name) + ["sustained_per_s"] + RunFigure.ofLedgers.map(\.name)

  /// Opens a history to append to, and creates the file if missing.
  public init(appendingTo path: String) throws(HistoryError) {
    try Self.check(path, creating: true)
    self.path = path
    database = try Self.open(path, .readWrite) { database in
      try database.transaction(.immediate) { try Self.prepare(database, path) }
    }
  }

  /// Opens an existing history read-only.
  public init(reading path: String) throws(HistoryError) {
    try Self.check(path, creating: false)
    self.path = path
    database = try Self.open(path, .readOnly) { try Self.checkVersion(Self.version(of: $0), path) }
  }

  // MARK: opening

  private static func open(
    _ path: String, _ access: SQLConnection.Access, _ prepare: @Sendable (SQLConnection) throws -> Void
  ) throws(HistoryError) -> SQLDatabase {
    do {
      let database = try SQLDatabase(path: path, access: access, patience: patience, label: "apnscope.history")
      try database.perform(prepare)
      return database
    } catch {
      throw HistoryError(error, file: path)
    }
  }

  /// Looks whose file it is before SQLite does.
  private static func check(_ path: String, creating: Bool) throws(HistoryError) {
    let descriptor = unsafe Glibc.open(
      path, (creating ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NONBLOCK, 0o644)
    guard descriptor >= 0 else { throw HistoryError(.cannotOpen, path, SystemError.text(errno)) }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw HistoryError(.cannotOpen, path, SystemError.text(errno))
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw HistoryError(.cannotOpen, path, "is not a regular file") }
    // | "SQLite format 3\0" | … | 60: user version u32 | 64 | 68: application id u32 | … 100
    var header = [UInt8](repeating: 0, count: 100)
    // Safe: `pread` writes at most the buffer's length.
    let count = unsafe header.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count >= 0 else { throw HistoryError(.cannotOpen, path, SystemError.text(errno)) }
    if count == 0, creating { return }
    let isOurs =
      count == header.count && header.starts(with: Array("SQLite format 3\0".utf8))
      && header.rawBytes.uint32(at: 68) == UInt32(bitPattern: applicationID)
    guard isOurs else { throw HistoryError(.notAHistory, path, "is not a history of apnscope") }
  }

  private static func version(of database: SQLConnection) throws -> Int64 {
    try database.value("PRAGMA user_version").integer ?? 0
  }

  private static func checkVersion(_ found: Int64, _ path: String) throws(HistoryError) {
    if found > version {
      throw HistoryError(
        .newerSchema, path, "is a history of version \(found); this apnscope reads version \(version)")
    }
  }

  /// Makes the table, or adds the columns of figures that are newer than the file.
  private static func prepare(_ database: SQLConnection, _ path: String) throws {
    let found = try version(of: database)
    try checkVersion(found, path)
    if found == 0 {
      try database.execute(
        """
        CREATE TABLE run (
          id INTEGER PRIMARY KEY,
          kind TEXT NOT NULL,
          started TEXT NOT NULL,
          apnscope TEXT NOT NULL,
          host TEXT NOT NULL,
          command TEXT NOT NULL,
          document TEXT NOT NULL
        );
        PRAGMA application_id = \(applicationID);
        PRAGMA user_version = \(version);
        """)
    }
    var columns: Set<String> = []
    try database.forEachRow("SELECT name FROM pragma_table_info('run')") { row in
      if let name = row[0].text { columns.insert(name) }
    }
    for name in figureNames where !columns.contains(name) {
      try database.execute("ALTER TABLE run ADD COLUMN \(name) REAL")
    }
  }

  // MARK: appending

  /// Appends the result of a load. Other processes may append at the same time.
  ///
  /// - Parameters:
  ///   - result: gives the row's figures.
  ///   - document: the result as JSON.
  public func append(_ result: RunResult, document: String) throws(HistoryError) {
    var figures: [String: Double] = [:]
    for figure in RunFigure.all { figures[figure.name] = figure.value(result) }
    try append(result.kind, result.started, result.environment, figures, document)
  }

  /// Appends the result of a search for capacity, likewise.
  public func append(_ result: CapacityDocument, document: String) throws(HistoryError) {
    let figures = result.sustainedPerS.map { ["sustained_per_s": $0] } ?? [:]
    try append(result.kind, result.started, result.environment, figures, document)
  }

  /// Appends the ledger of a simulator, likewise.
  ///
  /// - Parameter environment: of the simulator, which the ledger does not have.
  public func append(_ ledger: Ledger, of environment: Environment, document: String) throws(HistoryError) {
    var figures: [String: Double] = [:]
    for figure in RunFigure.ofLedgers { figures[figure.name] = figure.value(ledger) }
    try append(ledger.kind, ledger.started, environment, figures, document)
  }

  private func append(
    _ kind: String, _ started: String, _ environment: Environment, _ figures: [String: Double], _ document: String
  ) throws(HistoryError) {
    // The names are constants of this program, never input.
    let names = figures.keys.sorted()
    let columns = ["kind", "started", "apnscope", "host", "command", "document"] + names
    let texts = [
      kind, started, environment.apnscope, environment.host, environment.command.joined(separator: " "), document,
    ]
    let values = texts.map { SQLValue.text($0) } + names.map { SQLValue(figures[$0]) }
    let sql =
      "INSERT INTO run (\(columns.joined(separator: ", "))) VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))"
    do {
      try database.perform { database in try database.transaction(.immediate) { try database.run(sql, values) } }
    } catch {
      throw HistoryError(error, file: path)
    }
  }

  // MARK: reading

  /// Whether figures of the same name were computed in different ways.
  package static func mixesMeasures(_ runs: [Run]) -> Bool {
    runs.contains(where: \.hasOldMeasure) && runs.contains { $0.kind == "load" && !$0.hasOldMeasure }
  }

  package static let noteOnMeasures =
    "old measure: their figures are computed differently; compare them only with each other"

  /// The latest runs, in the order in which they were appended.
  ///
  /// - Parameters:
  ///   - kind: selects the runs of a kind; `nil`: all kinds.
  ///   - last: the maximum number of runs; `nil`: all.
  ///   - labels: selects the runs that have all of these.
  public func runs(kind: String? = nil, last: Int? = nil, labels: [RunLabel] = []) throws(HistoryError) -> [Run] {
    do {
      return try database.perform { database in
        var runs: [Run] = []
        try database.forEachRow(
          """
          SELECT *, CASE WHEN json_valid(document) THEN json_extract(document, '$.interrupted.phase') IS NOT NULL
            OR json_extract(document, '$.ending') = 'interrupted' END AS was_interrupted,
            CASE WHEN json_valid(document) THEN json_extract(document, '$.measured_by') END AS measured_by,
            CASE WHEN json_valid(document) THEN json_extract(document, '$.plan') END AS plan,
            CASE WHEN json_valid(document) THEN (SELECT group_concat(pair, ' ') FROM (
              SELECT key || '=' || value AS pair FROM json_each(document, '$.labels') ORDER BY key)) END AS labels
          FROM run WHERE (?1 IS NULL OR kind = ?1) \(labels.isEmpty ? "" : "AND json_valid(document)")
            \(labels.indices.map { "AND json_extract(document, '$.labels.' || ?\(2 * $0 + 3)) = ?\(2 * $0 + 4)" }.joined(separator: " "))
          ORDER BY id DESC LIMIT ?2
          """,
          [SQLValue(kind), SQLValue(last ?? -1)] + labels.flatMap { [SQLValue($0.name), SQLValue($0.value)] }
        ) { runs.append(Self.run($0)) }
        return runs.reversed()
      }
    } catch {
      throw HistoryError(error, file: path)
    }
  }

  /// A column that is missing, or was given a value of another type by another program, has no value.
  private static func run(_ row: SQLRow) -> Run {
    var figures: [String: Double] = [:]
    for name in figureNames { figures[name] = row[name].real }
    func text(_ name: String) -> String { row[name].text ?? "" }
    return Run(
      number: row["id"].integer.map(Int.init) ?? 0, kind: text("kind"), started: text("started"),
      apnscope: text("apnscope"), host: text("host"), command: text("command"), figures: figures,
      labels: text("labels"), plan: text("plan"), wasInterrupted: row["was_interrupted"].integer == 1,
      measuredBy: row["measured_by"].integer.map(Int.init))
  }

  /// The document of the run with this number, as JSON; `nil` if the run does not exist.
  public func document(_ number: Int) throws(HistoryError) -> String? {
    do {
      return try database.perform { try $0.value("SELECT document FROM run WHERE id = ?", SQLValue(number)).text }
    } catch {
      throw HistoryError(error, file: path)
    }
  }
}
