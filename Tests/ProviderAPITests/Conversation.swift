import Bytes
import HTTP2
import ProviderAPI
import PushModel
import TestSupport

/// Keeps what a session tells, as text and numbers that outlive the call.
struct ProviderLog: ProviderHandler {
  struct Request: Equatable {
    var target: RequestTarget
    var notification: Int?
    var stream: UInt32
    /// Text by the name of the field in records; absent ones are not there.
    var fields: [String: String]
    var headers: [String]
    var payload: String
    var payloadLength: Int
    var isPayloadWhole: Bool
    var token: [UInt8]
    var providerToken: Int?
    var isNumbered: Bool
    var completion: ProviderRequest.Completion
    var uncertain: Set<String>
    var openStreams: Int?
    var streamLimit: Int?
    var started: Int?
    var ended: Int?
    var offset: Int
    var length: Int
  }

  struct Response: Equatable {
    var stream: UInt32
    var notification: Int?
    var target: RequestTarget
    var status: Int?
    var reason: String?
    var timestamp: Int?
    var fields: [String: String]
    var latency: Int64?
    var isUncertain: Bool
  }

  var requests: [Request] = []
  var responses: [Response] = []
  var fates: [FateDecision] = []
  var goAways: [(last: UInt32, reason: String?, discarded: Int?, open: Int?)] = []
  var resets: [(stream: UInt32, error: ErrorCode?, notification: Int?)] = []
  var violations: [Violation] = []
  var settings = 0
  var missing: [Bool] = []
  var tableLosses: [FrameReader.Side] = []
  /// Everything that was told, for tests of what may not be in it.
  var everything = ""

  mutating func receive(_ event: ProviderEvent, _ bytes: RawSpan) {
    everything += "\(event)" + String(decoding: Array(copying: bytes), as: UTF8.self)
    switch event {
    case .request(let request): take(request, bytes)
    case .response(let response): take(response, bytes)
    case .fate(let decision): fates.append(decision)
    case .goAway(let last, _, let reason, let discarded, let open, _):
      goAways.append((last, reason?.rawValue, discarded, open))
    case .reset(let stream, let error, let notification, _): resets.append((stream, error, notification))
    case .settings: settings += 1
    case .violation(let violation, _): violations.append(violation)
    case .missing(_, let losesTable): missing.append(losesTable)
    case .tableLost(let side): tableLosses.append(side)
    case .ping, .unread, .providerToken: break
    }
  }

  private mutating func take(_ request: ProviderRequest, _ bytes: RawSpan) {
    var fields: [String: String] = [:]
    func add(_ name: String, _ field: ByteField) {
      if field.isPresent { fields[name] = Self.text(field, bytes) }
    }
    add("path", request.path)
    add("method", request.method)
    add("authority", request.authority)
    add("token", request.tokenText)
    add("bundle", request.bundle)
    add("topic", request.topic)
    add("push_type", request.pushType)
    add("apns_id", request.apnsID)
    add("collapse_id", request.collapseID)
    add("channel_id", request.channelID)
    add("request_id", request.requestID)
    if let priority = request.priority { fields["priority"] = "\(priority)" }
    if let expiration = request.expiration { fields["expiration"] = "\(expiration)" }
    if request.hasAuthorization { fields["trust"] = "token" }
    requests.append(
      Request(
        target: request.target, notification: request.notification, stream: request.stream, fields: fields,
        headers: request.headers.map { "\(Self.text($0.name, bytes)): \(Self.text($0.value, bytes))" },
        payload: Self.text(request.payload, bytes), payloadLength: request.payloadLength,
        isPayloadWhole: request.isPayloadWhole, token: Array(copying: bytes.extracting(request.token.range)),
        providerToken: request.providerToken, isNumbered: request.isProviderTokenNumbered,
        completion: request.completion,
        uncertain: Set(request.uncertain.fieldNames), openStreams: request.openStreams,
        streamLimit: request.streamLimit, started: request.started?.packet, ended: request.ended?.packet,
        offset: request.offset, length: request.length))
  }

  private mutating func take(_ response: ProviderResponse, _ bytes: RawSpan) {
    var fields: [String: String] = [:]
    func add(_ name: String, _ field: ByteField) {
      if field.isPresent { fields[name] = Self.text(field, bytes) }
    }
    add("apns_id", response.apnsID)
    add("apns_unique_id", response.apnsUniqueID)
    add("request_id", response.requestID)
    add("channel_id", response.channelID)
    add("body", response.body)
    responses.append(
      Response(
        stream: response.stream, notification: response.notification, target: response.target,
        status: response.status, reason: response.reason?.rawValue, timestamp: response.timestamp, fields: fields,
        latency: response.latency, isUncertain: response.isUncertain))
  }

  private static func text(_ field: ByteField, _ bytes: RawSpan) -> String {
    String(decoding: Array(copying: bytes.extracting(field.range)), as: UTF8.self)
  }
}

/// Bytes of one side, in the order in which both sides wrote.
struct Written: Sendable {
  var side: FrameReader.Side
  var offset: Int
  var bytes: [UInt8]
  var range: Range<Int> { offset..<offset + bytes.count }
}

/// Writes both sides of a connection.
struct Conversation {
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  var written: [Written] = []
  private var offsets: [FrameReader.Side: Int] = [:]
  var client = HPACKEncoder()
  var server = HPACKEncoder()

  /// Begins with the preface and both sides' SETTINGS, acknowledged.
  init(streamLimit: UInt32? = 1_000) {
    client { $0.write(Self.preface.rawBytes) }
    client { $0.writeSettings([Setting(.enablePush, 0)]) }
    server { $0.writeSettings(streamLimit.map { [Setting(.maximumConcurrentStreams, $0)] } ?? []) }
    server { $0.writeSettingsAcknowledgement() }
    client { $0.writeSettingsAcknowledgement() }
  }

  mutating func client(_ write: (inout ByteWriter) -> Void) { append(.client, write) }
  mutating func server(_ write: (inout ByteWriter) -> Void) { append(.server, write) }

  private mutating func append(_ side: FrameReader.Side, _ write: (inout ByteWriter) -> Void) {
    var writer = ByteWriter(capacity: 256)
    write(&writer)
    let offset = offsets[side, default: 0]
    written.append(Written(side: side, offset: offset, bytes: Array(copying: writer.bytes)))
    offsets[side] = offset + writer.bytes.byteCount
  }

  typealias Field = (name: String, value: String, indexing: HPACKEncoder.Indexing)

  /// The fields of a notification.
  static func fields(
    _ token: String, jwt: String? = ProviderJWT.first, topic: String = "com.example.tide", more: [(String, String)] = []
  ) -> [Field] {
    var fields: [Field] = [
      (":method", "POST", .incremental), (":scheme", "https", .incremental),
      (":path", "/3/device/" + token, .withoutIndexing), (":authority", "api.push.apple.com", .incremental),
    ]
    if let jwt { fields.append(("authorization", "bearer " + jwt, .neverIndexed)) }
    fields.append(("apns-topic", topic, .incremental))
    return fields + more.map { ($0.0, $0.1, .incremental) }
  }

  mutating func headers(_ stream: UInt32, _ fields: [Field], end: Bool = false) {
    var block = ByteWriter(capacity: 256)
    client.beginBlock(&block)
    for field in fields {
      client.write(
        Array(field.name.utf8).rawBytes, Array(field.value.utf8).rawBytes, field.indexing, to: &block)
    }
    let bytes = Array(copying: block.bytes)
    client {
      $0.writeFrame(.headers, flags: end ? [.endHeaders, .endStream] : .endHeaders, stream: stream, bytes.rawBytes)
    }
  }

  mutating func data(_ stream: UInt32, _ text: String, end: Bool = true) {
    client { $0.writeFrame(.data, flags: end ? .endStream : [], stream: stream, Array(text.utf8).rawBytes) }
  }

  /// A whole notification.
  mutating func push(_ stream: UInt32, _ fields: [Field], _ payload: String = #"{"aps":{"alert":"x"}}"#) {
    headers(stream, fields)
    data(stream, payload)
  }

  mutating func answer(_ stream: UInt32, _ status: Int, _ fields: [(String, String)] = [], body: String? = nil) {
    answer(stream, "\(status)", fields, body: body)
  }

  mutating func answer(_ stream: UInt32, _ status: String, _ fields: [(String, String)] = [], body: String? = nil) {
    var block = ByteWriter(capacity: 256)
    server.beginBlock(&block)
    for (name, value) in [(":status", status)] + fields {
      server.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .incremental, to: &block)
    }
    let bytes = Array(copying: block.bytes)
    let flags: FrameFlags = body == nil ? [.endHeaders, .endStream] : .endHeaders
    server { $0.writeFrame(.headers, flags: flags, stream: stream, bytes.rawBytes) }
    if let body {
      server { $0.writeFrame(.data, flags: .endStream, stream: stream, Array(body.utf8).rawBytes) }
    }
  }

  /// Reads everything, each writing as a piece in a packet of its own, numbered from 0, a millisecond after the last.
  func read(ending: ProviderSession.Ending = .closed, limits: ProviderSession.Limits = .init()) -> (
    ProviderSession, ProviderLog
  ) {
    read(written.map { .bytes($0.side, $0.range) }, ending: ending, limits: limits)
  }

  enum Piece {
    case bytes(FrameReader.Side, Range<Int>)
    case gap(FrameReader.Side, Range<Int>)
  }

  func read(
    _ pieces: [Piece], isFromStart: Bool = true, ending: ProviderSession.Ending = .closed,
    limits: ProviderSession.Limits = .init()
  ) -> (ProviderSession, ProviderLog) {
    var (session, log) = (ProviderSession(isFromStart: isFromStart, limits: limits), ProviderLog())
    let streams = [FrameReader.Side.client: bytes(of: .client), .server: bytes(of: .server)]
    var packet = 0
    for piece in pieces {
      let arrival = Arrival(time: Int64(packet) * 1_000_000, packet: packet)
      packet += 1
      switch piece {
      case .bytes(let side, let range):
        let stream = streams[side] ?? []
        session.read(
          stream.rawBytes.extracting(range), from: side, at: range.lowerBound, arrival: arrival,
          into: &log)
      case .gap(let side, let range):
        session.gap(from: side, at: range.lowerBound, length: range.count, arrival: arrival, into: &log)
      }
    }
    let end = Arrival(time: Int64(packet) * 1_000_000, packet: packet)
    session.finish(.client, ending, arrival: end, into: &log)
    session.finish(.server, ending, arrival: end, into: &log)
    return (session, log)
  }

  func bytes(of side: FrameReader.Side) -> [UInt8] { written.filter { $0.side == side }.flatMap(\.bytes) }
}

/// Provider tokens of tests. Their signatures are letters.
enum ProviderJWT {
  static let secret = "SIGNATURESIGNATURESIGNATURESIGNATURESIGNATURESIGNATURESIGNATURESIGNATURESIGNATURESIGNA"

  static let first = make(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: "1795578551")
  static let second = make(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: "1795582151")

  static func make(keyID: String, teamID: String, issuedAt: String, signature: String = secret) -> String {
    base64(#"{"alg":"ES256","kid":"\#(keyID)"}"#) + "." + base64(#"{"iss":"\#(teamID)","iat":\#(issuedAt)}"#) + "."
      + signature
  }

  static func base64(_ text: String) -> String { base64(Array(text.utf8)) }

  static func base64(_ bytes: [UInt8]) -> String {
    var writer = ByteWriter(capacity: 64)
    writer.write(base64: bytes.rawBytes)
    let text = String(decoding: Array(copying: writer.bytes), as: UTF8.self)
    return String(
      text.compactMap { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 == "=" ? nil : $0 })
  }
}
