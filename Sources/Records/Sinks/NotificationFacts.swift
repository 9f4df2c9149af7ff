import BinaryProtocol
import Bytes
import Payload
import PushModel

/// What writers add to a notification beyond its frame: its fate and verdict.
struct NotificationFacts: Sendable {
  private var fates: FateLookup
  private var verdicts: PayloadVerdicts?

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  init(_ notation: FateNotation, _ judging: PayloadJudging?) {
    fates = FateLookup(notation)
    verdicts = judging.map { PayloadVerdicts($0) }
  }

  /// Returns both in one call: each access to a property of a writer, which is a class, is checked at run time.
  @inline(__always)
  mutating func of(
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int
  ) -> (fate: Fate?, verdict: PayloadVerdict?) {
    (fates.fate(of: index, on: place.connection), verdicts?.verdict(fields, frame, place))
  }

  mutating func of(_ record: borrowing ProviderNotificationRecord) -> (NotificationOutcome?, PayloadVerdict?) {
    (fates.outcome(of: record.index, on: record.place.connection), verdicts?.verdict(record))
  }

  mutating func fate(of notification: Int, on connection: Int) -> Fate? {
    fates.fate(of: notification, on: connection)
  }

  func writes(_ record: FateRecord) -> Bool { fates.writes(record) }
  mutating func receiveEarly(_ record: FateRecord) { fates.receiveEarly(record) }

  mutating func note(subject: String, of connection: Int) { verdicts?.note(subject: subject, of: connection) }
  mutating func noteEnd(of connection: Int) {
    verdicts?.noteEnd(of: connection)
    fates.noteEnd(of: connection)
  }

  /// The facts about connections that writers of other threads need.
  var knowledge: LaneKnowledge {
    var knowledge = LaneKnowledge()
    knowledge.topics = verdicts?.topics
    return knowledge
  }

  /// Takes the facts about connections of another instance.
  mutating func take(_ knowledge: LaneKnowledge) {
    if let topics = knowledge.topics { verdicts?.take(topics) }
  }
}
