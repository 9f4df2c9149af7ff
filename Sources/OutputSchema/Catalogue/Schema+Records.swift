extension Schema {
  /// The lines of `apnscope decode`.
  public static let records = Schema(
    "records", title: "Records of a capture", form: .lines,
    text: [
      """
      `apnscope decode` writes one JSON object a line, without white space; `type` comes first and determines which fields \
      follow, in the order of these tables.
      """,
      """
      A field that was absent on the wire is absent in the record; it is never 0 or null. Integers are numbers, byte \
      strings are lower-case hexadecimal, times are RFC 3339 in UTC with nanoseconds. A payload that is not valid JSON \
      in UTF-8 is in `payload_base64`.
      """,
      """
      `connection` counts from 1 in the order of the connections' first packets; a new SYN on a used 4-tuple is a new \
      connection. `packet` counts from 1, as Wireshark's frame number does; where there are several files, in each of \
      them, and `file` says in which, from 1 in the order of the `capture` records. `offset` and `length` are bytes in that \
      direction's application stream, which is the plaintext under TLS. `time` and `packet` are those of the packet \
      that holds the record's last byte.
      """,
      """
      The decoder does not stop at damage. It finds the next frame after a gap or malformed bytes, and reports skipped \
      bytes in a `gap` or `malformed` record.
      """,
      """
      The fate of a notification depends on later bytes and is known when its connection has ended. In records of files \
      each `notification` has its `fate`. Records of standard input and pipes are written at once and without it; `fate` \
      records with ranges of notifications follow as soon as no response can change them, at the latest before the \
      connection's record. `--fates` waits for the end of the input instead. The ranges of a connection are in order and \
      without gaps. The fates of a connection's notifications add up to those in its record.
      """,
      """
      A selection (`--from`, `--token` and so on) consists of the selected records, the records and fates of their \
      connections, the `capture` record with `selection`, and a `summary` that counts the selected records. Fates, and \
      counts in the records of error responses and connections, are those of the whole recording. After `--limit` records \
      reading ends; connections that are open then have no record.
      """,
      """
      With `--fields` records have only the named fields, in JSON Lines also `type`; records with none of the \
      named fields are omitted.
      """,
      """
      Connections over HTTP/2 carry the provider API. Of a `notification`, `time` and `packet` are those of its \
      END_STREAM, `offset` is that of its HEADERS frame, and `length` is the sum of all its frames. After a gap, header \
      fields that need a lost entry of the header table are absent and named in `uncertain`; nothing that is guessed is \
      written as a value. The signature of a provider token is a credential for up to an hour and is in no record, nor \
      are other bytes of header fields that cannot be read.
      """,
      """
      Connections of the device channel and of local push carry messages (`device`, `local_push`): those of the client \
      are the device's. A message that follows a gap is known by the next one, and has its own `time` and `packet` all \
      the same.
      """,
      """
      CSV (`--format csv`) has the same fields as columns; those of `tls`, `provider_token`, `header_table_lost`, `user`, `sender` and `receiver` begin \
      with these words and `_`, lists are joined by spaces, and a field that is absent is an empty cell.
      """,
    ],
    root: .choice(
      by: "type",
      [
        .init("capture", "An input that was opened. It comes before the records that are read from it.", captureFields),
        .init(
          "notification",
          "A notification in the stream from provider to gateway; over HTTP/2 a request for a device or a broadcast.",
          notification),
        .init(
          "error_response",
          "An answer of the gateway, and the fates that follow from it.",
          errorResponse),
        .init(
          "response", "The final answer to a request over HTTP/2, of any kind.", response),
        .init("goaway", "A GOAWAY frame.", goAway),
        .init("reset", "A RST_STREAM frame.", reset),
        .init("settings", "A SETTINGS frame that is no acknowledgement.", settings),
        .init(
          "channel_request",
          "A request of channel management, with its answer; written with the answer, or at the end of the connection.",
          channelRequest),
        .init(
          "device", "A message of the device channel, between the simulated gateway and a simulated device.", device),
        .init("local_push", "A message of local push connectivity.", localPush),
        .init(
          "fate", "The fate of consecutive notifications whose own records do not have it.", fate),
        .init("feedback", "A tuple of the feedback service: a token that no device has any more.", feedback),
        .init("gap", "Bytes that the capture does not hold, or that belong to a record it does not hold whole.", gap),
        .init("malformed", "Bytes that cannot be parsed as a record.", malformed),
        .init("connection", "A connection as a whole, written when it has ended.", connection),
        .init(
          "capture_loss",
          "Packets that the capturing program did not get or could not write; after the records of the file.",
          captureLoss),
        .init(
          "delivery",
          "The outcome of an accepted notification for its device, in the records of a gateway (`simulate --records`): not written for those that are delivered at once. It may come after the record of its connection.",
          delivery),
        .init("summary", "Totals over everything that was read; the last record.", recordingTotals),
      ]),
    example: #"""
      {"type":"capture","schema":1,"source":"a.pcap","format":"pcapng","link_types":["EN10MB"]}
      {"type":"notification","connection":1,"index":0,"time":"2015-09-16T01:02:03.123456789Z",\#
      "packet":12,"offset":0,"length":98,"fate":"unknown","command":2,"identifier":7,"token":"865ab0","payload_length":25,\#
      "payload":{"aps":{"alert":"hello"}}}
      {"type":"summary","packets":12,"connections":1,"notifications":1,"error_responses":0,\#
      "feedback_tuples":0,"gaps":0,"malformed":0,"undecrypted_connections":0}
      """#)

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
  private static let connectionNumber = Field("connection", .integer, "Its connection, from 1.")
  private static let index = Field(
    "index", .integer, "Its number on the connection, from 0, among those that are in the recording.")
  private static let time = Field(
    "time", .time, "Capture time of the packet that holds the record's last byte.", when: "packets have times")
  private static let packet = Field(
    "packet", .integer, "The packet that holds the record's last byte, from 1.", when: "the input has packets")
  private static let offset = Field(
    "offset", .integer, "Where it begins in its direction's application stream.", unit: .bytes)
  private static let length = Field("length", .integer, "How long it is in the stream.", unit: .bytes)

  private static let stream = Field("stream", .integer, "Its stream.", when: "over HTTP/2", since: "0.3")
  private static let apnsID = Field("apns_id", .text, "The `apns-id`.", when: "there is one", since: "0.3")
  private static let channelID = Field(
    "channel_id", .text, "The `apns-channel-id`.", when: "there is one", since: "0.3")
  private static let requestID = Field(
    "request_id", .text, "The `apns-request-id`.", when: "there is one", since: "0.3")
  private static let status = Field("status", .integer, "The HTTP status of the answer.", when: "it is known")
  private static let reason = Field(
    "reason", .text, "The reason in the answer, as Apple names it.", when: "there is one", since: "0.3")
  private static let answerLatency = Field(
    "latency_ms", .number, "From the request's END_STREAM to the answer's HEADERS, as the capture saw them.",
    unit: .milliseconds, when: "both times are known", since: "0.3")
  private static let uncertain = Field(
    "uncertain", .array(.text),
    "Fields that are absent here and may have been sent: bytes that tell them are lost, or they hold a credential; `headers`: other header fields.",
    when: "there are any", since: "0.3")

  private static let notification: [Field] = [
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
      "kind", .payloadKind, "What the push is for.",
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

  private static let discardedBy = Field(
    "discarded_by",
    .values([
      "refused_stream": "The server reset the stream with REFUSED_STREAM.",
      "goaway": "Its stream is above the last one of the server's GOAWAY.",
      "incomplete": "The client reset the stream, or the connection ended, before the end of the request.",
    ]), "Why it was certainly not processed.", when: "over HTTP/2, if it is `discarded`", since: "0.3")

  private static let providerToken: [Field] = [
    Field("key_id", .text, "The identifier of its key, `kid`.", when: "it could be read"),
    Field("team_id", .text, "The identifier of the team, `iss`.", when: "it could be read"),
    Field(
      "issued_at", .integer, "When it was issued, `iat`, rounded down.", unit: .unixSeconds, when: "it could be read"),
    Field(
      "number", .integer, "Its number among the different ones of the connection, from 1.",
      when: "none can be missing, and there are not more than `--max-provider-tokens`"),
  ]

  private static let response: [Field] = [
    packetFile, connectionNumber, time, packet, offset, length, status,
    Field(
      "timestamp", .integer, "When APNs learned that the token is not valid.", unit: .unixMilliseconds,
      when: "there is one", since: "0.3"),
    reason,
    Field(
      "notification", .integer, "`index` of the notification that it answers.", when: "it answers one", since: "0.3"),
    answerLatency, stream, apnsID,
    Field("apns_unique_id", .text, "The `apns-unique-id`.", when: "there is one", since: "0.3"),
    channelID, requestID, uncertain,
  ]

  private static let errorCode = Field(
    "error", .text, "The error code by its name, or as a hexadecimal number.", when: "it is not cut off", since: "0.3")

  private static let goAway: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field("reason", .text, "The reason in its debug data.", when: "there is one", since: "0.3"),
    Field(
      "discarded", .integer, "Unanswered notifications on streams above: certainly not processed.",
      when: "the server sent it, and no frames may be missing"),
    Field(
      "unknown", .integer, "Unanswered notifications on other streams.",
      when: "the server sent it, and no frames may be missing"),
    Field("last_stream", .integer, "The last stream that its sender has processed or may process."),
    errorCode,
  ]

  private static let reset: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field(
      "notification", .integer, "`index` of the stream's notification.", when: "it is open, and has one", since: "0.3"),
    stream, errorCode,
  ]

  private static let settings: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field(
      "values", .map(key: .text, value: .integer),
      "The settings by their names without SETTINGS_, in their order; of a repeated one the last value."),
  ]

  private static let channelRequest: [Field] = [
    packetFile, connectionNumber, time, packet, offset, length,
    status, reason, answerLatency, stream,
    Field(
      "action",
      .values([
        "create": "A channel is created.", "read": "A channel is read.", "delete": "A channel is deleted.",
        "read_all": "All channels of the app are read.",
      ]), "The action that the request asks for."),
    Field("bundle", .text, "The bundle identifier in the path."),
    channelID, requestID,
  ]

  private static func of(_ kinds: String...) -> String {
    "`kind` is " + kinds.map { "`\($0)`" }.joined(separator: " or ")
  }

  private static let device: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field("expiration", .integer, "Until when to deliver it.", unit: .unixSeconds, when: "the message has it"),
    Field("priority", .integer, "The priority of the notification: 10, 5 or 1.", when: of("deliver")),
    Field(
      "token", .hexadecimal, "The device token; of `token_changed` the one that is no longer valid.",
      when: of("registered", "deliver", "acknowledge", "token_changed")),
    Field("payload_length", .integer, "Length of the payload.", unit: .bytes, when: of("deliver")),
    Field(
      "payload", .anything, "The payload as it was; white space outside of strings may be left out.",
      when: "it is valid JSON"),
    Field("payload_base64", .string(.base64), "The payload.", when: "it has bytes and is not valid JSON"),
    Field(
      "kind",
      .values([
        "register": "A device asks for the token of an app.", "registered": "The token.",
        "online": "A device is reachable by its tokens.", "deliver": "A notification.",
        "acknowledge": "The device has all notifications of the token up to `sequence`.",
        "token_changed": "`new_token` is valid instead of `token`.", "offline": "The sender closes the connection.",
        "refused": "The gateway does not do what was asked.",
      ]), "The message."),
    Field("reason", .text, "Why.", when: "it is refused, or the sender says why it is offline"),
    Field("topic", .text, "The app's topic.", when: "the message has one"),
    Field("push_type", .text, "The push type.", when: "the message has it"),
    Field("collapse_id", .text, "The collapse identifier.", when: "the message has it"),
    Field("version", .integer, "The version of the channel.", when: of("register", "online")),
    Field(
      "device", .integer, "The number of the device in its population, from 0.", when: of("register", "registered")),
    Field(
      "environment", .values(["production": "Production.", "development": "Development (sandbox)."]),
      "The environment of the token.", when: of("register")),
    Field("language", .text, "The language of the user as a BCP 47 tag.", when: "the message has it"),
    Field("generation", .integer, "How often the device was restored.", when: of("register")),
    Field("low_power", .boolean, "True: the device saves power.", when: "it does"),
    Field("tokens", .array(.hexadecimal), "The tokens of the device.", when: of("online")),
    Field("topics", .array(.text), "The topic of each of them.", when: of("online")),
    Field(
      "sequences", .array(.integer), "The sequence of the last notification that it has of each; 0: it has none.",
      when: of("online")),
    Field("new_token", .hexadecimal, "The token that is valid now.", when: of("token_changed")),
    Field(
      "sequence", .integer, "The number of the notification among those of the token, from 1.",
      when: of("deliver", "acknowledge")),
    Field(
      "sent", .time, "When the gateway read it from the provider, by the gateway's clock.",
      when: of("deliver") + ", and it is from 1970 to 2261"),
    Field("stored", .boolean, "True: it waited at the gateway.", when: "it did"),
    Field("repeated", .boolean, "True: it was sent on an earlier connection.", when: "it was"),
  ]

  private static let user: [Field] = [
    Field("uuid", .text, "The identifier of the user."), Field("device_name", .text, "The name of the device."),
  ]

  private static let localPush: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field(
      "command", .values(["request": "It asks.", "acknowledge": "It answers the request with its identifier."]),
      "Whether it asks or answers."),
    Field("identifier", .integer, "The identifier of the request."),
    Field("payload_length", .integer, "Length of the content.", unit: .bytes, when: of("other")),
    Field(
      "payload", .anything, "The content as it was; white space outside of strings may be left out.",
      when: of("other") + ", and it is valid JSON"),
    Field(
      "payload_base64", .string(.base64), "The content.", when: of("other") + ", and it has bytes and is not valid JSON"
    ),
    Field(
      "kind",
      .values([
        "invite": "An incoming call.", "user": "Who the client is.",
        "call_action": "A call is answered, ended or refused.",
        "text": "A text for a user.", "heartbeat": "The server is there.", "directory": "The users that are connected.",
        "other": "A content of another key, or with other members.",
      ]), "The content.", when: "it has content"),
    Field("action", .text, "The action in a call.", when: of("call_action")),
    Field(
      "sent", .time, "When it was sent, by its sender's clock; a member that `apnscope` adds.",
      when: "the message says it, from 1970 to 2261"),
    Field("coding_key", .integer, "The number of the content in the message.", when: "it has content"),
    Field("count", .integer, "The number of the heartbeat.", when: of("heartbeat")),
    Field("user", .object(user), "The user of the client.", when: of("user")),
    Field("sender", .object(user), "The user who calls or writes.", when: of("invite", "text")),
    Field(
      "receiver", .object(user), "The user who is called or written to.", when: of("invite", "call_action", "text")),
    Field("message", .text, "The text.", when: of("text")),
    Field("users", .array(.text), "The identifiers of the users.", when: of("directory")),
    Field("device_names", .array(.text), "The name of the device of each of them.", when: of("directory")),
  ]

  private static let errorResponse: [Field] = [
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

  private static let fate: [Field] = [
    connectionNumber,
    Field("first", .integer, "`index` of the first notification."),
    Field("last", .integer, "`index` of the last one."),
    Field("fate", .fate, "The fate of each of them."),
    discardedBy,
  ]

  private static let feedback: [Field] = [
    packetFile, connectionNumber, index, time, packet, offset,
    length,
    Field("timestamp", .integer, "When the device was found to have lost the app.", unit: .unixSeconds),
    Field("token", .hexadecimal, "The device token."),
  ]

  private static let direction = Field("direction", .direction, "Which way the bytes went.")

  private static let gap: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset,
    length, Field("reason", .gapReason, "Why the bytes are not there, or not a record."),
    Field(
      "header_table", .boolean, "True: entries of the direction's header table are lost (HTTP/2).", when: "it is so",
      since: "0.3"),
  ]

  private static let malformed: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field("problem", .text, "The error, in words."),
    Field(
      "bytes", .hexadecimal, "The first of the bytes, at most 64.",
      when: "of the binary protocol; elsewhere they may be those of a credential or a token"),
  ]

  private static let connection: [Field] = [
    Field("file", .integer, "The file of its first packet, from 1.", when: "there are several"),
    connectionNumber,
    Field(
      "flow", .text, "Both ends, and when it was opened: the same key in every part of a recording.",
      when: "a part was read (`--shard`)"),
    Field("service", .service, "Service that the connection uses."),
    Field("protocol", .otherProtocol, "The other protocol that was recognised.", when: "there is one"),
    Field(
      "preamble", .preamble, "What stood before the first record or TLS; its bytes are in no count.",
      when: "something did", since: "0.2"),
    Field("client", .text, "Address and port of the provider.", when: "the input has packets"),
    Field("server", .text, "Address and port of the gateway or feedback service.", when: "the input has packets"),
    Field("opened", .time, "Time of the first packet.", when: "packets have times"),
    Field("closed", .time, "Time of the first FIN or RST.", when: "one was seen"),
    Field("end", .connectionEnd, "Who ended it, by the first FIN or RST."),
    Field(
      "not_captured", .array(.notCaptured), "What the recording does not show of it.",
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

  private static let tableLosses: [Field] = [
    Field("client", .integer, "The client's."),
    Field("server", .integer, "The server's."),
  ]

  private static let ends: [Field] = [
    Field("client", .text, "Address and port of the client."),
    Field("server", .text, "Address and port of the server."),
  ]

  private static let tls: [Field] = [
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

  private static let delivery: [Field] = [
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
      ]), "What became of it."),
  ]

  private static let captureLoss: [Field] = [
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
