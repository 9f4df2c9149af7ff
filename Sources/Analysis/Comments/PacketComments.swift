import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// Comments at the packets of a recording: notifications that were refused, discarded, malformed or sent again, error
/// responses, answers that reject, GOAWAY, RST_STREAM, and malformed bytes. It is the sink of a second pass, which
/// knows the fates, and what was sent again.
package final class PacketComments: RecordSink {
  /// Notifications and other records that got a comment.
  package private(set) var count = 0
  /// Records without a comment because of the limit.
  package private(set) var omitted = 0
  /// Some fates were not kept by the first pass.
  private var fates: FateLookup
  private let limit: Int

  typealias Place = DiscardedNotifications.Place

  enum Note {
    case rejected(Int)
    /// Consecutive discarded notifications, by their places among `discarded`.
    case discarded(Range<Int>)
    /// Consecutive notifications that repeat discarded ones, and the first that is repeated.
    case again(ClosedRange<Int>, of: Place)
    case malformed(String)
    /// The response's index in `responses`.
    case response(Int)
    /// A rejected notification over HTTP/2, and the answer.
    case refused(Int, ProviderAnswer?)
    /// A record over HTTP/2 besides notifications.
    case provider(ProviderRecord)
  }

  struct Response {
    var response: ErrorResponse
    /// The notification that it names, by index.
    var named: Int?
    /// The number of notifications that it discarded.
    var discarded = 0
  }

  private struct NotificationKey: Hashable {
    var connection: Int
    var index: Int
  }

  private var notes: [Int: [(connection: Int, note: Note)]] = [:]
  private(set) var discarded: [DiscardedNotifications.Sending] = []
  private(set) var responses: [Response] = []
  /// The index in `responses` of the response that names a notification; and, by connection, of the response that names
  /// the last one.
  private var naming: [NotificationKey: Int] = [:]
  private var lastNaming: [Int: Int] = [:]
  /// The places of provider tokens, which the copy has not.
  package private(set) var credentials: CredentialPlaces
  /// The discarded sendings of the whole recording, and those that send them again.
  let sendings: DiscardedNotifications

  /// - Parameters:
  ///   - sendings: of the same recording.
  ///   - limit: the number of records that get a comment.
  ///   - credentialMemory: the most bytes for places of provider tokens.
  package init(fates: FateIndex, sendings: DiscardedNotifications, limit: Int, credentialMemory: Int = 64 << 20) {
    credentials = CredentialPlaces(limit: credentialMemory)
    self.fates = FateLookup(.each(fates))
    self.sendings = sendings
    self.limit = limit
  }

  package var isOpen: Bool { true }

  // MARK: records

  package func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    receive(at: place, index: index)
  }

  package func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    if hasRoom() { add(.malformed("#\(index) is malformed: \(problem)"), at: place) }
    receive(at: place, index: index)
  }

  private func receive(at place: RecordPlace, index: Int, isHTTP2: Bool = false) {
    let known = sendings.sending(index, on: place.connection)
    if let first = known?.resends, hasRoom() { addAgain(index, of: first, at: place) }
    let outcome = fates.outcome(of: index, on: place.connection)
    switch outcome?.fate {
    case .rejected where hasRoom():
      add(isHTTP2 ? .refused(index, outcome?.answer) : .rejected(index), at: place)
    case .discarded where hasRoom():
      let its = Place(connection: place.connection, index: index, packet: place.packet)
      discarded.append(known ?? DiscardedNotifications.Sending(place: its, isRecognisable: false))
      let count = discarded.count
      if case .discarded(let range)? = latest(at: place), discarded[range.upperBound - 1].place.index == index - 1 {
        replaceLatest(at: place, with: .discarded(range.lowerBound..<count))
      } else {
        add(.discarded(count - 1..<count), at: place)
      }
    default: break
    }
  }

  package func receive(_ record: borrowing ProviderNotificationRecord) {
    receive(at: record.place, index: record.index, isHTTP2: true)
  }

  package func receive(_ record: ProviderRecord) {
    let isWorthAComment =
      switch record {
      case .response(let response): response.status.map { !(200...299).contains($0) } ?? false
      case .goAway, .reset: true
      case .channelRequest, .settings: false
      }
    if isWorthAComment, hasRoom() { add(.provider(record), at: record.place) }
  }

  package var takesHTTP2: Bool { true }
  package func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction) {
    credentials.receive(http2: bytes, at: place, direction)
  }

  private func addAgain(_ index: Int, of original: Place, at place: RecordPlace) {
    if case .again(let range, let first)? = latest(at: place), range.upperBound == index - 1 {
      replaceLatest(at: place, with: .again(range.lowerBound...index, of: first))
    } else {
      add(.again(index...index, of: original), at: place)
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
  package func receive(_ record: ConnectionRecord) { credentials.receive(record) }
  package func receive(_ record: SummaryRecord) {}

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

  func lastResponse(on connection: Int) -> Response? { lastNaming[connection].map { responses[$0] } }
}
