extension Schema {
  /// The document of `apnscope inspect --format json`.
  public static let inspection = Schema(
    "inspection", title: "Inspection of recordings", form: .document,
    text: [
      """
      `apnscope inspect --format json` writes one JSON document with all that it counts. It sees the same records that \
      `apnscope decode` writes, and fates have the same meaning.
      """
    ],
    root: .object([
      Field(
        "schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it.", since: "0.2"),
      Field("kind", .word("inspect"), "Which document it is.", since: "0.2"),
      Field("files", .array(.object(file)), "The inputs that were read."),
      Field(
        "selection", .array(.text), "The selection that all figures are of, as options of the command.",
        when: "options select records"),
      Field("summary", .object(summary), "Totals, as in the record `summary`."),
      Field(
        "connections", .array(.object(connection)),
        "Connections one by one, up to `--max-listed`, in the order of `--sort`."),
      Field("connections_not_listed", .integer, "Connections that are counted and not listed."),
      Field("missing_bytes", .integer, "Bytes that were sent and are not in the capture.", unit: .bytes),
      Field("tls", .object(tlsTotals), "Connections with TLS, and the bytes that it added."),
      Field("gaps_by_reason", .map(key: .gapReason, value: .integer), "Gaps by reason; others had none."),
      Field("malformed", .integer, "Stretches of unparsable bytes, and frames whose items do not fit."),
      Field(
        "notifications_by_command", .tuple([.integer, .integer, .integer]), "Notifications of commands 0, 1 and 2."),
      Field("fates", .object(fates), "Notifications by fate."),
      Field(
        "http2", .object(requests), "Counts of the HTTP/2 provider API.", when: "there is any", since: "0.3"),
      Field(
        "devices", .object(deviceCounts), "Counts of the device channel.", when: "there is any", since: "0.3"),
      Field("local_push", .object(localPushCounts), "Counts of local push.", when: "there is any", since: "0.3"),
      Field(
        "stories", .object(distinct),
        "Distinct notifications (one token and payload) by what became of them over all of their sendings, by the rules of `apnscope follow`; those that nothing happened to are not among them.",
        when: "any were sent", since: "0.2"),
      Field("error_count", .integer, "Error responses."),
      Field("errors_by_status", .countsByStatus, "Error responses by status."),
      Field(
        "errors", .array(.object(listedResponse)),
        "Error responses one by one, up to `--max-listed`, in the order of `--sort`."),
      Field("feedback_connections", .integer, "Connections to a feedback service."),
      Field("feedback_tuples", .integer, "Feedback tuples."),
      Field(
        "notifications_per_second", .distribution, "Over the seconds in which any were sent.",
        when: "any have a time"),
      Field("payload_lengths", .distribution, "Lengths of payloads, in bytes.", when: "there are any"),
      Field(
        "payloads", .object(payloads), "Payloads by kind, and the rules that they break.", when: "they were judged"),
      Field(
        "notifications_per_segment", .distribution, "Notifications that ended in one TCP segment.",
        when: "there are segments"),
      Field(
        "opens_per_minute", .distribution, "Over the minutes in which any connections were opened.",
        when: "any have a time"),
      Field(
        "lifetimes_s", .distribution, "Seconds from a connection's first packet to its first FIN or RST.",
        when: "any ended"),
      Field("lifetimes", .distribution, "The same as `lifetimes_s`.", until: "0.2"),
      Field("ends", .map(key: .connectionEnd, value: .integer), "Connections by who ended them."),
      Field(
        "repeatedly_rejected_tokens", .array(.object(token)), "Tokens that were rejected twice or more, up to 20."),
      Field("findings", .array(.object(listedFinding)), "Findings worth a look, losses of notifications first."),
      Field(
        "counts", .object(counts),
        "Values from which `apnscope merge` computes the distributions and findings of a whole.",
        when: "reading has ended", since: "0.2"),
    ]),
    example: #"""
      {
        "schema": 1, "kind": "inspect",
        "summary": {"packets": 146, "connections": 2, "notifications": 66},
        "fates": {"accepted": 7, "rejected": 1, "discarded": 26, "unknown": 32},
        "errors_by_status": {"8": 1}
      }
      """#)

  private static let file: [Field] = [
    Field("file", .integer, "Its number in other fields, from 1.", when: "there are several"),
    Field("source", .text, "The input as it was named."),
    Field("format", .captureFormat, "Format of the file."),
    Field("link_types", .array(.text), "Link types of the packets by their registered names."),
    Field("bytes", .integer, "Its size.", unit: .bytes, when: "it is a file"),
    Field("packets", .integer, "Packets in it."),
    Field("cut_packets", .integer, "The part of `packets` that the snap length cut."),
    Field("first_time", .time, "Time of the first packet.", when: "packets have times"),
    Field("last_time", .time, "Time of the last packet.", when: "packets have times"),
    Field("duration_s", .number, "From one to the other.", unit: .seconds, when: "packets have times"),
    Field("warnings", .array(.text), "Damage of the file itself."),
  ]

  private static let summary: [Field] =
    [
      Field("packets", .integer, "Packets in all inputs."),
      Field("connections", .integer, "Connections in all inputs."),
      Field("notifications", .integer, "Notifications that were decoded."),
      Field("error_responses", .integer, "Error responses that were decoded."),
      Field("feedback_tuples", .integer, "Feedback tuples that were decoded."),
      Field("gaps", .integer, "Gaps."),
      Field("malformed", .integer, "Stretches of unparsable bytes, and frames whose items do not fit."),
      Field("undecrypted_connections", .integer, "TLS connections that could not be decrypted."),
    ] + RecordFields.packetsNotRead + [
      Field(
        "responses", .integer, "Final answers over HTTP/2 that were decoded.", when: "there are any", since: "0.3"),
      RecordFields.messagesInAll,
    ]

  private static let connection: [Field] = [
    Field("connection", .integer, "Its number, from 1."),
    Field("file", .integer, "The file of its first packet.", when: "there are several"),
    Field("service", .service, "Service that the connection uses."),
    Field("protocol", .otherProtocol, "The other protocol that was recognised.", when: "there is one"),
    Field(
      "preamble", .preamble, "The bytes before the first record or TLS, which are in no count.",
      when: "something did", since: "0.2"),
    Field("client", .text, "Address and port of the provider.", when: "the input has packets"),
    Field("server", .text, "Address and port of the gateway or feedback service.", when: "the input has packets"),
    Field("opened", .time, "Time of the first packet.", when: "packets have times"),
    Field("duration_s", .number, "Until the first FIN or RST.", unit: .seconds, when: "one was seen"),
    Field("end", .connectionEnd, "Who ended it."),
    Field("encrypted", .boolean, "Whether it uses TLS and could not be decrypted."),
    Field("notifications", .integer, "Notifications on it."),
    Field("commands", .tuple([.integer, .integer, .integer]), "The parts of them with command 0, 1 and 2."),
    Field("feedback_tuples", .integer, "Feedback tuples on it."),
    Field("accepted", .integer, "The part of `notifications` that is proven accepted."),
    Field("rejected", .integer, "The part of `notifications` that error responses name; not those of status 10."),
    Field("discarded", .integer, "The part of `notifications` that the gateway ignored."),
    Field("unknown", .integer, "The part of `notifications` whose fate the protocol leaves open."),
    Field("first_error_status", .integer, "Status of the first error response.", when: "there was one"),
    Field("first_error_name", .statusName, "Meaning of that status.", when: "there was one"),
    Field(
      "discarded_after_first_error", .integer, "Notifications that it discarded.", when: "it names a notification"),
    Field("missing_bytes", .integer, "Bytes that were sent and are not in the capture.", unit: .bytes),
    Field("tls", .object(tlsRow), "TLS parameters of the connection.", when: "it uses TLS"),
    Field(
      "http2", .object(requestRow), "Counts of a connection over HTTP/2.", when: "it was read as that", since: "0.3"),
    Field(
      "devices", .object(deviceCounts), "Counts of a connection of the device channel.", when: "it was read as that",
      since: "0.3"),
    Field(
      "local_push", .object(localPushCounts), "Counts of a connection of local push.", when: "it was read as that",
      since: "0.3"),
    Field(
      "also_seen_as", .array(.object(ends)),
      "Other addresses under which the same packets were captured: those before or after a translation.",
      when: "there are any", since: "0.2"),
  ]

  private static let deviceCounts: [Field] = [
    Field("connections", .integer, "Connections.", when: "they are the counts of the whole"),
    Field("messages", .integer, "Messages of both ends."),
    Field("deliveries", .integer, "Notifications that the gateway sent."),
    Field("acknowledged", .integer, "The part of `deliveries` that was acknowledged."),
    Field(
      "unacknowledged", .integer,
      "The part of `deliveries` that the device had not acknowledged when it closed its direction, all of which was recorded."
    ),
    Field("open", .integer, "The part of `deliveries` whose acknowledgement may be missing from the recording."),
    Field(
      "not_growing", .integer, "The part of `deliveries` with a sequence that is not above an earlier one of the token."
    ),
    Field("stored", .integer, "The part of `deliveries` that had waited at the gateway."),
    Field("repeated", .integer, "The part of `deliveries` that was sent on an earlier connection."),
  ]

  private static let localPushCounts: [Field] = [
    Field("connections", .integer, "Connections.", when: "they are the counts of the whole"),
    Field("messages", .integer, "Messages of both ends."),
    Field("requests", .integer, "Requests of both ends."),
    Field("acknowledged", .integer, "The part of `requests` that was acknowledged within 10 s."),
    Field("late", .integer, "The part of `requests` that was acknowledged later."),
    Field(
      "unacknowledged", .integer,
      "The part of `requests` that was not acknowledged, where the other end was recorded for 10 s or to its end."),
    Field("open", .integer, "The part of `requests` whose acknowledgement may be missing from the recording."),
    Field("heartbeats", .integer, "Heartbeats of servers."),
    Field("silences", .integer, "Times of over 30 s without a message of the server, with nothing missing."),
    Field(
      "longest_interval_s", .number, "The longest time between two heartbeats, with nothing missing.", unit: .seconds,
      when: "there are two"),
  ]

  private static let ends: [Field] = [
    Field("client", .text, "Address and port of the provider."),
    Field("server", .text, "Address and port of the gateway or feedback service."),
  ]

  private static let requestRow: [Field] = [
    Field("responses", .integer, "Final answers to requests of any kind."),
    Field(
      "rejections", .map(key: .text, value: .integer), "Rejected notifications by reason, or by status without one."),
    Field("provider_tokens", .integer, "Different provider tokens.", when: "none can be missing"),
    Field("open_streams_max", .integer, "The most streams that were open at once.", when: "it is known"),
    Field("stream_limit_first", .integer, "The gateway's first limit on them in force.", when: "it is known"),
    Field("stream_limit_last", .integer, "The latest one.", when: "it is known"),
    Field("goaways", .integer, "GOAWAY frames of the gateway."),
    Field("resets", .integer, "RST_STREAM frames of both sides."),
  ]

  static let requests: [Field] = [
    Field("connections", .integer, "Connections with requests of the API, channel management included."),
    Field("notifications", .integer, "Requests to a device or a channel; also in the counts of the whole."),
    Field("responses", .integer, "Final answers to requests of any kind."),
    Field("channel_requests", .integer, "Requests of channel management.", when: "there are any"),
    Field("fates", .object(requestFates), "The notifications by fate, on connections that have ended."),
    Field(
      "answers",
      .array(
        .object([
          Field("status", .integer, "HTTP status.", when: "the answer has one, and it is not lost"),
          Field("reason", .text, "The reason; beyond 256 different answers `other`.", when: "the answer has one"),
          Field("count", .integer, "Answers with both."),
        ])), "Answers to notifications by status and reason, the most frequent first."),
    Field("discarded_by", .map(key: .text, value: .integer), "Discarded notifications by cause, as in `decode`."),
    Field(
      "goaways",
      .array(
        .object([
          Field("error", .text, "Name of the error code."),
          Field("reason", .text, "The reason in the debug data.", when: "there is one"),
          Field("count", .integer, "Frames with both."),
        ])), "GOAWAY frames of gateways, the most frequent first."),
    Field("resets", .map(key: .text, value: .integer), "RST_STREAM frames of gateways by error."),
    Field(
      "latency", .histogram, "From a notification's END_STREAM to its answer's header fields.",
      when: "any are known"),
    Field(
      "open_streams", .histogram, "Streams that were open when a notification began, with its own.",
      when: "any are known"),
    Field(
      "stream_limit_lowest", .integer, "The gateway's lowest limit in force when one began.", when: "any is known"),
    Field("stream_limit_highest", .integer, "The highest.", when: "any is known"),
    Field("per_connection", .histogram, "Notifications of a connection that has ended.", when: "any has"),
    Field(
      "header_bytes", .histogram,
      "Bytes of a notification's frames without its payload: the header block, and 9 bytes for each frame.",
      when: "any are known"),
    Field(
      "provider_tokens", .integer, "Different provider tokens, on each connection on its own.",
      when: "none can be missing"),
    Field(
      "token_age_least_s", .number,
      "The least age of a provider token when a notification began; negative: issued later.",
      unit: .seconds, when: "one names its time"),
    Field("token_age_greatest_s", .number, "The greatest.", unit: .seconds, when: "one names its time"),
    Field(
      "pings", .integer, "PING frames of clients, on connections that have ended.", when: "there are any", since: "0.3"),
    Field("pings_answered", .integer, "Those that are known to be answered.", when: "there are `pings`", since: "0.3"),
    Field(
      "ping_ms_least", .number, "The shortest time from a PING to its answer.", unit: .milliseconds,
      when: "one is known", since: "0.3"),
    Field("ping_ms_greatest", .number, "The longest.", unit: .milliseconds, when: "one is known", since: "0.3"),
  ]

  private static let requestFates: [Field] = [
    Field("accepted", .integer, "Answered with 200 to 299."),
    Field("rejected", .integer, "Answered with another status."),
    Field("discarded", .integer, "Certainly not processed: refused, excluded by GOAWAY, or incomplete."),
    Field("unknown", .integer, "Everything else: no answer."),
  ]

  private static let tlsRow: [Field] = [
    Field("version", .text, "Protocol version as `TLS 1.2`.", when: "a ServerHello was seen"),
    Field("cipher_suite", .text, "Registered name of the cipher suite.", when: "a ServerHello was seen"),
    Field("key_exchange", .text, "How keys were agreed on; with TLS 1.3 the group.", when: "it is known"),
    Field("resumed", .boolean, "Whether a session was resumed.", when: "it is known from the handshake"),
    Field("decrypted", .boolean, "False when application data was encrypted and none of it decrypted."),
    Field("problem", .text, "Why some or all of it could not be read, in words.", when: "there is a reason"),
    Field("client_subject", .text, "Subject of the client's certificate.", when: "it was seen"),
    Field("certificate_ends", .time, "When the client's certificate ends.", when: "it was seen", since: "0.2"),
    Field(
      "environment", .providerEnvironment, "The environment that Apple's extensions of the client's certificate name.",
      when: "there are any", since: "0.2"),
    Field("alert", .text, "The first alert but close_notify, and who sent it.", when: "there was one"),
    Field("tls_bytes", .integer, "Bytes on the wire, both directions.", unit: .bytes),
    Field("payload_bytes", .integer, "Plaintext that they carried.", unit: .bytes),
    Field(
      "tls_bytes_per_payload_byte", .number, "`tls_bytes` over `payload_bytes`.", when: "there was plaintext"),
  ]

  private static let tlsTotals: [Field] = [
    Field("connections", .integer, "Connections with TLS."),
    Field("decrypted", .integer, "The part of `connections` that could be decrypted."),
    Field("resumed", .integer, "The part of `connections` that resumed a session."),
    Field("tls_bytes", .integer, "Bytes of the decrypted ones on the wire.", unit: .bytes),
    Field("payload_bytes", .integer, "Plaintext that they carried.", unit: .bytes),
  ]

  private static let fates: [Field] = [
    Field("accepted", .integer, "Notifications that are proven accepted."),
    Field("rejected", .integer, "Notifications that error responses name; not those of status 10."),
    Field(
      "discarded", .integer, "Notifications after the one that an error response names, which the gateway ignored."),
    Field("unknown", .integer, "Notifications whose fate the protocol leaves open."),
  ]

  static let listedResponse: [Field] = [
    Field("connection", .integer, "Its connection, from 1."),
    Field("time", .time, "Capture time of its last packet.", when: "packets have times"),
    Field("file", .integer, "The file of that packet.", when: "there are several"),
    Field(
      "packet", .integer, "The packet that holds its last byte, from 1, in its file.", when: "the input has packets"),
    Field("status", .integer, "The status code."),
    Field("status_name", .statusName, "Meaning of the status code."),
    Field("identifier", .integer, "The identifier that it names."),
    Field("notification", .integer, "Index of the notification that it names.", when: "one was seen"),
    Field("accepted", .integer, "Notifications of the connection before it.", when: "`notification` is there"),
    Field(
      "discarded", .integer, "Notifications of the connection after it.",
      when: "`notification` is there, and the connection has ended"),
    Field("sent_again", .integer, "The part of `discarded` that was seen again later.", when: "it was followed"),
    Field(
      "latency_ms", .number, "From the named notification's last byte to the response's.", unit: .milliseconds,
      when: "both times are known"),
    Field(
      "token", .text, "The token that it refused, in hexadecimal: the first 32 bytes.",
      when: "the notification is remembered", since: "0.2"),
    Field(
      "payload", .text, "The beginning of the payload that it refused.", when: "the notification is remembered",
      since: "0.2"),
    Field(
      "outcomes", .map(key: .storyOutcome, value: .integer),
      "What became of the discarded notifications over all of their sendings.", when: "any were discarded and followed",
      since: "0.2"),
  ]

  /// Quantiles of times.
  static let spans: [Field] = [
    Field("p50_s", .number, "The median.", unit: .seconds),
    Field("p99_s", .number, "The 99th percentile.", unit: .seconds),
    Field("max_s", .number, "The longest.", unit: .seconds),
  ]

  static let distinct: [Field] = [
    Field("accepted_twice", .integer, "Those of which two or more sendings were accepted."),
    Field("expired", .integer, "Those that were accepted after their expiration.", since: "0.2"),
    Field("recovered", .integer, "Those that were accepted after sendings that were not."),
    Field("accepted", .integer, "Those of which the first sending was accepted, and no other.", since: "0.2"),
    Field("open", .integer, "Those of which the recording does not show enough.", since: "0.2"),
    Field(
      "rejected", .integer,
      "Those of which no sending was accepted and one was rejected. Discarded ones without a token are `open` here."),
    Field("lost", .integer, "Those whose sendings were all discarded, where nothing could hold another."),
    Field("open_reasons", .map(key: .openReason, value: .integer), "Why those of `open` are open.", since: "0.2"),
    Field(
      "not_seen_again", .map(key: .openReason, value: .integer),
      "The part of `open_reasons` of which all sendings were discarded.", since: "0.2"),
    Field("gaps", .integer, "Gaps in what providers sent.", since: "0.2"),
    Field("gap_bytes", .integer, "Bytes in those.", unit: .bytes, since: "0.2"),
    Field(
      "recovery", .object(spans), "From the first sending to the accepted one.",
      when: "any were recovered, and packets have times"),
    Field(
      "window", .integer, "Repeats were recognised among so many notifications before each.",
      when: "there were more (`--max-remembered`)"),
    Field("window_s", .number, "The shortest time that these spanned.", unit: .seconds, when: "packets have times"),
    Field("not_tracked", .integer, "Sendings that are not counted here, because of `--max-remembered`."),
  ]

  private static let counts: [Field] = [
    Field("shard", .text, "The part of the recording, as `2/4`.", when: "`--shard` was given"),
    Field(
      "alone",
      .object([
        Field("stories", .object(distinct), "As `stories`.", when: "any notification was sent"),
        Field(
          "outcomes", .array(.map(key: .storyOutcome, value: .integer)),
          "Of each of `errors`, what became of what it discarded; empty where nothing is known."),
        Field("recoveries_s", .array(.number), "As `recoveries_s` beside it."),
      ]),
      "The outcomes of the part if the other parts hold no connections.", when: "`--shard` was given", since: "0.2"),
    Field("payload_lengths", .values, "Lengths of payloads, in bytes."),
    Field("notifications_per_segment", .values, "Notifications that ended in one TCP segment."),
    Field("sent_per_second", .values, "Notifications by second since 1970."),
    Field("opens_per_second", .values, "Opened connections by second since 1970."),
    Field("lifetimes_s", .array(.number), "Lifetimes of connections in ascending order.", unit: .seconds),
    Field("rejected_tokens", .array(.object(token)), "All rejected tokens, up to `--max-remembered`."),
    Field(
      "recoveries_s", .array(.number), "From first sendings to accepted ones, in ascending order.", unit: .seconds),
    Field("sending_connections", .integer, "Connections that carried notifications."),
    Field("one_notification_connections", .integer, "The part of them that carried one."),
    Field("feedback_read_per_second", .values, "Reads of a feedback service by second since 1970."),
    Field(
      "providers",
      .array(
        .object([
          Field("client", .text, "Address of the provider."),
          Field("server", .text, "Address and port of the gateway."),
          Field("accepted", .integer, "Notifications that are proven accepted."),
          Field("invalid_tokens", .integer, "Error responses with status 8."),
        ])), "Providers and gateways, up to `--max-listed`."),
    Field("unread", .object(unread), "Connections without readable APNs traffic."),
    Field("read_feedback_connections", .integer, "Connections to a feedback service that could be read."),
    Field("late_packets", .integer, "Packets whose time is before that of an earlier one."),
    Field("longest_delay_ns", .integer, "How far before, at most."),
  ]

  private static let unread: [Field] = [
    Field("connections", .integer, "All connections."),
    Field("encrypted", .integer, "Those that could not be decrypted."),
    Field("without_secret", .integer, "The part of `encrypted` that lacks only the secret."),
    Field("partly_encrypted", .integer, "Those that were decrypted in part."),
    Field("empty", .integer, "Those that carried no data, on ports of no known service."),
    Field("protocols", .array(.object(portProtocol)), "Other connections by server port and protocol."),
    Field("further", .integer, "Connections that are not in `protocols`, which is limited."),
    Field(
      "of_devices", .integer, "Connections on port 5223, that of devices, which were not read.",
      when: "written by 0.2 or later", since: "0.2"),
    Field(
      "encrypted_of_devices", .integer, "The part of `encrypted` on that port.", when: "written by 0.2 or later",
      since: "0.2"),
    Field(
      "encrypted_other", .integer,
      "Connections that could not be decrypted and that HTTP/2 may be in; not in `encrypted`.",
      when: "there are any", since: "0.3"),
  ]

  private static let portProtocol: [Field] = [
    Field("port", .integer, "The server's port."),
    Field("protocol", .otherProtocol, "The protocol.", when: "it was recognised"),
    Field("is_known_port", .boolean, "Whether the port is that of a gateway or feedback service."),
    Field("count", .integer, "Connections."),
  ]

  private static let payloads: [Field] = [
    Field(
      "kinds",
      .array(
        .object([
          Field("kind", .payloadKind, "What the pushes are for."), Field("count", .integer, "Notifications."),
        ])), "Notifications by kind, the most frequent first."),
    Field("findings", .array(.object(payloadFinding)), "Rules that payloads or their frames break, errors first."),
  ]

  private static let payloadFinding: [Field] = [
    Field("code", .payloadRule, "Code of the rule."),
    Field("severity", .payloadSeverity, "How much it matters."),
    Field("count", .integer, "Notifications that break it."),
    Field("first_file", .integer, "The file of that packet.", when: "there are several"),
    Field("first_packet", .integer, "The first packet that shows it, in its file.", when: "the input has packets"),
    Field("text", .text, "The rule in words."),
    Field(
      "example",
      .object([
        Field("connection", .integer, "Its connection, from 1."),
        Field(
          "text", .text,
          "The beginning of the payload, of the token in hexadecimal, or the expiration: what the rule is about."),
        Field("line", .integer, "Line of the payload, from 1.", when: "the rule has a place in the payload"),
        Field("column", .integer, "Character of the line, from 1.", when: "the rule has a place in the payload"),
        Field("message", .text, "The rule in words, with what is particular to the example."),
      ]), "The first one."),
  ]

  private static let token: [Field] = [
    Field("token_prefix", .hexadecimal, "The first eight bytes."),
    Field("token", .hexadecimal, "The first 32 bytes.", when: "it was written by 0.2 or later", since: "0.2"),
    Field("rejections", .integer, "How often it was rejected."),
  ]

  static let listedFinding: [Field] = [
    Field("kind", .findingKind, "Kind of the finding."),
    Field("count", .integer, "How often it occurs."),
    Field("first_file", .integer, "The file of that packet.", when: "there are several"),
    Field("first_packet", .integer, "The first packet that shows it, in its file.", when: "one is known"),
    Field("text", .text, "The finding in words."),
  ]
}

extension Shape {
  static let values = named(
    Definition(
      "values", "How often each value occurred.",
      .object([
        Field("values", .array(.integer), "The values, in ascending order."),
        Field("counts", .array(.integer), "How often each occurred."),
        Field("sum", .integer, "Sum of all values.", when: "the values are not times"),
        Field(
          "max", .integer, "The largest; `values` has it as the limit if it is above this.",
          when: "the values are not times"),
      ])))

  static let distribution = named(
    Definition(
      "distribution", "Where the values of a sample lie; percentiles are values that occurred.",
      .object([
        Field("count", .integer, "Values."), Field("min", .number, "The smallest."),
        Field("mean", .number, "The arithmetic mean."), Field("p50", .number, "The median."),
        Field("p95", .number, "The 95th percentile."), Field("max", .number, "The largest."),
      ])))
}
