import APNSProtocol
import Bytes
import PacketCapture

/// Where written records go. It returns `false` when nothing more can be written.
public typealias RecordOutput = (RawSpan) -> Bool

/// Writes records as JSON Lines.
public final class JSONLinesWriter: RecordSerializer {
  private static let flushThreshold = 1 << 17
  private var fields = JSONFieldWriter(capacity: flushThreshold + 1 << 16)
  private let output: RecordOutput
  var fates: FateLookup
  var verdicts: PayloadVerdicts?
  /// The output took everything so far.
  public private(set) var isOpen = true

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  public init(fates: FateNotation = .omitted, judging: PayloadJudging? = nil, output: @escaping RecordOutput) {
    self.output = output
    self.fates = FateLookup(fates)
    verdicts = judging.map { PayloadVerdicts($0) }
  }

  @inline(__always)
  func put(_ record: borrowing some WritableRecord & ~Escapable) {
    record.write(to: &fields)
    if fields.output.count >= Self.flushThreshold { flush() }
  }

  /// Hands everything written to the output.
  public func flush() {
    if isOpen && fields.output.count > 0 { isOpen = output(fields.output.bytes) }
    fields.output.removeAll()
  }
}
