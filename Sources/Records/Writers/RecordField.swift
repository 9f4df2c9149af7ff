/// A field of records, as a column of CSV is named.
///
/// `fields` is the one table of fields: CSV, `--fields` and files of one type take their columns and the order of these
/// from it, and the tests of outputs hold what records write, and the documented schema, against it.
package struct RecordField: Sendable {
  package let name: StaticString
  /// The types of records that may have the field.
  package let types: Set<RecordType>
  /// Those of them of which it is the last field, as others had one of the name before.
  private var isLast: Set<RecordType> = []

  private init(_ name: StaticString, _ types: RecordType...) {
    self.name = name
    self.types = Set(types)
  }

  /// With types of which it is the last field.
  private func last(of types: RecordType...) -> RecordField {
    var field = self
    field.isLast = Set(types)
    return field
  }

  private init(ofAll name: StaticString) {
    self.name = name
    types = Set(RecordType.allCases)
  }

  /// The fields of all types, in an order that preserves each type's own, but for `tls_alpn`.
  package static let fields: [RecordField] = [
    RecordField(ofAll: "type"),
    RecordField("schema", .capture),
    RecordField("source", .capture),
    RecordField("format", .capture),
    RecordField("link_types", .capture),
    RecordField("selection", .capture),
    RecordField(
      "file", .capture, .notification, .errorResponse, .response, .goAway, .reset, .settings, .channelRequest,
      .device, .localPush, .feedback, .gap, .malformed, .connection, .captureLoss),
    RecordField("interface", .captureLoss),
    RecordField("dropped", .captureLoss),
    RecordField("interface_dropped", .captureLoss),
    RecordField("os_dropped", .captureLoss),
    RecordField("received", .captureLoss),
    RecordField("packets", .summary),
    RecordField("connections", .summary),
    RecordField(
      "connection", .notification, .errorResponse, .response, .goAway, .reset, .settings, .channelRequest, .device,
      .localPush, .fate, .feedback, .gap, .malformed, .connection, .delivery),
    RecordField("flow", .connection),
    RecordField("service", .connection),
    RecordField("protocol", .connection),
    RecordField("preamble", .connection),
    RecordField("client", .connection),
    RecordField("server", .connection),
    RecordField("opened", .connection),
    RecordField("closed", .connection),
    RecordField("end", .connection),
    RecordField("not_captured", .connection),
    RecordField("client_last", .connection),
    RecordField("client_until", .connection),
    RecordField("tls_version", .connection),
    RecordField("tls_cipher_suite", .connection),
    RecordField("tls_decrypted", .connection),
    RecordField("tls_problem", .connection),
    RecordField("tls_client_subject", .connection),
    RecordField("tls_resumed", .connection),
    RecordField("tls_alert", .connection),
    RecordField("tls_certificate_ends", .connection),
    RecordField("tls_environment", .connection),
    RecordField("client_bytes", .connection),
    RecordField("server_bytes", .connection),
    RecordField("missing_bytes", .connection),
    RecordField("index", .notification, .feedback, .delivery),
    RecordField("direction", .goAway, .reset, .settings, .device, .localPush, .gap, .malformed),
    RecordField(
      "time", .notification, .errorResponse, .response, .goAway, .reset, .settings, .channelRequest, .device,
      .localPush, .feedback, .gap, .malformed, .delivery),
    RecordField(
      "packet", .notification, .errorResponse, .response, .goAway, .reset, .settings, .channelRequest, .device,
      .localPush, .feedback, .gap, .malformed),
    RecordField(
      "offset", .notification, .errorResponse, .response, .goAway, .reset, .settings, .channelRequest, .device,
      .localPush, .feedback, .gap, .malformed),
    RecordField(
      "length", .notification, .response, .goAway, .reset, .settings, .channelRequest, .device, .localPush, .feedback,
      .gap, .malformed),
    RecordField("first", .fate),
    RecordField("last", .fate),
    RecordField("fate", .notification, .fate),
    RecordField("command", .notification, .errorResponse, .localPush),
    RecordField("status", .notification, .errorResponse, .response, .channelRequest).last(of: .notification),
    RecordField("status_name", .errorResponse),
    RecordField("identifier", .notification, .errorResponse, .localPush),
    RecordField("expiration", .notification, .device),
    RecordField("priority", .notification, .device),
    RecordField("timestamp", .response, .feedback),
    RecordField("token", .notification, .device, .feedback, .delivery),
    RecordField("payload_length", .notification, .device, .localPush),
    RecordField("payload", .notification, .device, .localPush),
    RecordField("payload_base64", .notification, .device, .localPush),
    RecordField("kind", .notification, .device, .localPush),
    RecordField("lint", .notification),
    RecordField("items", .notification),
    RecordField("item_order", .notification),
    RecordField("reason", .notification, .response, .goAway, .channelRequest, .device, .gap).last(of: .notification),
    RecordField("problem", .notification, .malformed),
    RecordField("bytes", .malformed),
    RecordField("notification", .errorResponse, .response, .reset),
    RecordField("notifications", .connection, .summary),
    RecordField("error_responses", .connection, .summary),
    RecordField("feedback_tuples", .connection, .summary),
    RecordField("accepted", .errorResponse, .connection),
    RecordField("rejected", .connection),
    RecordField("discarded", .errorResponse, .goAway, .connection),
    RecordField("unknown", .goAway, .connection),
    RecordField("latency_ms", .notification, .errorResponse, .response, .channelRequest).last(of: .notification),
    RecordField("candidates", .errorResponse),
    RecordField("ambiguous", .errorResponse),
    RecordField("conflicting_bytes", .connection),
    RecordField("limits", .connection),
    RecordField("also_seen_as", .connection),
    RecordField("gaps", .summary),
    RecordField("malformed", .summary),
    RecordField("undecrypted_connections", .summary),
    RecordField("dropped_packets", .summary),
    RecordField("unread_packets", .summary),
    RecordField("unread", .summary),
    // Since 0.3: at the end, so that the columns of 0.2 stay where they were.
    RecordField("stream", .notification, .response, .reset, .channelRequest),
    RecordField("discarded_by", .notification, .fate),
    RecordField("action", .channelRequest, .localPush),
    RecordField("last_stream", .goAway),
    RecordField("error", .goAway, .reset),
    RecordField("values", .settings),
    RecordField("outcome", .delivery),
    RecordField("bundle", .notification, .channelRequest),
    RecordField("topic", .notification, .device),
    RecordField("push_type", .notification, .device),
    RecordField("apns_id", .notification, .response),
    RecordField("apns_unique_id", .response),
    RecordField("collapse_id", .notification, .device),
    RecordField("channel_id", .notification, .response, .channelRequest),
    RecordField("request_id", .notification, .response, .channelRequest),
    RecordField("path", .notification),
    RecordField("method", .notification),
    RecordField("trust", .notification),
    RecordField("provider_token_key_id", .notification),
    RecordField("provider_token_team_id", .notification),
    RecordField("provider_token_issued_at", .notification),
    RecordField("provider_token_number", .notification),
    RecordField("headers", .notification),
    RecordField("started", .notification),
    RecordField("open_streams", .notification),
    RecordField("stream_limit", .notification),
    RecordField("responses", .connection, .summary),
    RecordField("rejections", .connection),
    RecordField("provider_tokens", .connection),
    RecordField("open_streams_max", .connection),
    RecordField("stream_limit_first", .connection),
    RecordField("stream_limit_last", .connection),
    RecordField("goaways", .connection),
    RecordField("resets", .connection),
    RecordField("literal_tokens", .connection),
    RecordField("literal_token_bytes", .connection),
    RecordField("priority_frames", .connection),
    RecordField("pings", .connection),
    RecordField("pings_answered", .connection),
    RecordField("ping_answered", .connection),
    RecordField("ping_ms_least", .connection),
    RecordField("ping_ms_greatest", .connection),
    RecordField("header_table_lost_client", .connection),
    RecordField("header_table_lost_server", .connection),
    RecordField("header_table", .gap),
    RecordField("uncertain", .notification, .response),
    RecordField("version", .device),
    RecordField("device", .device),
    RecordField("environment", .device),
    RecordField("language", .device),
    RecordField("generation", .device),
    RecordField("low_power", .device),
    RecordField("tokens", .device),
    RecordField("topics", .device),
    RecordField("sequences", .device),
    RecordField("new_token", .device),
    RecordField("sequence", .device),
    RecordField("sent", .device, .localPush),
    RecordField("stored", .device),
    RecordField("repeated", .device),
    RecordField("coding_key", .localPush),
    RecordField("count", .localPush),
    RecordField("user_uuid", .localPush),
    RecordField("user_device_name", .localPush),
    RecordField("sender_uuid", .localPush),
    RecordField("sender_device_name", .localPush),
    RecordField("receiver_uuid", .localPush),
    RecordField("receiver_device_name", .localPush),
    RecordField("message", .localPush),
    RecordField("users", .localPush),
    RecordField("device_names", .localPush),
    RecordField("messages", .connection, .summary),
    RecordField("tls_alpn", .connection),
  ]

  /// Fields that are objects, and what the names of their members' columns begin with.
  package static let objects: [(name: StaticString, prefix: StaticString)] = [
    ("tls", "tls_"), ("provider_token", "provider_token_"), ("header_table_lost", "header_table_lost_"),
    ("user", "user_"), ("sender", "sender_"), ("receiver", "receiver_"),
  ]

  /// What the names of columns of an object's members begin with.
  package static func prefix(ofObject name: StaticString) -> StaticString {
    objects.first { CSVFieldWriter.equal($0.name, "", name) }?.prefix ?? ""
  }

  /// The names of the fields of one type, or of all types, in order.
  package static func names(of type: RecordType? = nil) -> [StaticString] {
    guard let type else { return fields.map(\.name) }
    let own = fields.filter { $0.types.contains(type) }
    return (own.filter { !$0.isLast.contains(type) } + own.filter { $0.isLast.contains(type) }).map(\.name)
  }
}
