import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel
import TLSDecryption

@testable import Analysis
@testable import Records

/// A notification, with what the tests change.
struct RequestPush {
  var token: [UInt8]? = [UInt8](repeating: 7, count: 32)
  var topic: String? = "com.example.tide"
  var pushType: String? = "alert"
  var priority: UInt8? = 10
  var collapseID: String?
  var payload = #"{"aps":{"alert":"High water"}}"#
  var uncertain: ProviderRequest.Uncertain = []
  /// The number of the provider token, and when it was issued.
  var issued: (number: Int, at: Int)?
  var openStreams = 1
  var streamLimit: Int? = 1_000
}

/// Makes the records of providers over HTTP/2, and passes them to a sink.
struct RequestRecording<Sink: RecordSink> {
  typealias Push = RequestPush

  var sink: Sink
  private var indexes: [Int: Int] = [:]
  private var answered: [Int: FateCounts] = [:]
  private var opened: [Int: Double] = [:]
  private(set) var packet = 0
  /// Seconds since the recording's start, which is the start of the minute 1,790,000,000 after 1970.
  static var start: Int { 1_790_000_000 }

  init(_ sink: Sink) { self.sink = sink }

  static func time(_ seconds: Double) -> Timestamp {
    Timestamp(nanoseconds: Int64(start) * 1_000_000_000 + Int64((seconds * 1e9).rounded()))
  }

  private mutating func place(_ connection: Int, _ seconds: Double, length: Int = 100) -> RecordPlace {
    packet += 1
    return RecordPlace(
      connection: connection, time: Self.time(seconds), packet: packet, offset: 0, length: length)
  }

  mutating func open(_ connection: Int, at seconds: Double = 0) {
    opened[connection] = seconds
    sink.opened(connection: connection, at: Self.time(seconds))
  }

  /// Sends a notification, and returns its index; its stream is twice that and one.
  @discardableResult
  mutating func send(_ push: Push = Push(), on connection: Int, at seconds: Double) -> Int {
    if opened[connection] == nil { open(connection, at: seconds) }
    let index = indexes[connection, default: 0]
    indexes[connection] = index + 1
    var bytes: [UInt8] = [0]
    func keep(_ text: [UInt8]?) -> ByteField {
      guard let text else { return ByteField() }
      defer { bytes += text }
      return ByteField(offset: bytes.count, length: text.count)
    }
    var request = ProviderRequest(
      target: push.token == nil && !push.uncertain.contains(.token) ? .badPath : .device, stream: UInt32(2 * index + 1),
      offset: 0, openStreams: push.openStreams, streamLimit: push.streamLimit)
    request.token = keep(push.token)
    request.topic = keep(push.topic.map { Array($0.utf8) })
    request.pushType = keep(push.pushType.map { Array($0.utf8) })
    request.collapseID = keep(push.collapseID.map { Array($0.utf8) })
    request.payload = keep(Array(push.payload.utf8))
    request.payloadLength = push.payload.utf8.count
    (request.priority, request.uncertain, request.notification) = (push.priority, push.uncertain, index)
    let place = place(connection, seconds, length: 68 + request.payloadLength)
    let arrival = Arrival(time: place.time.nanoseconds, packet: place.packet)
    (request.started, request.ended, request.completion) = (arrival, arrival, .complete)
    request.providerToken = push.issued?.number
    request.hasAuthorization = push.issued != nil
    sink.receive(
      ProviderNotificationRecord(
        request, bytes.rawBytes, at: place, index: index, trust: .token,
        providerToken: push.issued.map { ProviderToken(keyID: "KEY", teamID: "TEAM", issuedAt: $0.at) }))
    return index
  }

  /// Answers a notification after this time.
  mutating func answer(
    _ index: Int, on connection: Int, _ status: Int, _ reason: String? = nil, at seconds: Double,
    latency: Double? = nil
  ) {
    var response = ResponseRecord(place: place(connection, seconds), stream: 2 * index + 1)
    (response.status, response.reason, response.notification) = (status, reason, index)
    response.latencyNanoseconds = latency.map { Int64($0 * 1e9) }
    sink.receive(.response(response))
    let fate: Fate = (200...299).contains(status) ? .accepted : .rejected
    decide(index, on: connection, fate)
  }

  /// The fate of a notification; fates come in the order of notifications.
  mutating func decide(_ index: Int, on connection: Int, _ fate: Fate, _ cause: DiscardCause? = nil) {
    answered[connection, default: FateCounts()][fate] += 1
    sink.receive(FateRecord(connection: connection, first: index, last: index, fate: fate, cause: cause))
  }

  mutating func refuse(_ index: Int, on connection: Int, at seconds: Double) {
    sink.receive(
      .reset(
        ResetRecord(
          place: place(connection, seconds), direction: .server, stream: 2 * index + 1, error: "REFUSED_STREAM",
          notification: index)))
    decide(index, on: connection, .discarded, .refusedStream)
  }

  mutating func goAway(_ lastStream: Int, on connection: Int, at seconds: Double, reason: String? = nil) {
    sink.receive(
      .goAway(
        GoAwayRecord(
          place: place(connection, seconds), direction: .server, lastStream: lastStream, error: "NO_ERROR",
          reason: reason, discarded: 0, unknown: 0)))
  }

  mutating func gap(_ direction: Direction, on connection: Int, at seconds: Double) {
    sink.receive(GapRecord(place: place(connection, seconds), direction: direction, reason: .lost))
  }

  mutating func end(
    _ connection: Int, at seconds: Double?, _ end: ConnectionRecord.End = .clientFIN, client: String = "10.0.0.1",
    change: (inout ConnectionRecord) -> Void = { _ in }
  ) {
    let count = indexes[connection] ?? 0
    var fates = answered[connection] ?? FateCounts()
    let unknown = count - fates.accepted - fates.rejected - fates.discarded - fates.unknown
    fates.unknown += unknown
    if unknown > 0 {
      sink.receive(FateRecord(connection: connection, first: count - unknown, last: count - 1, fate: .unknown))
    }
    var record = ConnectionRecord(
      connection: connection, service: .gateway, otherProtocol: .http2,
      client: Endpoint("\(client):\(40_000 + connection)"),
      server: Endpoint("10.0.0.9:443"), opened: Self.time(opened[connection] ?? 0),
      closed: seconds.map { Self.time($0) } ?? .none, end: end, clientBytes: 1, serverBytes: 1, missingBytes: 0,
      notifications: count, errorResponses: 0, feedbackTuples: 0, fates: fates, conflictingBytes: 0, limits: [])
    record.http2 = HTTP2Summary()
    change(&record)
    sink.receive(record)
  }

  /// Ends the recording at this time.
  mutating func finish(at seconds: Double, from first: Double = 0) {
    var outcome = CaptureOutcome(
      source: "a.pcap", format: .pcap, firstTime: Self.time(first), lastTime: Self.time(seconds))
    outcome.packets = packet
    sink.receive(outcome)
    var summary = SummaryRecord()
    summary.notifications = indexes.values.reduce(0, +)
    summary.connections = opened.count
    summary.readProviderConnections = opened.count
    sink.receive(summary)
  }
}
