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
        .init(
          "capture", "An input that was opened. It comes before the records that are read from it.",
          RecordFields.captureFields),
        .init(
          "notification",
          "A notification in the stream from provider to gateway; over HTTP/2 a request for a device or a broadcast.",
          RecordFields.notification),
        .init(
          "error_response",
          "An answer of the gateway, and the fates that follow from it.",
          RecordFields.errorResponse),
        .init(
          "response", "The final answer to a request over HTTP/2, of any kind.", RecordFields.response),
        .init("goaway", "A GOAWAY frame.", RecordFields.goAway),
        .init("reset", "A RST_STREAM frame.", RecordFields.reset),
        .init("settings", "A SETTINGS frame that is no acknowledgement.", RecordFields.settings),
        .init(
          "channel_request",
          "A request of channel management, with its answer; written with the answer, or at the end of the connection.",
          RecordFields.channelRequest),
        .init(
          "device", "A message of the device channel, between the simulated gateway and a simulated device.",
          RecordFields.device),
        .init("local_push", "A message of local push connectivity.", RecordFields.localPush),
        .init(
          "fate", "The fate of consecutive notifications whose own records do not have it.", RecordFields.fate),
        .init(
          "feedback", "A tuple of the feedback service: a token that no device has any more.", RecordFields.feedback),
        .init(
          "gap", "Bytes that the capture does not hold, or that belong to a record it does not hold whole.",
          RecordFields.gap),
        .init("malformed", "Bytes that cannot be parsed as a record.", RecordFields.malformed),
        .init("connection", "A connection as a whole, written when it has ended.", RecordFields.connection),
        .init(
          "capture_loss",
          "Packets that the capturing program did not get or could not write; after the records of the file.",
          RecordFields.captureLoss),
        .init(
          "delivery",
          "The outcome of an accepted notification for its device, in the records of a gateway (`simulate --records`): not written for those that are delivered at once. It may come after the record of its connection.",
          RecordFields.delivery),
        .init("summary", "Totals over everything that was read; the last record.", RecordFields.recordingTotals),
      ]),
    example: #"""
      {"type":"capture","schema":1,"source":"a.pcap","format":"pcapng","link_types":["EN10MB"]}
      {"type":"notification","connection":1,"index":0,"time":"2015-09-16T01:02:03.123456789Z",\#
      "packet":12,"offset":0,"length":98,"fate":"unknown","command":2,"identifier":7,"token":"865ab0","payload_length":25,\#
      "payload":{"aps":{"alert":"hello"}}}
      {"type":"summary","packets":12,"connections":1,"notifications":1,"error_responses":0,\#
      "feedback_tuples":0,"gaps":0,"malformed":0,"undecrypted_connections":0}
      """#)
}
