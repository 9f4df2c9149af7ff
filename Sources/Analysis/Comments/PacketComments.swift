import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import PushModel
import Records

/// Comments at the packets of a recording: notifications that were refused, discarded, malformed or sent again, error
/// responses, and malformed bytes. It is the sink of a second pass, which knows the fates.
///
/// A discarded notification is recognised by its token and payload when it is sent again.
package final class PacketComments: RecordSink {
  /// Notifications and other records that got a comment.
  package private(set) var count = 0
  /// Records without a comment because of the limit.
  package private(set) var omitted = 0
  /// Some fates were not kept by the first pass.
  private var fates: FateLookup
  private let limit: Int

  /// One notification, shown as `#index of connection` at a packet.
  struct Place {
    var connection: Int
    var index: Int
    var packet: Int
  }

  enum Note {
    case rejected(Int)
    /// Consecutive discarded notifications, by their places among `lost`.
    case discarded(Range<Int>)
    /// Consecutive notifications that repeat discarded ones, and the first that is repeated.
    case again(ClosedRange<Int>, of: Place)
    case malformed(String)
    /// The response's index in `responses`.
    case response(Int)
  }

  struct Lost {
    var place: Place
    /// It can be recognised when it is sent again: a malformed or known-bad one cannot.
    var isRecognisable: Bool
    /// The first packet in which it is sent again.
    var again: Int?
  }

  struct Response {
    var response: ErrorResponse
    /// The notification that it names, by index.
    var named: Int?
    /// The numbers of notifications that it discarded, of discarded ones that were sent again, and of recognisable ones
    /// that were not.
    var discarded = 0
    var sentAgain = 0
    var neverAgain = 0
  }

  private struct NotificationKey: Hashable {
    var connection: Int
    var index: Int
  }

  private var notes: [Int: [(connection: Int, note: Note)]] = [:]
  private(set) var lost: [Lost] = []
  /// Discarded notifications that were not sent again yet, by the digest of token and payload.
  private var waiting: [UInt64: [Int]] = [:]
  private(set) var responses: [Response] = []
  /// The index in `responses` of the response that names a notification; and, by connection, of the response that names
  /// the last one.
  private var naming: [NotificationKey: Int] = [:]
  private var lastNaming: [Int: Int] = [:]
  /// The outcomes of the notifications that were discarded on a connection.
  private let losses: [Int: [TraceReport.Stories.Outcome]]

  /// - Parameters:
  ///   - stories: the outcomes of the same recording.
  ///   - limit: the number of records that get a comment.
  package init(fates: FateIndex, stories: TraceReport.Stories, limit: Int) {
    self.fates = FateLookup(.each(fates))
    losses = Dictionary(stories.losses.map { ($0.connection, $0.outcomes) }, uniquingKeysWith: { first, _ in first })
    self.limit = limit
  }

  package var isOpen: Bool { true }

  // MARK: records

  package func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    receive(digest: NotificationIdentity(fields, frame).digest, at: place, index: index)
  }

  package func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    if hasRoom() { add(.malformed("#\(index) is malformed: \(problem)"), at: place) }
    receive(digest: 0, at: place, index: index)
  }

  /// - Parameter digest: of token and payload; 0: it cannot be recognised when it is sent again.
  private func receive(digest: UInt64, at place: RecordPlace, index: Int) {
    let its = Place(connection: place.connection, index: index, packet: place.packet)
    if !waiting.isEmpty, digest != 0 { noteAgain(digest, its, place) }
    switch fates.fate(of: index, on: place.connection) {
    case .rejected where hasRoom():
      add(.rejected(index), at: place)
    case .discarded where hasRoom():
      lost.append(Lost(place: its, isRecognisable: digest != 0))
      if digest != 0 { waiting[digest, default: []].append(lost.count - 1) }
      if case .discarded(let range)? = latest(at: place), lost[range.upperBound - 1].place.index == index - 1 {
        replaceLatest(at: place, with: .discarded(range.lowerBound..<lost.count))
      } else {
        add(.discarded(lost.count - 1..<lost.count), at: place)
      }
    default: break
    }
  }

  private func noteAgain(_ digest: UInt64, _ its: Place, _ place: RecordPlace) {
    guard let numbers = waiting[digest], let number = numbers.first else { return }
    waiting[digest] = numbers.count > 1 ? Array(numbers.dropFirst()) : nil
    lost[number].again = its.packet
    guard hasRoom() else { return }
    let original = lost[number].place
    if case .again(let range, let first)? = latest(at: place), range.upperBound == its.index - 1 {
      replaceLatest(at: place, with: .again(range.lowerBound...its.index, of: first))
    } else {
      add(.again(its.index...its.index, of: original), at: place)
    }
  }

  package func receive(_ record: ErrorResponseRecord) {
    guard hasRoom() else { return }
    let number = responses.count
    responses.append(Response(response: record.response, named: record.notification))
    add(.response(number), at: record.place)
    guard let named = record.notification else { return }
    let connection = record.place.connection
    naming[NotificationKey(connection: connection, index: named)] = number
    // A later response that names a later notification proves that those between were accepted.
    guard record.response.status != .noError, named >= lastNaming[connection].flatMap({ responses[$0].named }) ?? 0
    else { return }
    lastNaming[connection].map { responses[$0].discarded = 0 }
    responses[number].discarded = record.discarded ?? 0
    lastNaming[connection] = number
  }

  package func receive(_ record: MalformedRecord) {
    if hasRoom() { add(.malformed("\(record.place.length) bytes are malformed: \(record.problem)"), at: record.place) }
  }

  private func hasRoom() -> Bool {
    guard count < limit else {
      omitted += 1
      return false
    }
    count += 1
    return true
  }

  private func latest(at place: RecordPlace) -> Note? {
    notes[place.packet]?.last { $0.connection == place.connection }?.note
  }

  private func replaceLatest(at place: RecordPlace, with note: Note) {
    guard let index = notes[place.packet]?.lastIndex(where: { $0.connection == place.connection }) else { return }
    notes[place.packet]?[index].note = note
  }

  private func add(_ note: Note, at place: RecordPlace) {
    notes[place.packet, default: []].append((place.connection, note))
  }

  package func receive(_ record: CaptureRecord) {}
  package func receive(_ record: borrowing FeedbackRecord) {}
  package func receive(_ record: GapRecord) {}
  package func receive(_ record: ConnectionRecord) {}
  package func receive(_ record: SummaryRecord) {
    for one in lost {
      guard let number = lastNaming[one.place.connection] else { continue }
      if one.again != nil {
        responses[number].sentAgain += 1
      } else if one.isRecognisable {
        responses[number].neverAgain += 1
      }
    }
  }

  // MARK: comments

  /// The comment at a packet, a line for each note.
  package func comment(at packet: Int) -> String? {
    notes[packet].map { notes in
      notes.map { text(of: $0.note, on: $0.connection) }.joined(separator: "\n")
    }
  }

  /// The response that refused a notification.
  func response(naming index: Int, on connection: Int) -> Response? {
    naming[NotificationKey(connection: connection, index: index)].map { responses[$0] }
  }

  /// The outcomes of the notifications that were discarded on a connection, over all of their sendings.
  func outcomesOfDiscarded(on connection: Int) -> [TraceReport.Stories.Outcome] { losses[connection] ?? [] }

  func lastResponse(on connection: Int) -> Response? { lastNaming[connection].map { responses[$0] } }
}
