import BinaryProtocol
import Bytes
import PacketCapture
import Payload
import PushModel

/// The fields of each record in the order of the record contract. A field that was absent on the wire is not written.

extension CaptureRecord: WritableRecord {
  package static var type: RecordType { .capture }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("capture")
    output.field("schema", Self.schema)
    output.field("source", source)
    output.field("format", format.rawValue)
    output.field("link_types", linkTypes.map(\.description))
    if !selection.isEmpty { output.field("selection", selection) }
    output.field("file", optional: file)
    output.end()
  }
}

extension NotificationRecord: WritableRecord {
  package static var type: RecordType { .notification }

  @inline(__always)
  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("notification")
    output.field("file", fileOf: place.packet)
    output.field("connection", place.connection)
    output.field("index", index)
    output.field("time", knownTime: place.time)
    output.field("packet", packet: place.packet)
    output.field("offset", place.offset)
    output.field("length", place.length)
    if let fate { output.field("fate", word: fate.word) }
    let fields = notification.fields
    output.field("command", Int(fields.command.rawValue))
    output.field("identifier", optional: fields.identifier.map(Int.init))
    output.field("expiration", optional: fields.expiration.map(Int.init))
    output.field("priority", optional: fields.priority.map(Int.init))
    if fields.token.isPresent { output.field("token", hex: notification.token) }
    if fields.payload.isPresent {
      output.field("payload_length", fields.payload.length)
      if fields.payload.length > 0 { output.field("payload", payload: notification.payload) }
    }
    if let verdict { verdict.write(to: &output) }
    if fields.binary.hasUnusualItemOrder || fields.binary.hasUnknownItems { writeUnusualItems(to: &output) }
    if let problem { output.field("problem", problem) }
    output.end()
  }

  @inline(never)
  private func writeUnusualItems(to output: inout some FieldWriter & ~Copyable) {
    if notification.fields.binary.hasUnknownItems {
      output.field("items", items: notification.unknownItems.map { ($0.id.rawValue, $0.data) })
    }
    if notification.fields.binary.hasUnusualItemOrder {
      output.field("item_order", numbers: notification.items.map(\.id.rawValue))
    }
  }
}

extension PayloadVerdict {
  @inline(__always)
  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.field("kind", word: kind.word)
    if !rules.isEmpty { output.field("lint", rules: rules) }
  }
}

extension PayloadKind {
  package var word: StaticString {
    switch self {
    case .alert: "alert"
    case .alertBackground: "alert_background"
    case .background: "background"
    case .badgeOnly: "badge_only"
    case .empty: "empty"
    case .invalid: "invalid"
    case .mutable: "mutable"
    case .newsstand: "newsstand"
    case .soundOnly: "sound_only"
    case .voip: "voip"
    }
  }
}

extension ErrorResponseRecord: WritableRecord {
  package static var type: RecordType { .errorResponse }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("error_response")
    output.field("file", fileOf: place.packet)
    output.field("connection", place.connection)
    output.field("time", knownTime: place.time)
    output.field("packet", packet: place.packet)
    output.field("offset", place.offset)
    output.field("command", Int(response.command))
    output.field("status", Int(response.status.rawValue))
    output.field("status_name", response.status.description)
    output.field("identifier", Int(response.identifier))
    output.field("notification", optional: notification)
    output.field("accepted", optional: accepted)
    output.field("discarded", optional: discarded)
    if let latencyNanoseconds { output.field("latency_ms", milliseconds: latencyNanoseconds) }
    if candidates > 1 { output.field("candidates", candidates) }
    if isAmbiguous { output.field("ambiguous", true) }
    output.end()
  }
}

extension Fate {
  /// Its raw value.
  package var word: StaticString {
    switch self {
    case .accepted: "accepted"
    case .rejected: "rejected"
    case .discarded: "discarded"
    case .unknown: "unknown"
    }
  }
}

extension FateRecord: WritableRecord {
  package static var type: RecordType { .fate }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("fate")
    output.field("connection", connection)
    output.field("first", first)
    output.field("last", last)
    output.field("fate", word: fate.word)
    if let cause { output.field("discarded_by", word: cause.word) }
    output.end()
  }
}

extension FeedbackRecord: WritableRecord {
  package static var type: RecordType { .feedback }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("feedback")
    output.field("file", fileOf: place.packet)
    output.field("connection", place.connection)
    output.field("index", index)
    output.field("time", knownTime: place.time)
    output.field("packet", packet: place.packet)
    output.field("offset", place.offset)
    output.field("length", place.length)
    output.field("timestamp", Int(tuple.timestamp))
    output.field("token", hex: tuple.token)
    output.end()
  }
}

extension GapRecord: WritableRecord {
  package static var type: RecordType { .gap }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("gap")
    output.field("file", fileOf: place.packet)
    output.field("connection", place.connection)
    output.field("direction", direction.rawValue)
    output.field("time", knownTime: place.time)
    output.field("packet", packet: place.packet)
    output.field("offset", place.offset)
    output.field("length", place.length)
    output.field("reason", reason.rawValue)
    if losesHeaderTable { output.field("header_table", true) }
    output.end()
  }
}

extension MalformedRecord: WritableRecord {
  package static var type: RecordType { .malformed }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("malformed")
    output.field("file", fileOf: place.packet)
    output.field("connection", place.connection)
    output.field("direction", direction.rawValue)
    output.field("time", knownTime: place.time)
    output.field("packet", packet: place.packet)
    output.field("offset", place.offset)
    output.field("length", place.length)
    output.field("problem", problem)
    if !bytes.isEmpty { output.field("bytes", hex: bytes.rawBytes) }
    output.end()
  }
}

extension ConnectionRecord: WritableRecord {
  package static var type: RecordType { .connection }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("connection")
    output.field("file", optional: file)
    output.field("connection", connection)
    if let flow { output.field("flow", flow) }
    output.field("service", service.rawValue)
    if let otherProtocol { output.field("protocol", otherProtocol.rawValue) }
    if let preamble { output.field("preamble", preamble.rawValue) }
    if let client { output.field("client", client.description) }
    if let server { output.field("server", server.description) }
    output.field("opened", knownTime: opened)
    output.field("closed", knownTime: closed)
    output.field("end", end.rawValue)
    if !notCaptured.words.isEmpty { output.field("not_captured", notCaptured.words) }
    if let open = notCaptured.client {
      output.field("client_last", knownTime: open.since)
      if let until = open.until { output.field("client_until", knownTime: until) }
    }
    if let tls {
      output.beginObject("tls")
      if let version = tls.version { output.field("version", version.description) }
      if let suite = tls.suite { output.field("cipher_suite", suite.name) }
      output.field("decrypted", tls.isDecrypted)
      if let problem = tls.problem { output.field("problem", problem) }
      if let subject = tls.clientSubject { output.field("client_subject", subject) }
      if let isResumed = tls.isResumed { output.field("resumed", isResumed) }
      if let alert = tls.alert { output.field("alert", alert) }
      if let ends = tls.certificateEnds { output.field("certificate_ends", time: Timestamp(unixSeconds: ends)) }
      if let environment = tls.environment { output.field("environment", environment.rawValue) }
      if http2 != nil, let name = tls.chosenProtocol { output.field("alpn", behind: .text(name), isAlways: true) }
      output.endObject()
    }
    output.field("client_bytes", clientBytes)
    output.field("server_bytes", serverBytes)
    output.field("missing_bytes", missingBytes)
    output.field("notifications", notifications)
    if http2 == nil {
      output.field("error_responses", errorResponses)
      output.field("feedback_tuples", feedbackTuples)
    }
    output.field("accepted", fates.accepted)
    output.field("rejected", fates.rejected)
    output.field("discarded", fates.discarded)
    output.field("unknown", fates.unknown)
    if conflictingBytes > 0 { output.field("conflicting_bytes", conflictingBytes) }
    if !limits.isEmpty { output.field("limits", limits.map(\.rawValue)) }
    if !alsoSeenAs.isEmpty { output.field("also_seen_as", ends: alsoSeenAs) }
    if let http2 { http2.write(to: &output) }
    output.field("messages", optional: messages)
    output.end()
  }
}

extension HTTP2Summary {
  fileprivate func write(to output: inout some FieldWriter & ~Copyable) {
    output.field("responses", responses)
    if !rejections.isEmpty { output.field("rejections", counts: rejections.map { ($0.name, $0.count) }) }
    output.field("provider_tokens", optional: providerTokens)
    output.field("open_streams_max", optional: openStreamsMaximum)
    output.field("stream_limit_first", optional: firstStreamLimit)
    output.field("stream_limit_last", optional: lastStreamLimit)
    output.field("goaways", goAways)
    output.field("resets", resets)
    if literalTokens > 0 {
      output.field("literal_tokens", literalTokens)
      output.field("literal_token_bytes", literalTokenBytes)
    }
    if priorityFrames > 0 { output.field("priority_frames", priorityFrames) }
    if pings.sent > 0 {
      output.field("pings", pings.sent)
      output.field("pings_answered", pings.answered)
      output.field("ping_answered", knownTime: pings.lastAnswer)
      if let least = pings.leastNanoseconds { output.field("ping_ms_least", milliseconds: least) }
      if let greatest = pings.greatestNanoseconds { output.field("ping_ms_greatest", milliseconds: greatest) }
    }
    output.beginObject("header_table_lost")
    output.field("client", clientTableLosses)
    output.field("server", serverTableLosses)
    output.endObject()
  }
}

extension CaptureLossRecord: WritableRecord {
  package static var type: RecordType { .captureLoss }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("capture_loss")
    output.field("file", optional: file)
    if let interface = loss.interface { output.field("interface", interface) }
    output.field("dropped", loss.dropped)
    output.field("interface_dropped", optional: loss.interfaceDropped)
    output.field("os_dropped", optional: loss.systemDropped)
    output.field("received", optional: loss.received)
    output.end()
  }
}

extension DeliveryRecord: WritableRecord {
  package static var type: RecordType { .delivery }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("delivery")
    output.field("connection", optional: connection)
    output.field("index", optional: index)
    output.field("time", knownTime: time)
    output.field("token", hex: token.rawBytes)
    output.field("outcome", outcome.rawValue)
    output.end()
  }
}

extension SummaryRecord: WritableRecord {
  package static var type: RecordType { .summary }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("summary")
    output.field("packets", packets)
    output.field("connections", connections)
    output.field("notifications", notifications)
    output.field("error_responses", errorResponses)
    output.field("feedback_tuples", feedbackTuples)
    output.field("gaps", gaps)
    output.field("malformed", malformed)
    output.field("undecrypted_connections", undecryptedConnections)
    if droppedPackets > 0 { output.field("dropped_packets", droppedPackets) }
    if unreadPackets > 0 { output.field("unread_packets", unreadPackets) }
    if !unread.isEmpty { output.field("unread", unread) }
    if responses > 0 { output.field("responses", responses) }
    if messages > 0 { output.field("messages", messages) }
    output.end()
  }
}
