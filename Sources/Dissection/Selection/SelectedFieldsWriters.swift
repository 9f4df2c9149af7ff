import APNSProtocol
import Bytes
import PacketCapture

/// Writes selected fields of records, and their type, as JSON Lines. Records with none of the fields are omitted.
public final class JSONSomeFieldsWriter: RecordSerializer {
  private static let flushThreshold = 1 << 17
  private var fields: SelectedFieldWriter<JSONFieldWriter>
  private let output: RecordOutput
  var fates: FateLookup
  var verdicts: PayloadVerdicts?
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

  /// A record with none of the fields is removed again.
  @inline(__always)
  func put(_ record: borrowing some WritableRecord & ~Escapable) {
    let start = fields.base.output.count
    record.write(to: &fields)
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
public final class SomeColumnsWriter: RecordSerializer {
  private static let flushThreshold = 1 << 17
  private var fields: SelectedFieldWriter<CSVFieldWriter>
  private let output: RecordOutput
  var fates: FateLookup
  var verdicts: PayloadVerdicts?
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

  /// A record with none of the fields is removed again.
  @inline(__always)
  func put(_ record: borrowing some WritableRecord & ~Escapable) {
    let start = fields.base.output.count
    record.write(to: &fields)
    if fields.isEmpty { fields.base.output.truncate(to: start) }
    if fields.base.output.count >= Self.flushThreshold { flush() }
  }

  /// Passes everything written to the output.
  public func flush() {
    if isOpen && fields.base.output.count > 0 { isOpen = output(fields.base.output.bytes) }
    fields.base.output.removeAll()
  }
}
