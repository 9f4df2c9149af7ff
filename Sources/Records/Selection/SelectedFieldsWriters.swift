import BinaryProtocol
import Bytes
import PacketCapture

/// Writes the type and the selected fields of records as JSON Lines. Records with none of the fields are omitted.
public final class JSONSomeFieldsWriter: RecordSerializer {
  private var fields: SelectedFieldWriter<JSONFieldWriter>
  private let output: RecordOutput
  private let flushThreshold: Int
  var facts: NotificationFacts
  /// Whether the output has accepted everything so far.
  public private(set) var isOpen = true

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  public init(
    _ selection: FieldSelection, fates: FateNotation = .omitted, judging: PayloadJudging? = nil,
    output: @escaping RecordOutput
  ) {
    fields = SelectedFieldWriter(JSONFieldWriter(capacity: WriterBuffer.capacity), selection)
    self.output = output
    flushThreshold = WriterBuffer.threshold
    facts = NotificationFacts(fates, judging)
  }

  private init(
    _ fields: consuming SelectedFieldWriter<JSONFieldWriter>, _ facts: NotificationFacts
  ) {
    self.fields = fields
    self.facts = facts
    flushThreshold = .max
    output = { _ in true }
  }

  func makeLaneWriter() -> sending any RecordSerializer {
    JSONSomeFieldsWriter(
      SelectedFieldWriter(JSONFieldWriter(capacity: WriterBuffer.capacity), fields.fields), facts)
  }
  var renderedCount: Int { fields.base.output.count }
  package func exchange(_ rendered: inout ByteWriter) { swap(&fields.base.output, &rendered) }

  package func put(rendered: RawSpan) {
    fields.base.output.write(rendered)
    if fields.base.output.count >= flushThreshold { flush() }
  }

  /// A record with none of the fields is removed again.
  @inline(__always)
  func put(_ record: borrowing some WritableRecord & ~Escapable) {
    let start = fields.base.output.count
    record.write(to: &fields)
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= flushThreshold { flush() }
  }

  /// Passes what is buffered to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}

/// Writes selected fields of records as columns of CSV, or separated by tabs. Records with none of the fields are omitted.
public final class SomeColumnsWriter: RecordSerializer {
  private var fields: SelectedFieldWriter<CSVFieldWriter>
  private let output: RecordOutput
  private let flushThreshold: Int
  var facts: NotificationFacts
  /// Whether the output has accepted everything so far.
  public private(set) var isOpen = true

  /// - Parameters:
  ///   - type: the only type of the records; `nil`: all types.
  ///   - judging: how payloads are judged; `nil`: not at all.
  public init(
    _ selection: FieldSelection, of type: RecordType? = nil, isTabbed: Bool = false, fates: FateNotation = .omitted,
    judging: PayloadJudging? = nil, output: @escaping RecordOutput
  ) {
    fields = SelectedFieldWriter(
      CSVFieldWriter(
        columns: selection.columns(of: type), capacity: WriterBuffer.capacity, isTabbed: isTabbed,
        isOfOneType: type != nil), selection)
    self.output = output
    flushThreshold = WriterBuffer.threshold
    facts = NotificationFacts(fates, judging)
  }

  private init(
    _ fields: consuming SelectedFieldWriter<CSVFieldWriter>, _ facts: NotificationFacts
  ) {
    self.fields = fields
    self.facts = facts
    flushThreshold = .max
    output = { _ in true }
  }

  func makeLaneWriter() -> sending any RecordSerializer {
    SomeColumnsWriter(
      SelectedFieldWriter(fields.base.emptyCopy(capacity: WriterBuffer.capacity), fields.fields), facts)
  }
  var renderedCount: Int { fields.base.output.count }
  package func exchange(_ rendered: inout ByteWriter) { swap(&fields.base.output, &rendered) }

  package func put(rendered: RawSpan) {
    fields.base.output.write(rendered)
    if fields.base.output.count >= flushThreshold { flush() }
  }

  /// A record with none of the fields is removed again.
  @inline(__always)
  func put(_ record: borrowing some WritableRecord & ~Escapable) {
    let start = fields.base.output.count
    record.write(to: &fields)
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= flushThreshold { flush() }
  }

  /// Passes what is buffered to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}
