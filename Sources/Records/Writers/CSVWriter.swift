import BinaryProtocol
import Bytes
import PacketCapture

/// Writes records as CSV: all types into one file with every column, or each type into a separate file.
public final class CSVWriter: RecordSerializer {
  /// The writer of one file; a class, because a dictionary cannot hold the non-copyable `CSVFieldWriter`.
  private final class Table {
    var fields: CSVFieldWriter
    let output: RecordOutput
    var isOpen = true

    init(of type: RecordType? = nil, _ output: @escaping RecordOutput) {
      fields = CSVFieldWriter(
        columns: RecordField.names(of: type), capacity: WriterBuffer.capacity, isOfOneType: type != nil)
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
    let table = Table(output)
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
      tables[type] = Table(of: type, try file(type))
    }
    notifications = Table(of: .notification, try file(.notification))
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
  package func exchange(_ rendered: inout ByteWriter) { swap(&notifications.fields.output, &rendered) }

  package func put(rendered: RawSpan) {
    notifications.fields.output.write(rendered)
    if notifications.fields.output.count >= flushThreshold { notifications.flush() }
  }

  /// Whether every output has accepted everything so far.
  public var isOpen: Bool { tables.values.allSatisfy(\.isOpen) }

  /// Passes what is buffered to the output.
  public func flush() { for table in tables.values { table.flush() } }

  @inline(__always)
  func put<Record: WritableRecord & ~Escapable>(_ record: borrowing Record) {
    guard let table = Record.type == .notification ? notifications : tables[Record.type] else { return }
    if table.fields.add(record) >= flushThreshold { table.flush() }
  }
}
