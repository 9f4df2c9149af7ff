/// The fields of the lines of `apnscope decode`: of every record, and of the binary protocol.
enum RecordFields {
  static let captureFields: [Field] = [
    Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
    Field("source", .text, "The input as it was named on the command line; `-` is standard input."),
    Field("format", .captureFormat, "Format of the file."),
    Field("link_types", .array(.text), "Link types of the packets by their registered names; empty for a dump."),
    Field(
      "selection", .array(.text),
      "The selection of the following records, as options of the command, each with one value.",
      when: "options select records"),
    Field("file", .integer, "Its number, from 1, in the order in which files are read.", when: "there are several"),
  ]

  static let packetFile = Field(
    "file", .integer, "The file of that packet, from 1 in the order of `capture` records.", when: "there are several")
  static let connectionNumber = Field("connection", .integer, "Its connection, from 1.")
  static let index = Field(
    "index", .integer, "Its number on the connection, from 0, among those that are in the recording.")
  static let time = Field(
    "time", .time, "Capture time of the packet that holds the record's last byte.", when: "packets have times")
  static let packet = Field(
    "packet", .integer, "The packet that holds the record's last byte, from 1.", when: "the input has packets")
  static let offset = Field(
    "offset", .integer, "Where it begins in its direction's application stream.", unit: .bytes)
  static let length = Field("length", .integer, "How long it is in the stream.", unit: .bytes)

  static let notification: [Field] = [
    packetFile, connectionNumber, index, time, packet, offset,
    length,
    Field(
      "fate", .fate, "Its fate at the end of its connection.",
      when: "the input was read twice: it is a file, or `--fates` was given"),
    Field(
      "command", .integer, "The command byte that was on the wire: 0 simple, 1 enhanced, 2 framed.",
      when: "of the binary protocol"),
    Field("identifier", .integer, "The four bytes as an unsigned big-endian number.", when: "the frame has one"),
    Field("expiration", .integer, "Until when to deliver it.", unit: .unixSeconds, when: "the frame has one"),
    Field("priority", .integer, "10: at once; 5: when it suits the device's power.", when: "the frame has one"),
    Field("token", .hexadecimal, "The device token.", when: "the frame has one"),
    Field("payload_length", .integer, "Length of the payload on the wire.", unit: .bytes, when: "the frame has one"),
    Field(
      "payload", .anything, "The payload as it was; white space outside of strings may be left out.",
      when: "it is valid JSON"),
    Field("payload_base64", .string(.base64), "The payload.", when: "it has bytes and is not valid JSON"),
    Field(
      "kind", .payloadKind, "The purpose of the push.",
      when: "payloads are judged (not with `--no-lint`), and the fields that it depends on are certain"),
    Field(
      "lint", .array(.payloadRule), "Rules that the payload or its frame breaks, sorted.",
      when: "`kind` is there, and it breaks one"),
    Field(
      "items", .array(.tuple([.integer, .hexadecimal])),
      "Items with an unknown id, an unusual length, or an id seen before: id and bytes.",
      when: "the frame has such items"),
    Field("item_order", .array(.integer), "Ids of all items in their order.", when: "they do not ascend"),
    Field(
      "problem", .text, "Why the items do not fit the frame, whose length is right; the fields are those before it.",
      when: "the frame is malformed inside"),
    stream, discardedBy,
    Field(
      "bundle", .text, "The bundle identifier in the path of a broadcast.", when: "it is a broadcast", since: "0.3"),
    Field("topic", .text, "The `apns-topic`.", when: "there is one", since: "0.3"),
    Field("push_type", .text, "The `apns-push-type`.", when: "there is one", since: "0.3"),
    apnsID,
    Field("collapse_id", .text, "The `apns-collapse-id`.", when: "there is one", since: "0.3"),
    channelID, requestID,
    Field(
      "path", .text, "The path as it was sent.", when: "it has no device token and names no broadcast", since: "0.3"),
    Field("method", .text, "The method of the request.", when: "it is not POST", since: "0.3"),
    Field(
      "trust",
      .values([
        "token": "By the provider token of the request.", "certificate": "By the certificate of the connection.",
        "none": "By nothing: no provider token, and a handshake that was read without a certificate.",
      ]), "How the provider is trusted.", when: "over HTTP/2, if it is known", since: "0.3"),
    Field("provider_token", .object(providerToken), "The provider token.", when: "there is one", since: "0.3"),
    Field(
      "headers", .array(.tuple([.text, .text])),
      "Header fields that no other field has, in their order: names and values. Never `authorization`.",
      when: "there are any", since: "0.3"),
    Field("started", .time, "Capture time of its HEADERS.", when: "over HTTP/2, if they are there", since: "0.3"),
    Field(
      "open_streams", .integer, "Streams that were open at its HEADERS, with its own.",
      when: "over HTTP/2, if no frames can be missing", since: "0.3"),
    Field(
      "stream_limit", .integer, "The server's limit on them that was in force.", when: "there is one, and it is known",
      since: "0.3"),
    uncertain,
    Field(
      "status", .integer, "The HTTP status of its answer.", when: "over HTTP/2, if it is known as this is written",
      since: "0.3"),
    Field(
      "reason", .text, "The reason of its rejection, as Apple names it.",
      when: "over HTTP/2, if it is known as this is written", since: "0.3"),
    Field(
      "latency_ms", .number, "From its END_STREAM to the HEADERS of its answer, as the capture saw them.",
      unit: .milliseconds, when: "over HTTP/2, if it is known as this is written", since: "0.3"),
  ]

  static let discardedBy = Field(
    "discarded_by",
    .values([
      "refused_stream": "The server reset the stream with REFUSED_STREAM.",
      "goaway": "Its stream is above the last one of the server's GOAWAY.",
      "incomplete": "The client reset the stream, or the connection ended, before the end of the request.",
    ]), "Why it was certainly not processed.", when: "over HTTP/2, if it is `discarded`", since: "0.3")

  static let errorResponse: [Field] = [
    packetFile, connectionNumber, time, packet, offset,
    Field("command", .integer, "The command byte: 8; servers other than APNs gateways send other values."),
    Field("status", .integer, "The status code."),
    Field("status_name", .statusName, "Meaning of the status code."),
    Field("identifier", .integer, "The identifier that it names, as an unsigned big-endian number."),
    Field(
      "notification", .integer, "`index` of the notification that it names; with status 10 the last accepted one.",
      when: "one was seen"),
    Field(
      "accepted", .integer, "Notifications of the connection before the named one; with status 10 it as well.",
      when: "`notification` is there"),
    Field(
      "discarded", .integer, "Notifications of the connection after the named one, which the gateway ignored.",
      when: "`notification` is there"),
    Field(
      "latency_ms", .number, "From the named notification's last byte to the response's, as the capture saw them.",
      unit: .milliseconds, when: "both times are known"),
    Field(
      "candidates", .integer, "Notifications with the identifier; the latest was taken.",
      when: "there are several"),
    Field(
      "ambiguous", .boolean, "True: identifier 0 may mean \"none\", so the response settles nothing.",
      when: "it is so"),
  ]

  static let fate: [Field] = [
    connectionNumber,
    Field("first", .integer, "`index` of the first notification."),
    Field("last", .integer, "`index` of the last one."),
    Field("fate", .fate, "The fate of each of them."),
    discardedBy,
  ]

  static let feedback: [Field] = [
    packetFile, connectionNumber, index, time, packet, offset,
    length,
    Field("timestamp", .integer, "When the device was found to have lost the app.", unit: .unixSeconds),
    Field("token", .hexadecimal, "The device token."),
  ]
  static let direction = Field("direction", .direction, "Which way the bytes went.")

  static let gap: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset,
    length, Field("reason", .gapReason, "Why the bytes are not there, or not a record."),
    Field(
      "header_table", .boolean, "True: entries of the direction's header table are lost (HTTP/2).", when: "it is so",
      since: "0.3"),
  ]

  static let malformed: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field("problem", .text, "The error, in words."),
    Field(
      "bytes", .hexadecimal, "The first of the bytes, at most 64.",
      when: "of the binary protocol; elsewhere they may be those of a credential or a token"),
  ]

  static let connection: [Field] = [
    Field("file", .integer, "The file of its first packet, from 1.", when: "there are several"),
    connectionNumber,
    Field(
      "flow", .text, "Both ends, and when it was opened: the same key in every part of a recording.",
      when: "a part was read (`--shard`)"),
    Field("service", .service, "Service that the connection uses."),
    Field("protocol", .otherProtocol, "The other protocol that was recognised.", when: "there is one"),
    Field(
      "preamble", .preamble, "The bytes before the first record or TLS, which are in no count.",
      when: "something did", since: "0.2"),
    Field("client", .text, "Address and port of the provider.", when: "the input has packets"),
    Field("server", .text, "Address and port of the gateway or feedback service.", when: "the input has packets"),
    Field("opened", .time, "Time of the first packet.", when: "packets have times"),
    Field("closed", .time, "Time of the first FIN or RST.", when: "one was seen"),
    Field("end", .connectionEnd, "The end that closed it, by the first FIN or RST."),
    Field(
      "not_captured", .array(.notCaptured), "The parts of it that the recording does not show.",
      when: "its beginning or one of its ends was not captured", since: "0.2"),
    Field(
      "client_last", .time, "When the client was heard last: it may have sent more.",
      when: "`not_captured` has `client_end`, and packets have times", since: "0.2"),
    Field(
      "client_until", .time, "When a RST ended the connection.", when: "`client_last` is there, and one was captured",
      since: "0.2"),
    Field(
      "tls", .object(tls), "TLS parameters, and whether the connection could be decrypted.",
      when: "the connection uses TLS"),
    Field(
      "client_bytes", .integer, "Application bytes from the client in the capture; TLS bytes when not decrypted.",
      unit: .bytes),
    Field(
      "server_bytes", .integer, "Application bytes from the server in the capture; TLS bytes when not decrypted.",
      unit: .bytes),
    Field(
      "missing_bytes", .integer, "Bytes that were sent and are not in the capture, both directions; of TLS under TLS.",
      unit: .bytes),
    Field("notifications", .integer, "Notifications that were decoded, malformed ones with an index among them."),
    Field("error_responses", .integer, "Error responses that were decoded.", when: "it is not over HTTP/2"),
    Field("feedback_tuples", .integer, "Feedback tuples that were decoded.", when: "it is not over HTTP/2"),
    Field("accepted", .integer, "The part of `notifications` that is proven accepted."),
    Field("rejected", .integer, "The part of `notifications` that error responses name; not those of status 10."),
    Field(
      "discarded", .integer,
      "The part of `notifications` after the one that an error response names, which the gateway ignored."),
    Field("unknown", .integer, "The part of `notifications` whose fate the protocol leaves open."),
    Field(
      "conflicting_bytes", .integer, "Bytes that were sent twice with different contents; the first ones were used.",
      unit: .bytes, when: "there are any"),
    Field(
      "limits", .array(.limit), "Limits that were hit: the options of these names, with `_` for `-`.",
      when: "there are any"),
    Field(
      "also_seen_as", .array(.object(ends)),
      "Other addresses under which the same packets were captured: those before or after a translation; the first 16.",
      when: "there are any", since: "0.2"),
    Field(
      "responses", .integer, "Final answers to requests of any kind.", when: "over HTTP/2", since: "0.3"),
    Field(
      "rejections", .map(key: .text, value: .integer),
      "Rejected notifications by reason, or by status without one of at most 128 bytes; beyond `--max-rejection-reasons` of them, or after `limits` has `memory`, `other`.",
      when: "there are any",
      since: "0.3"),
    Field(
      "provider_tokens", .integer, "Different provider tokens.",
      when: "over HTTP/2, if none can be missing, and there are not more than `--max-provider-tokens`", since: "0.3"),
    Field(
      "open_streams_max", .integer, "The most streams that were open at once.",
      when: "over HTTP/2, if no frames can be missing", since: "0.3"),
    Field(
      "stream_limit_first", .integer, "The server's first limit on open streams that was in force.",
      when: "there is one, and it is known", since: "0.3"),
    Field(
      "stream_limit_last", .integer, "The limit at the end.", when: "there is one, and it is known",
      since: "0.3"),
    Field("goaways", .integer, "GOAWAY frames of the server.", when: "over HTTP/2", since: "0.3"),
    Field("resets", .integer, "RST_STREAM frames of both sides.", when: "over HTTP/2", since: "0.3"),
    Field(
      "literal_tokens", .integer, "Requests whose provider token was sent in full and added to no header table.",
      when: "there are any", since: "0.3"),
    Field(
      "literal_token_bytes", .integer, "The bytes of these values as they were coded.", unit: .bytes,
      when: "there are any", since: "0.3"),
    Field("priority_frames", .integer, "PRIORITY frames of the client.", when: "there are any", since: "0.3"),
    Field("pings", .integer, "PING frames of the client.", when: "there are any", since: "0.3"),
    Field(
      "pings_answered", .integer, "Those that are known to be answered; none after frames may be missing.",
      when: "there are `pings`", since: "0.3"),
    Field("ping_answered", .time, "When the latest answer came.", when: "there is one", since: "0.3"),
    Field(
      "ping_ms_least", .number, "The shortest time from a PING to its answer.", unit: .milliseconds,
      when: "one is known", since: "0.3"),
    Field("ping_ms_greatest", .number, "The longest.", unit: .milliseconds, when: "one is known", since: "0.3"),
    Field(
      "header_table_lost", .object(tableLosses), "How often each side's header table was lost.", when: "over HTTP/2",
      since: "0.3"),
    Field(
      "messages", .integer, "Messages that were decoded.", when: "`protocol` is `devices` or `local_push`", since: "0.3"
    ),
  ]

  static let ends: [Field] = [
    Field("client", .text, "Address and port of the client."),
    Field("server", .text, "Address and port of the server."),
  ]

  static let tls: [Field] = [
    Field("version", .text, "Protocol version as `TLS 1.2`.", when: "a ServerHello was seen"),
    Field("cipher_suite", .text, "Registered name of the cipher suite.", when: "a ServerHello was seen"),
    Field("decrypted", .boolean, "False when application data was encrypted and none of it could be decrypted."),
    Field("problem", .text, "Why some or all of it could not be read, in words.", when: "there is a reason"),
    Field("client_subject", .text, "Subject of the client's certificate.", when: "it was seen"),
    Field("resumed", .boolean, "Whether a session was resumed.", when: "it is known from the handshake"),
    Field(
      "alert", .text, "The first alert but close_notify, as `bad_certificate from the client`.",
      when: "there was one"),
    Field("certificate_ends", .time, "When the client's certificate ends.", when: "it was seen", since: "0.2"),
    Field(
      "environment", .providerEnvironment, "The environment that Apple's extensions of that certificate name.",
      when: "there are any", since: "0.2"),
    Field(
      "alpn", .text, "The protocol that was negotiated (ALPN).", when: "over HTTP/2, if the choice was seen",
      since: "0.3"),
  ]

  static let delivery: [Field] = [
    Field(
      "connection", .integer, "Number of the notification's connection.", when: "the connection is in the records"),
    Field("index", .integer, "The notification's number on it, from 0.", when: "the connection is in the records"),
    Field("time", .time, "When it was decided."),
    Field("token", .hexadecimal, "The device token."),
    Field(
      "outcome",
      .values([
        "delivered": "The device came online, and got it.",
        "coalesced": "A later one for the same device and topic took its place before the device came online.",
        "expired": "Its expiration passed, or it was not to be stored.",
        "dropped":
          "It was dropped while it could still have been delivered: the store was full, or a test changed the device.",
        "uninstalled": "The app is uninstalled: its token is on the feedback list.",
        "stored": "It waited when the gateway ended.",
      ]), "Its outcome."),
  ]

  static let captureLoss: [Field] = [
    Field("file", .integer, "The file with the statistics, from 1.", when: "there are several"),
    Field("interface", .text, "Name of the interface.", when: "the capture reports it"),
    Field("dropped", .integer, "Packets that were dropped; of the files of a ring, since the capture began."),
    Field(
      "interface_dropped", .integer, "The part of `dropped` that the interface dropped.", when: "the capture reports it"
    ),
    Field(
      "os_dropped", .integer, "The part of `dropped` that the operating system or the capturing program dropped.",
      when: "the capture reports it"),
    Field("received", .integer, "Packets that the interface received.", when: "the capture reports it"),
  ]

  /// Packets of all inputs that were dropped or not read.
  static let packetsNotRead: [Field] = [
    Field(
      "dropped_packets", .integer, "Packets that the capturing program did not get or could not write.",
      when: "there are any"),
    Field(
      "unread_packets", .integer,
      "Packets of link types, tunnels and other protocols that are not read and may hold TCP.",
      when: "there are any", since: "0.2"),
    Field(
      "unread", .array(.text),
      "What these packets are: count, first packet, name and number of the protocol, and how it can be read after all. Without a connection all packets are named that hold no TCP.",
      when: "there are any", since: "0.2"),
  ]
  static let recordingTotals: [Field] = totalsOfAllProtocols + [responsesInAll, messagesInAll]
  static let messagesInAll = Field(
    "messages", .integer, "Messages of the device channel and of local push.", when: "there are any", since: "0.3")

  /// What came with HTTP/2 stands last, wherever the totals go on.
  static let responsesInAll = Field(
    "responses", .integer, "Final answers over HTTP/2.", when: "there are any", since: "0.3")

  static let totalsOfAllProtocols: [Field] =
    [
      Field("packets", .integer, "Packets in all inputs."),
      Field("connections", .integer, "Connections in all inputs."),
      Field("notifications", .integer, "Notifications that were decoded."),
      Field("error_responses", .integer, "Error responses that were decoded."),
      Field("feedback_tuples", .integer, "Feedback tuples that were decoded."),
      Field("gaps", .integer, "`gap` records."),
      Field("malformed", .integer, "`malformed` records, and notifications with a `problem`."),
      Field("undecrypted_connections", .integer, "TLS connections that could not be decrypted."),
    ] + packetsNotRead
}
