import APNSProtocol
import Bytes
import PacketCapture

/// Writes some fields of records as JSON Lines; `type` is always one. Records with none of the others are left out.
public final class JSONSomeFieldsWriter: RecordSink {
  private static let flushThreshold = 1 << 17
  private var fields: SelectedFieldWriter<JSONFieldWriter>
  private let output: RecordOutput
  private var fates: FateNotes
  /// The output took everything so far.
  public private(set) var isOpen = true

  public init(_ selection: FieldSelection, fates: FateNotation = .omitted, output: @escaping RecordOutput) {
    fields = SelectedFieldWriter(JSONFieldWriter(capacity: Self.flushThreshold + 1 << 16), selection)
    self.output = output
    self.fates = FateNotes(fates)
  }

  public func pause() { flush() }

  public func receive(_ record: CaptureRecord) { write { record.write(to: &$0) } }
  public func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let fate = fates.fate(of: index, on: place.connection)
    let record = NotificationRecord(layout, frame, at: place, index: index, fate: fate)
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let fate = fates.fate(of: index, on: place.connection)
    let record = NotificationRecord(layout, frame, at: place, index: index, problem: problem, fate: fate)
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(_ record: ErrorResponseRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: FateRecord) { if fates.areToldBy(record) { write { record.write(to: &$0) } } }
  public func receive(_ record: borrowing FeedbackRecord) {
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(_ record: GapRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: MalformedRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: ConnectionRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: SummaryRecord) { write { record.write(to: &$0) } }

  private func write(_ body: (inout SelectedFieldWriter<JSONFieldWriter>) -> Void) {
    let start = fields.base.output.count
    body(&fields)
    keep(from: start)
  }

  /// A record with none of the fields is not written.
  private func keep(from start: Int) {
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= Self.flushThreshold { flush() }
  }

  /// Hands everything written to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}

/// Writes some fields of records as columns: CSV, or parted by tabs for people. Records with none of them are left out.
public final class SomeColumnsWriter: RecordSink {
  private static let flushThreshold = 1 << 17
  private var fields: SelectedFieldWriter<CSVFieldWriter>
  private let output: RecordOutput
  private var fates: FateNotes
  /// The output took everything so far.
  public private(set) var isOpen = true

  public init(
    _ selection: FieldSelection, isTabbed: Bool = false, fates: FateNotation = .omitted,
    output: @escaping RecordOutput
  ) {
    fields = SelectedFieldWriter(
      CSVFieldWriter(columns: selection.columns, capacity: Self.flushThreshold + 1 << 16, isTabbed: isTabbed), selection
    )
    self.output = output
    self.fates = FateNotes(fates)
  }

  public func pause() { flush() }

  public func receive(_ record: CaptureRecord) { write { record.write(to: &$0) } }
  public func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let fate = fates.fate(of: index, on: place.connection)
    let record = NotificationRecord(layout, frame, at: place, index: index, fate: fate)
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let fate = fates.fate(of: index, on: place.connection)
    let record = NotificationRecord(layout, frame, at: place, index: index, problem: problem, fate: fate)
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(_ record: ErrorResponseRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: FateRecord) { if fates.areToldBy(record) { write { record.write(to: &$0) } } }
  public func receive(_ record: borrowing FeedbackRecord) {
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(_ record: GapRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: MalformedRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: ConnectionRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: SummaryRecord) { write { record.write(to: &$0) } }

  private func write(_ body: (inout SelectedFieldWriter<CSVFieldWriter>) -> Void) {
    let start = fields.base.output.count
    body(&fields)
    keep(from: start)
  }

  /// A record with none of the fields is not written.
  private func keep(from start: Int) {
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= Self.flushThreshold { flush() }
  }

  /// Hands everything written to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}
