import BinaryProtocol
import Bytes
import FoundationEssentials
import PacketCapture
import PushModel
import TLSDecryption

@testable import Dissection
@testable import Records

/// A notification record copied out of the bytes it pointed into.
struct SeenNotification: Equatable, Sendable {
  var connection = 1
  var index: Int
  var offset: Int
  var length: Int
  var command: UInt8
  var identifier: UInt32?
  var expiration: UInt32?
  var priority: UInt8?
  var token: [UInt8]?
  var payload: [UInt8]?
  var packet = 0
  var time = Timestamp.none
  var problem: String?

  /// The same without what depends on the container: the packet and its time.
  var content: SeenNotification {
    var content = self
    (content.packet, content.time) = (0, .none)
    return content
  }
}

struct SeenTuple: Equatable, Sendable {
  var connection = 1
  var index: Int
  var offset: Int
  var length: Int
  var timestamp: UInt32
  var token: [UInt8]
}

/// A notification of the provider API, copied out of the bytes that it pointed into.
struct SeenRequest: Equatable, Sendable {
  var index: Int
  var stream: Int
  var token: String?
  var topic: String?
  var uncertain: [String]
  var payload: [UInt8]
}

/// Keeps every record that a dissection hands out, in order by type.
struct Collector: RecordSink {
  var captures: [CaptureRecord] = []
  var notifications: [SeenNotification] = []
  var early: [ErrorResponseRecord] = []
  var responses: [ErrorResponseRecord] = []
  var fates: [FateRecord] = []
  var tuples: [SeenTuple] = []
  var requests: [SeenRequest] = []
  var providerRecords: [ProviderRecord] = []
  var messages: [MessageRecord] = []
  var answers: [ResponseRecord] {
    providerRecords.compactMap { if case .response(let record) = $0 { record } else { nil } }
  }
  var gaps: [GapRecord] = []
  var malformed: [MalformedRecord] = []
  var connections: [ConnectionRecord] = []
  var losses: [CaptureLossRecord] = []
  var summaries: [SummaryRecord] = []
  var outcomes: [CaptureOutcome] = []
  /// Subjects of client certificates by connection; "too late" when a notification came before.
  var subjects: [Int: String] = [:]
  var isOpen: Bool { true }

  mutating func receive(_ record: CaptureRecord) { captures.append(record) }
  mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    requests.append(
      SeenRequest(
        index: record.index, stream: Int(record.request.stream), token: record.text(of: record.request.tokenText),
        topic: record.text(of: record.request.topic), uncertain: record.uncertainFields,
        payload: Array(copying: record.bytes(of: record.request.payload))))
  }
  mutating func receive(_ record: ProviderRecord) { providerRecords.append(record) }
  mutating func receive(_ record: MessageRecord) { messages.append(record) }
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    receive(fields, frame, at: place, index: index)
    notifications[notifications.count - 1].problem = problem
  }
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let record = NotificationRecord(fields, frame, at: place, index: index)
    notifications.append(
      SeenNotification(
        connection: record.place.connection, index: record.index, offset: record.place.offset,
        length: record.place.length, command: fields.command.rawValue, identifier: fields.identifier,
        expiration: fields.expiration, priority: fields.priority,
        token: fields.token.isPresent ? Array(copying: record.notification.token) : nil,
        payload: fields.payload.isPresent ? Array(copying: record.notification.payload) : nil,
        packet: record.place.packet, time: record.place.time))
  }
  mutating func receiveEarly(_ record: ErrorResponseRecord) { early.append(record) }
  mutating func receive(_ record: ErrorResponseRecord) { responses.append(record) }
  mutating func receive(_ record: FateRecord) { fates.append(record) }
  mutating func receive(_ record: borrowing FeedbackRecord) {
    tuples.append(
      SeenTuple(
        connection: record.place.connection, index: record.index, offset: record.place.offset,
        length: record.place.length, timestamp: record.tuple.timestamp, token: Array(copying: record.tuple.token)))
  }
  mutating func receive(_ record: GapRecord) { gaps.append(record) }
  mutating func receive(_ record: MalformedRecord) { malformed.append(record) }
  mutating func receive(_ record: ConnectionRecord) { connections.append(record) }
  mutating func receive(_ record: CaptureLossRecord) { losses.append(record) }
  mutating func receive(_ record: SummaryRecord) { summaries.append(record) }
  mutating func receive(_ outcome: CaptureOutcome) { outcomes.append(outcome) }
  mutating func presented(subject: String, connection: Int) {
    let isInTime = !notifications.contains { $0.connection == connection } || subjects[connection] == subject
    subjects[connection] = isInTime ? subject : "too late"
  }
}

/// What `apnscope decode` would write for a file, as records. A key log beside it is used.
func dissect(_ path: String, _ options: DissectionOptions = DissectionOptions()) throws -> Collector {
  let shared = SharedSink(Collector())
  var dissection = Dissection(into: shared, options: options, secrets: try secrets(beside: path))
  let input = try CaptureInput.open(path, options: options.capture)
  _ = try dissection.read(input, source: path) { _ in true }
  dissection.finish()
  return shared.sink
}

/// The secrets in the key log that stands beside a capture: `a.pcap.keys` for `a.pcap`.
func secrets(beside path: String) throws -> Secrets {
  let secrets = Secrets()
  let keys = path + ".keys"
  if FileManager.default.fileExists(atPath: keys) {
    secrets.add(try KeyLog(contentsOf: keys, maximumLength: 1 << 20, maximumLines: 1_000))
  }
  return secrets
}

/// What `apnscope decode` writes for a file under this name. A key log beside it is used.
func decodedLines(_ path: String, source: String, _ options: DissectionOptions = DissectionOptions()) throws -> String {
  func read<Sink: RecordSink>(into sink: Sink) throws -> Sink {
    let shared = SharedSink(sink)
    var dissection = Dissection(into: shared, options: options, secrets: try secrets(beside: path))
    _ = try dissection.read(try CaptureInput.open(path, options: options.capture), source: source) { _ in true }
    dissection.finish()
    return shared.sink
  }
  let fates = try read(into: FateIndex(maximumRanges: options.maximumFateRanges))
  var written: [UInt8] = []
  let writer = JSONLinesWriter(fates: .each(fates), judging: PayloadJudging()) { bytes in
    written.append(copying: bytes)
    return true
  }
  try read(into: writer).flush()
  return String(decoding: written, as: UTF8.self)
}

/// Files that belong to the tests, found from where this source stands.
enum Folder {
  static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  static let traces = tests.deletingLastPathComponent().deletingLastPathComponent().appending(path: "Traces")

  /// Names of the files in `folder` that end like this, in order.
  static func names(in folder: URL, ending suffix: String) -> [String] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return all.filter { $0.hasSuffix(suffix) }.sorted()
  }
}
