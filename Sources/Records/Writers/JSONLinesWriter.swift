import BinaryProtocol
import Bytes
import PacketCapture

/// Takes the bytes of written records, which are valid during the call; returns `false` when nothing more can be
/// written.
public typealias RecordOutput = (RawSpan) -> Bool

/// Writes records as JSON Lines.
public final class JSONLinesWriter: RecordSerializer {
  private var fields = JSONFieldWriter(capacity: WriterBuffer.capacity)
  private let flushThreshold: Int
  private let output: RecordOutput
  var facts: NotificationFacts
  /// Whether the output has accepted everything so far.
  public private(set) var isOpen = true

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  public convenience init(
    fates: FateNotation = .omitted, judging: PayloadJudging? = nil, output: @escaping RecordOutput
  ) {
    self.init(NotificationFacts(fates, judging), WriterBuffer.threshold, output)
  }

  private init(_ facts: NotificationFacts, _ threshold: Int, _ output: @escaping RecordOutput) {
    (self.facts, flushThreshold, self.output) = (facts, threshold, output)
  }

  func makeLaneWriter() -> sending any RecordSerializer { JSONLinesWriter(facts, .max) { _ in true } }
  var renderedCount: Int { fields.output.count }
  package func exchange(_ rendered: inout ByteWriter) { swap(&fields.output, &rendered) }

  package func put(rendered: RawSpan) {
    fields.output.write(rendered)
    if fields.output.count >= flushThreshold { flush() }
  }

  @inline(__always)
  func put(_ record: borrowing some WritableRecord & ~Escapable) {
    if fields.add(record) >= flushThreshold { flush() }
  }

  /// Passes what is buffered to the output.
  public func flush() {
    if isOpen && fields.output.count > 0 { isOpen = output(fields.output.bytes) }
    fields.output.removeAll()
  }
}
