import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel

/// The fields of records of the HTTP/2 provider API, in the order of the table of fields.

extension ProviderNotificationRecord: WritableRecord {
  package static var type: RecordType { .notification }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("notification")
    output.field("file", fileOf: place.packet)
    output.field("connection", place.connection)
    output.field("index", index)
    output.field("time", knownTime: place.time)
    output.field("packet", packet: place.packet)
    output.field("offset", place.offset)
    output.field("length", place.length)
    if let outcome {
      output.field("fate", word: outcome.fate.word)
      if let status = outcome.answer?.status { output.field("status", behind: .number(status)) }
    }
    if let expiration = request.expiration { output.field("expiration", Int(clamping: expiration)) }
    output.field("priority", optional: request.priority.map(Int.init))
    if request.token.isPresent { output.field("token", hex: bytes(of: request.token)) }
    writePayload(to: &output)
    if let reason = outcome?.answer?.reason { output.field("reason", behind: .text(reason)) }
    if let latency = outcome?.answer?.latencyNanoseconds { output.field("latency_ms", behind: .milliseconds(latency)) }
    output.field("stream", Int(request.stream))
    if let cause = outcome?.cause { output.field("discarded_by", word: cause.word) }
    writeTarget(to: &output)
    writeTrust(to: &output)
    if !request.headers.isEmpty { output.field("headers", headers: request.headers, in: bytes) }
    if started.isKnown { output.field("started", time: started) }
    output.field("open_streams", optional: request.openStreams)
    output.field("stream_limit", optional: request.streamLimit)
    let uncertain = uncertainFields
    if !uncertain.isEmpty { output.field("uncertain", uncertain) }
    output.end()
  }

  private func writeTarget(to output: inout some FieldWriter & ~Copyable) {
    output.field("bundle", optional: request.bundle, in: bytes)
    output.field("topic", optional: request.topic, in: bytes)
    output.field("push_type", optional: request.pushType, in: bytes)
    output.field("apns_id", optional: request.apnsID, in: bytes)
    output.field("collapse_id", optional: request.collapseID, in: bytes)
    output.field("channel_id", optional: request.channelID, in: bytes)
    output.field("request_id", optional: request.requestID, in: bytes)
    if request.target == .badPath || request.target == .device && !request.token.isPresent {
      output.field("path", optional: request.path, in: bytes)
    }
    if request.method.isPresent, !bytes(of: request.method).holds("POST") {
      output.field("method", optional: request.method, in: bytes)
    }
  }

  private func writeTrust(to output: inout some FieldWriter & ~Copyable) {
    if let trust { output.field("trust", trust.rawValue) }
    guard request.hasAuthorization else { return }
    output.beginObject("provider_token")
    if let token = providerToken {
      if let key = token.keyID { output.field("key_id", key) }
      if let team = token.teamID { output.field("team_id", team) }
      output.field("issued_at", optional: token.issuedAt)
    }
    if request.isProviderTokenNumbered { output.field("number", optional: request.providerToken) }
    output.endObject()
  }

  private func writePayload(to output: inout some FieldWriter & ~Copyable) {
    guard !request.uncertain.contains(.payload) else { return }
    output.field("payload_length", request.payloadLength)
    if request.payloadLength > 0, request.isPayloadWhole {
      output.field("payload", payload: bytes(of: request.payload))
    }
    if let verdict { verdict.write(to: &output) }
  }
}

extension DiscardCause {
  /// Its raw value.
  package var word: StaticString {
    switch self {
    case .refusedStream: "refused_stream"
    case .goAway: "goaway"
    case .incomplete: "incomplete"
    }
  }
}

extension RawSpan {
  /// Whether it has the text and nothing else.
  package func holds(_ text: StaticString) -> Bool {
    byteCount == text.utf8CodeUnitCount && holds(text, at: 0)
  }
}

extension FieldWriter where Self: ~Copyable {
  /// A text of a request.
  package mutating func field(_ name: StaticString, optional field: ByteField, in bytes: RawSpan) {
    if field.isPresent { self.field(name, text: bytes.extracting(field.range)) }
  }

  mutating func field(_ name: StaticString, optional text: String?) {
    if let text { field(name, text) }
  }

  /// Where a record is.
  mutating func begin(_ type: StaticString, _ place: RecordPlace, _ direction: Direction?) {
    begin(type)
    field("file", fileOf: place.packet)
    field("connection", place.connection)
    if let direction { field("direction", direction.rawValue) }
    field("time", knownTime: place.time)
    field("packet", packet: place.packet)
    field("offset", place.offset)
    field("length", place.length)
  }
}

extension ResponseRecord: WritableRecord {
  package static var type: RecordType { .response }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("response", place, nil)
    output.field("status", optional: status)
    output.field("timestamp", optional: timestamp)
    output.field("reason", optional: reason)
    output.field("notification", optional: notification)
    if let latencyNanoseconds { output.field("latency_ms", milliseconds: latencyNanoseconds) }
    output.field("stream", stream)
    output.field("apns_id", optional: apnsID)
    output.field("apns_unique_id", optional: apnsUniqueID)
    output.field("channel_id", optional: channelID)
    output.field("request_id", optional: requestID)
    if isUncertain { output.field("uncertain", uncertain) }
    output.end()
  }

  /// Fields that are absent and may have been there.
  package var uncertain: [String] {
    let fields: [(String, Bool)] = [
      ("status", status == nil), ("timestamp", timestamp == nil), ("apns_id", apnsID == nil),
      ("apns_unique_id", apnsUniqueID == nil), ("channel_id", channelID == nil), ("request_id", requestID == nil),
      ("reason", reason == nil),
    ]
    return fields.filter(\.1).map(\.0)
  }
}

extension GoAwayRecord: WritableRecord {
  package static var type: RecordType { .goAway }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("goaway", place, direction)
    output.field("reason", optional: reason)
    output.field("discarded", optional: discarded)
    output.field("unknown", optional: unknown)
    output.field("last_stream", lastStream)
    output.field("error", error)
    output.end()
  }
}

extension ResetRecord: WritableRecord {
  package static var type: RecordType { .reset }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("reset", place, direction)
    output.field("notification", optional: notification)
    output.field("stream", stream)
    output.field("error", optional: error)
    output.end()
  }
}

extension SettingsRecord: WritableRecord {
  package static var type: RecordType { .settings }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("settings", place, direction)
    output.field("values", counts: values.map { ($0.name, $0.value) })
    output.end()
  }
}

extension ChannelRequestRecord: WritableRecord {
  package static var type: RecordType { .channelRequest }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("channel_request", place, nil)
    output.field("status", optional: status)
    output.field("reason", optional: reason)
    if let latencyNanoseconds { output.field("latency_ms", milliseconds: latencyNanoseconds) }
    output.field("stream", stream)
    output.field("action", action.rawValue)
    output.field("bundle", optional: bundle)
    output.field("channel_id", optional: channelID)
    output.field("request_id", optional: requestID)
    output.end()
  }
}
