import BinaryProtocol
import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel

/// A notification of the provider API that is read back: its request, and the bytes that its ranges refer to.
struct ReadProviderNotification {
  var request: ProviderRequest
  /// Offset 0 is an absent field's.
  private(set) var bytes: [UInt8] = [0]
  var index: Int
  var fate: FateRecord?
  var trust: ProviderTrust?
  var providerToken: ProviderToken?

  /// - Throws: if a field has a wrong type, or is missing.
  init(_ fields: RecordFields, payload: [UInt8]?, place: RecordPlace) throws(RecordError) {
    let stream = UInt32(clamping: try fields.required("stream"))
    index = try fields.required("index", most: RecordReader.maximumBytes)
    request = ProviderRequest(
      target: .device, stream: stream, offset: place.offset, openStreams: try fields.number("open_streams"),
      streamLimit: try fields.number("stream_limit"))
    request.notification = index
    request.length = place.length
    try readTarget(fields)
    request.topic = keep(fields.text("topic"))
    request.pushType = keep(fields.text("push_type"))
    request.apnsID = keep(fields.text("apns_id"))
    request.collapseID = keep(fields.text("collapse_id"))
    request.channelID = keep(fields.text("channel_id"))
    request.requestID = keep(fields.text("request_id"))
    request.method = keep(fields.text("method") ?? "POST")
    request.priority = try fields.number("priority", most: 255).map { UInt8($0) }
    request.expiration = try fields.number("expiration", most: .max).map { UInt64($0) }
    request.uncertain = ProviderRequest.Uncertain(fieldNames: fields.list("uncertain"))
    let headers = fields.list("headers")
    for place in stride(from: 0, to: headers.count - 1, by: 2) {
      let name = keep(headers[place])
      request.headers.append(ProviderRequest.Header(name: name, value: keep(headers[place + 1])))
    }
    try readTrust(fields)
    request.payloadLength = try fields.number("payload_length") ?? 0
    if let payload { request.payload = keep(payload) }
    let started = try fields.time("started")
    if started.isKnown { request.started = .init(time: started.nanoseconds, packet: place.packet) }
    let end = Arrival(time: place.time.nanoseconds, packet: place.packet)
    request.latest = end
    if fields.text("discarded_by") != DiscardCause.incomplete.rawValue {
      (request.ended, request.completion) = (end, .complete)
    }
    if let fate = fields.text("fate").flatMap(Fate.init) {
      self.fate = FateRecord(
        connection: place.connection, first: index, last: index, fate: fate,
        cause: fields.text("discarded_by").flatMap(DiscardCause.init))
    }
  }

  private mutating func keep(_ bytes: [UInt8]) -> ByteField {
    defer { self.bytes += bytes }
    return ByteField(offset: self.bytes.count, length: bytes.count)
  }

  private mutating func keep(_ text: String?) -> ByteField { text.map { keep(Array($0.utf8)) } ?? ByteField() }

  private mutating func readTarget(_ fields: RecordFields) throws(RecordError) {
    if let token = fields.text("token") {
      var writer = ByteWriter(capacity: token.utf8.count / 2)
      guard writer.write(bytesOfHexadecimal: Array(token.utf8).rawBytes) else {
        throw RecordError("'token' is not hexadecimal")
      }
      request.tokenText = keep(token)
      request.token = keep(Array(copying: writer.bytes))
      request.path = keep("/3/device/" + token)
    } else if let bundle = fields.text("bundle") {
      request.target = .broadcast
      request.bundle = keep(bundle)
      request.path = keep("/4/broadcasts/apps/" + bundle)
    } else if let path = fields.text("path") {
      request.target = path.hasPrefix("/3/device/") ? .device : .badPath
      request.path = keep(path)
    } else {
      request.target = .unknown
    }
  }

  private mutating func readTrust(_ fields: RecordFields) throws(RecordError) {
    trust = fields.text("trust").flatMap(ProviderTrust.init)
    request.hasAuthorization = trust == .token
    request.providerToken = try fields.number("provider_token.number")
    request.isProviderTokenNumbered = request.providerToken != nil
    let issuedAt = try fields.signed("provider_token.issued_at")
    if issuedAt != nil || ["key_id", "team_id"].contains(where: { fields.text("provider_token." + $0) != nil }) {
      providerToken = ProviderToken(
        keyID: fields.text("provider_token.key_id"), teamID: fields.text("provider_token.team_id"),
        issuedAt: issuedAt)
    }
  }
}

extension RecordFields {
  /// A record of a connection over HTTP/2 besides its notifications; `nil` for other types.
  func providerRecord(_ type: String, at place: RecordPlace) throws(RecordError) -> ProviderRecord? {
    switch type {
    case "response":
      var record = ResponseRecord(place: place, stream: try required("stream"))
      record.status = try number("status")
      record.reason = text("reason")
      record.timestamp = try signed("timestamp")
      record.apnsID = text("apns_id")
      record.apnsUniqueID = text("apns_unique_id")
      record.channelID = text("channel_id")
      record.requestID = text("request_id")
      record.notification = try number("notification", most: RecordReader.maximumBytes)
      record.latencyNanoseconds = latency
      record.isUncertain = !list("uncertain").isEmpty
      return .response(record)
    case "goaway":
      return .goAway(
        GoAwayRecord(
          place: place, direction: direction, lastStream: try required("last_stream"), error: text("error") ?? "",
          reason: text("reason"), discarded: try number("discarded"), unknown: try number("unknown")))
    case "reset":
      return .reset(
        ResetRecord(
          place: place, direction: direction, stream: try required("stream"), error: text("error"),
          notification: try number("notification", most: RecordReader.maximumBytes)))
    case "settings":
      return .settings(
        SettingsRecord(
          place: place, direction: direction, values: counts("values").map { .init(name: $0.name, value: $0.count) }))
    case "channel_request":
      guard let action = text("action").flatMap(ChannelAction.init) else { throw RecordError("unknown 'action'") }
      var record = ChannelRequestRecord(place: place, stream: try required("stream"), action: action)
      record.bundle = text("bundle")
      record.channelID = text("channel_id")
      record.requestID = text("request_id")
      (record.status, record.reason, record.latencyNanoseconds) = (try number("status"), text("reason"), latency)
      return .channelRequest(record)
    default: return nil
    }
  }

  var direction: Direction { text("direction").flatMap(Direction.init) ?? .client }
  private var latency: Int64? { nanoseconds("latency_ms") }

  private func nanoseconds(_ name: String) -> Int64? {
    milliseconds(name).flatMap { Int64(exactly: ($0 * 1e6).rounded()) }
  }

  /// The part of a connection's record that only HTTP/2 has; `nil` without.
  func http2Summary() throws(RecordError) -> HTTP2Summary? {
    guard text("protocol") == OtherProtocol.http2.rawValue, let responses = try number("responses") else { return nil }
    var summary = HTTP2Summary()
    summary.responses = responses
    summary.rejections = counts("rejections").map { .init(name: $0.name, count: $0.count) }
    summary.providerTokens = try number("provider_tokens")
    summary.openStreamsMaximum = try number("open_streams_max")
    summary.firstStreamLimit = try number("stream_limit_first")
    summary.lastStreamLimit = try number("stream_limit_last")
    summary.goAways = try number("goaways") ?? 0
    summary.resets = try number("resets") ?? 0
    summary.literalTokens = try number("literal_tokens") ?? 0
    summary.literalTokenBytes = try number("literal_token_bytes") ?? 0
    summary.priorityFrames = try number("priority_frames") ?? 0
    summary.pings.sent = try number("pings") ?? 0
    summary.pings.answered = try number("pings_answered") ?? 0
    summary.pings.lastAnswer = try time("ping_answered")
    summary.pings.leastNanoseconds = nanoseconds("ping_ms_least")
    summary.pings.greatestNanoseconds = nanoseconds("ping_ms_greatest")
    summary.clientTableLosses = try number("header_table_lost.client") ?? 0
    summary.serverTableLosses = try number("header_table_lost.server") ?? 0
    return summary
  }
}
