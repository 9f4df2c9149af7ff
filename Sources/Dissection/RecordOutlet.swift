import APNSProtocol
import Bytes
import PacketCapture

/// Where the dissector's records go, and the totals over them.
struct RecordOutlet<Sink: RecordSink> {
  /// Bytes of a malformed region that a record shows.
  private static var shownBytes: Int { 64 }

  var sink: Sink
  var summary = SummaryRecord()

  init(sink: Sink) { self.sink = sink }

  /// A record whose inside is no good.
  @inline(never)
  mutating func report(
    malformed problem: ParseError.Problem, _ bytes: RawSpan, at offset: Int, _ mark: Mark, _ connection: Int
  ) {
    let shown = Array(copying: bytes.extracting(0..<min(Self.shownBytes, bytes.byteCount)))
    let damage = Damage(
      cause: .malformed(problem), offset: offset, length: bytes.byteCount, bytes: shown, mark: mark)
    report(damage, .client, connection)
  }

  /// Bytes that were passed over.
  @inline(never)
  mutating func report(_ damage: Damage, _ direction: Direction, _ connection: Int) {
    let place = RecordPlace(
      connection: connection, time: damage.mark.time, packet: damage.mark.packet, offset: damage.offset,
      length: damage.length)
    switch damage.cause {
    case .beforeCapture: receive(GapRecord(place: place, direction: direction, reason: .beforeCapture))
    case .captureEnd: receive(GapRecord(place: place, direction: direction, reason: .captureEnd))
    case .cut:
      receive(
        MalformedRecord(
          place: place, direction: direction, problem: "part of a record that a gap cut", bytes: damage.bytes))
    case .malformed(let problem):
      receive(
        MalformedRecord(place: place, direction: direction, problem: problem.description, bytes: damage.bytes))
    }
  }

  mutating func receive(_ gap: GapRecord) {
    summary.gaps += 1
    sink.receive(gap)
  }

  private mutating func receive(_ malformed: MalformedRecord) {
    summary.malformed += 1
    sink.receive(malformed)
  }
}
