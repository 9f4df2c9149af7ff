import APNSProtocol
import Bytes
import PacketCapture

/// Writes selected fields of records, and their type, as JSON Lines. Records with none of the fields are omitted.
public final class JSONSomeFieldsWriter: RecordSink {
  private static let flushThreshold = 1 << 17
  private var fields: SelectedFieldWriter<JSONFieldWriter>
  private let output: RecordOutput
  private var fates: FateLookup
  private var verdicts: PayloadVerdicts?
  /// The output has accepted everything so far.
  public private(set) var isOpen = true

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  public init(
    _ selection: FieldSelection, fates: FateNotation = .omitted, judging: PayloadJudging? = nil,
    output: @escaping RecordOutput
  ) {
    fields = SelectedFieldWriter(JSONFieldWriter(capacity: Self.flushThreshold + 1 << 16), selection)
    self.output = output
    self.fates = FateLookup(fates)
    verdicts = judging.map { PayloadVerdicts($0) }
  }

  public func pause() { flush() }

  public func presented(subject: String, connection: Int) { verdicts?.note(subject: subject, of: connection) }

  public func ended(connection: Int) { verdicts?.noteEnd(of: connection) }

  public func receive(_ record: CaptureRecord) { write { record.write(to: &$0) } }
  public func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let fate = fates.fate(of: index, on: place.connection)
    let verdict = verdicts?.verdict(layout, frame, place)
    let record = NotificationRecord(layout, frame, at: place, index: index, fate: fate, verdict: verdict)
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
  public func receive(_ record: FateRecord) { if fates.writes(record) { write { record.write(to: &$0) } } }
  public func receive(_ record: borrowing FeedbackRecord) {
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(_ record: GapRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: CaptureLossRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: MalformedRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: ConnectionRecord) {
    ended(connection: record.connection)
    write { record.write(to: &$0) }
  }
  public func receive(_ record: SummaryRecord) { write { record.write(to: &$0) } }

  private func write(_ body: (inout SelectedFieldWriter<JSONFieldWriter>) -> Void) {
    let start = fields.base.output.count
    body(&fields)
    keep(from: start)
  }

  /// Removes a record with none of the fields again.
  private func keep(from start: Int) {
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= Self.flushThreshold { flush() }
  }

  /// Passes everything written to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}

/// Writes selected fields of records as columns of CSV, or separated by tabs. Records with none of the fields are omitted.
public final class SomeColumnsWriter: RecordSink {
  private static let flushThreshold = 1 << 17
  private var fields: SelectedFieldWriter<CSVFieldWriter>
  private let output: RecordOutput
  private var fates: FateLookup
  private var verdicts: PayloadVerdicts?
  /// The output has accepted everything so far.
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
        columns: selection.columns(of: type), capacity: Self.flushThreshold + 1 << 16, isTabbed: isTabbed), selection)
    self.output = output
    self.fates = FateLookup(fates)
    verdicts = judging.map { PayloadVerdicts($0) }
  }

  public func pause() { flush() }

  public func presented(subject: String, connection: Int) { verdicts?.note(subject: subject, of: connection) }

  public func ended(connection: Int) { verdicts?.noteEnd(of: connection) }

  public func receive(_ record: CaptureRecord) { write { record.write(to: &$0) } }
  public func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let fate = fates.fate(of: index, on: place.connection)
    let verdict = verdicts?.verdict(layout, frame, place)
    let record = NotificationRecord(layout, frame, at: place, index: index, fate: fate, verdict: verdict)
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
  public func receive(_ record: FateRecord) { if fates.writes(record) { write { record.write(to: &$0) } } }
  public func receive(_ record: borrowing FeedbackRecord) {
    let start = fields.base.output.count
    record.write(to: &fields)
    keep(from: start)
  }
  public func receive(_ record: GapRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: CaptureLossRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: MalformedRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: ConnectionRecord) {
    ended(connection: record.connection)
    write { record.write(to: &$0) }
  }
  public func receive(_ record: SummaryRecord) { write { record.write(to: &$0) } }

  private func write(_ body: (inout SelectedFieldWriter<CSVFieldWriter>) -> Void) {
    let start = fields.base.output.count
    body(&fields)
    keep(from: start)
  }

  /// Removes a record with none of the fields again.
  private func keep(from start: Int) {
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= Self.flushThreshold { flush() }
  }

  /// Passes everything written to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}
