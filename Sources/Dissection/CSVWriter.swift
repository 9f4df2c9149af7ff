import BinaryProtocol
import Bytes
import PacketCapture

/// Writes records as CSV: all types into one file with every column, or each type into a separate file.
public final class CSVWriter: RecordSerializer {
  /// One file's writer; a class, because the non-copyable writer has to live in a dictionary.
  private final class Table {
    var fields: CSVFieldWriter
    let output: RecordOutput
    var isOpen = true

    init(_ columns: [StaticString], _ output: @escaping RecordOutput) {
      fields = CSVFieldWriter(columns: columns, capacity: WriterBuffer.capacity)
      self.output = output
    }

    /// Writes columns without a header.
    init(_ fields: consuming CSVFieldWriter) {
      self.fields = fields
      output = { _ in true }
    }

    func flush() {
      if isOpen && fields.output.count > 0 { isOpen = output(fields.output.bytes) }
      fields.output.removeAll()
    }
  }

  private let tables: [RecordType: Table]
  /// The entry of `tables` that holds notifications, which are most records.
  private let notifications: Table
  private let flushThreshold: Int
  var facts: NotificationFacts

  /// Writes every type into one file.
  ///
  /// - Parameter judging: how payloads are judged; `nil`: they are not.
  public init(fates: FateNotation = .omitted, judging: PayloadJudging? = nil, output: @escaping RecordOutput) {
    facts = NotificationFacts(fates, judging)
    let table = Table(CSVFieldWriter.allColumns, output)
    tables = Dictionary(uniqueKeysWithValues: RecordType.allCases.map { ($0, table) })
    notifications = table
    flushThreshold = WriterBuffer.threshold
  }

  /// Writes each type into a separate file; `file` creates the output of one type.
  public init(
    fates: FateNotation = .omitted, judging: PayloadJudging? = nil, files file: (RecordType) throws -> RecordOutput
  ) rethrows {
    facts = NotificationFacts(fates, judging)
    var tables: [RecordType: Table] = [:]
    for type in RecordType.allCases where type != .notification {
      tables[type] = Table(Self.columns(of: type), try file(type))
    }
    notifications = Table(Self.columns(of: .notification), try file(.notification))
    tables[.notification] = notifications
    self.tables = tables
    flushThreshold = WriterBuffer.threshold
  }

  private init(notifications fields: consuming CSVFieldWriter, _ facts: NotificationFacts) {
    self.facts = facts
    notifications = Table(fields)
    tables = [.notification: notifications]
    flushThreshold = .max
  }

  func makeLaneWriter() -> sending any RecordSerializer {
    CSVWriter(notifications: notifications.fields.emptyCopy(capacity: WriterBuffer.capacity), facts)
  }
  var renderedCount: Int { notifications.fields.output.count }
  func exchange(_ rendered: inout ByteWriter) { swap(&notifications.fields.output, &rendered) }

  func put(rendered: RawSpan) {
    notifications.fields.output.write(rendered)
    if notifications.fields.output.count >= flushThreshold { notifications.flush() }
  }

  /// Every output has accepted everything so far.
  public var isOpen: Bool { tables.values.allSatisfy(\.isOpen) }

  /// Passes what is buffered to the output.
  public func flush() { for table in tables.values { table.flush() } }

  @inline(__always)
  func put<Record: WritableRecord & ~Escapable>(_ record: borrowing Record) {
    guard let table = Record.type == .notification ? notifications : tables[Record.type] else { return }
    if table.fields.add(record) >= flushThreshold { table.flush() }
  }

  /// The columns that one type of record uses.
  static func columns(of type: RecordType) -> [StaticString] {
    switch type {
    case .capture: ["type", "schema", "source", "format", "link_types", "selection", "file"]
    case .notification:
      [
        "type", "file", "connection", "index", "time", "packet", "offset", "length", "fate", "command", "identifier",
        "expiration", "priority", "token", "payload_length", "payload", "payload_base64", "kind", "lint", "items",
        "item_order",
        "problem",
      ]
    case .errorResponse:
      [
        "type", "file", "connection", "time", "packet", "offset", "command", "status", "status_name", "identifier",
        "notification", "accepted", "discarded", "latency_ms", "candidates", "ambiguous",
      ]
    case .fate: ["type", "connection", "first", "last", "fate"]
    case .feedback: ["type", "file", "connection", "index", "time", "packet", "offset", "length", "timestamp", "token"]
    case .gap: ["type", "file", "connection", "direction", "time", "packet", "offset", "length", "reason"]
    case .malformed:
      ["type", "file", "connection", "direction", "time", "packet", "offset", "length", "problem", "bytes"]
    case .connection:
      [
        "type", "file", "connection", "flow", "service", "protocol", "preamble", "client", "server", "opened", "closed",
        "end",
        "not_captured", "client_last", "client_until", "tls_version",
        "tls_cipher_suite", "tls_decrypted", "tls_problem", "tls_client_subject", "tls_resumed", "tls_alert",
        "tls_certificate_ends", "tls_environment",
        "client_bytes", "server_bytes", "missing_bytes", "notifications", "error_responses", "feedback_tuples",
        "accepted", "rejected", "discarded", "unknown", "conflicting_bytes", "limits", "also_seen_as",
      ]
    case .captureLoss:
      ["type", "file", "interface", "dropped", "interface_dropped", "os_dropped", "received"]
    case .summary:
      [
        "type", "packets", "connections", "notifications", "error_responses", "feedback_tuples", "gaps", "malformed",
        "undecrypted_connections", "dropped_packets", "unread_packets", "unread",
      ]
    }
  }
}
