import APNSProtocol
import Bytes
import PacketCapture

/// Where written records go. It returns `false` when nothing more can be written.
public typealias RecordOutput = (RawSpan) -> Bool

/// Writes records as JSON Lines.
public final class JSONLinesWriter: RecordSink {
  private static let flushThreshold = 1 << 17
  private var fields = JSONFieldWriter(capacity: flushThreshold + 1 << 16)
  private let output: RecordOutput
  private var fates: FateLookup
  private var verdicts: PayloadVerdicts?
  /// The output took everything so far.
  public private(set) var isOpen = true

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  public init(fates: FateNotation = .omitted, judging: PayloadJudging? = nil, output: @escaping RecordOutput) {
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
    record.write(to: &fields)
    if fields.output.count >= Self.flushThreshold { flush() }
  }
  public func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let fate = fates.fate(of: index, on: place.connection)
    let record = NotificationRecord(layout, frame, at: place, index: index, problem: problem, fate: fate)
    record.write(to: &fields)
    if fields.output.count >= Self.flushThreshold { flush() }
  }
  public func receive(_ record: ErrorResponseRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: FateRecord) { if fates.writes(record) { write { record.write(to: &$0) } } }
  public func receive(_ record: borrowing FeedbackRecord) {
    record.write(to: &fields)
    if fields.output.count >= Self.flushThreshold { flush() }
  }
  public func receive(_ record: GapRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: MalformedRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: CaptureLossRecord) { write { record.write(to: &$0) } }
  public func receive(_ record: ConnectionRecord) {
    ended(connection: record.connection)
    write { record.write(to: &$0) }
  }
  public func receive(_ record: SummaryRecord) { write { record.write(to: &$0) } }

  private func write(_ body: (inout JSONFieldWriter) -> Void) {
    body(&fields)
    if fields.output.count >= Self.flushThreshold { flush() }
  }

  /// Hands everything written to the output.
  public func flush() {
    if isOpen && fields.output.count > 0 { isOpen = output(fields.output.bytes) }
    fields.output.removeAll()
  }
}
