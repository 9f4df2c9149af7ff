import BinaryProtocol
import Bytes
import PacketCapture
import Records

/// The sink of the dissector's records, and the totals of these records.
struct RecordEmitter {
  /// An existential, so that this module is compiled for one type: the dynamic call is one for each piece of a stream.
  var sink: any RecordSink
  var summary = SummaryRecord()

  init(sink: any RecordSink) { self.sink = sink }

  /// Adds the counts of a client stream.
  mutating func add(_ counted: SummaryRecord) {
    summary.notifications += counted.notifications
    summary.malformed += counted.malformed
    summary.gaps += counted.gaps
  }

  /// Emits the record of bytes that were skipped.
  @inline(never)
  mutating func report(_ damage: StreamDamage<CapturePosition>, _ direction: Direction, _ connection: Int) {
    let place = RecordPlace(
      connection: connection, time: damage.mark.time, packet: damage.mark.packet, offset: damage.offset,
      length: damage.length)
    switch damage.cause {
    case .beforeStart: receive(GapRecord(place: place, direction: direction, reason: .beforeCapture))
    case .streamEnd: receive(GapRecord(place: place, direction: direction, reason: .captureEnd))
    case .cut:
      receive(
        MalformedRecord(
          place: place, direction: direction, problem: "part of a record that a gap cut", bytes: damage.bytes))
    case .dropped: receive(GapRecord(place: place, direction: direction, reason: .givenUp))
    case .malformed(let problem):
      receive(
        MalformedRecord(place: place, direction: direction, problem: problem.description, bytes: damage.bytes))
    }
  }

  mutating func receive(_ gap: GapRecord) {
    summary.gaps += 1
    sink.receive(gap)
  }

  mutating func receive(_ malformed: MalformedRecord) {
    summary.malformed += 1
    sink.receive(malformed)
  }
}
