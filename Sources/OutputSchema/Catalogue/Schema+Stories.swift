extension Schema {
  /// The lines of `apnscope follow`.
  public static let stories = Schema(
    "stories", title: "Stories of notifications", form: .lines,
    text: [
      """
      `apnscope follow` writes one JSON object a line, without white space: the `capture` records of the inputs, a `notification_story` \
      for each distinct notification, a `token` for each device token, and a `summary`. `type` comes first and \
      determines which fields follow, in the order of these tables.
      """,
      """
      A notification is one token, payload and topic, however often it was sent and with whatever identifiers. Its \
      sendings are in order of time, and the outcome is decided in this order: two or more accepted: `accepted_twice`; \
      the fate of any unknown: `open`; one accepted: `expired` when its expiration, other than 0, had passed when that one \
      was written, `recovered` when it was not the first, else `accepted`; none accepted: `rejected` when any was rejected, \
      or when there is no token, without which no gateway accepts it; else `lost`. A sending 10 minutes or more (`--repeat-after`) after an accepted one before it is a \
      repeat on purpose, and begins a story of its own.
      """,
      """
      `lost`, `rejected`, `recovered` and `expired` are said only when nothing that the recording does not show could hold \
      another sending; otherwise the outcome is `open`, and `open_reason` says what could: dropped packets, gaps in what \
      providers sent, connections of the same provider, or of an unknown one, that were not decrypted or not read, and \
      connections whose beginning or end was not captured. For `lost` that is also the time before and after the recording, \
      within the longest time after which anything in it was sent again, at least a minute (`--resend-within`).
      """,
      """
      "Accepted" is what the protocol proves: an error response names a later notification. Nothing says that a device \
      got one. Stories are in the order of their first sendings, tokens in the order in which they were first seen.
      """,
      """
      A topic is the UID in the client certificate of the connection, or the app's identifier at the end of its CN; a \
      connection whose certificate the recording does not show is taken to be of the topic of the others, if these have \
      only one. Frames without a token or payload, and those whose items do not fit, are stories as well, so that the \
      sendings of all stories are all notifications. Empty tokens, which clients send to learn what was accepted, have no \
      `token` record.
      """,
      """
      A selection (`--from`, `--token` and so on) is of sendings: a story is written, with all of its sendings, when one \
      of them is selected, and a token when one of its sendings or feedback tuples is. The summary counts what was \
      written after `sent`, and all of the recording before that.
      """,
      """
      CSV (`--format csv`) has the same fields as columns. Each of `sendings` is connection, index and fate joined by \
      colons, and spaces are between them.
      """,
    ],
    root: .choice(
      by: "type",
      [
        .init("capture", "An input that was opened.", RecordFields.captureFields),
        .init("notification_story", "A distinct notification, over all of its sendings.", story),
        .init("token", "A device token, over all notifications to it and what feedback says of it.", token),
        .init("summary", "Totals; the last record.", storySummary),
      ]),
    example: #"""
      {"type":"capture","schema":1,"source":"a.pcap","format":"pcapng","link_types":["EN10MB"]}
      {"type":"notification_story","outcome":"recovered","token":"865ab0","payload_length":25,"payload":{"aps":{"alert":"hello"}},\#
      "sent":2,"first_sent":"2015-09-16T01:02:03.123456789Z","last_sent":"2015-09-16T01:02:05.123456789Z",\#
      "recovered_ms":2000.000,"sendings":[{"connection":1,"index":8,"time":"2015-09-16T01:02:03.123456789Z","packet":12,\#
      "fate":"discarded","identifier":9},{"connection":2,"index":0,"time":"2015-09-16T01:02:05.123456789Z",\#
      "packet":31,"fate":"accepted","identifier":10}]}
      {"type":"token","token":"865ab0","sent":2,"accepted":1,"rejected":0,\#
      "first_seen":"2015-09-16T01:02:03.123456789Z","last_seen":"2015-09-16T01:02:05.123456789Z"}
      {"type":"summary","packets":40,"connections":2,"notifications":2,"error_responses":1,"feedback_tuples":0,"gaps":0,\#
      "malformed":0,"undecrypted_connections":0,"sent":2,"stories":1,"accepted_twice":0,"expired":0,"recovered":1,\#
      "accepted":0,"open":0,"rejected":0,"lost":0,"tokens":1}
      """#)

  private static let topic = Field("topic", .text, "The topic.", when: "the recording shows it")

  private static let story: [Field] = [
    Field("outcome", .storyOutcome, "Its outcome."),
    Field("open_reason", .openReason, "Why that is open.", when: "`outcome` is `open`", since: "0.2"),
    Field("token", .hexadecimal, "The device token.", when: "its frames have one"),
    topic,
    Field("payload_length", .integer, "Length of the payload on the wire.", unit: .bytes, when: "its frames have one"),
    Field(
      "payload", .anything, "The payload as it was; white space outside of strings may be left out.",
      when: "it is valid JSON"),
    Field("payload_base64", .string(.base64), "The payload.", when: "it has bytes and is not valid JSON"),
    Field(
      "malformed_items", .boolean,
      "True: the items do not fit its frames; token and payload are those before the error.",
      when: "it is so"),
    Field("sent", .integer, "How often it was sent."),
    Field("first_sent", .time, "Time of the first sending.", when: "packets have times"),
    Field("last_sent", .time, "Time of the last sending.", when: "packets have times"),
    Field(
      "recovered_ms", .number, "From the first sending to the accepted one.", unit: .milliseconds,
      when: "`outcome` is `recovered`, and packets have times"),
    Field(
      "observed_s", .number, "How long the recording goes on after the last sending.", unit: .seconds,
      when: "all sendings were discarded, and packets have times"),
    Field("sendings", .array(.object(sending)), "All of its sendings, in order of time."),
  ]

  private static let sending: [Field] = [
    RecordFields.packetFile,
    Field("connection", .integer, "Its connection, from 1, as in the records of `decode`."),
    Field("index", .integer, "Its number on the connection, from 0."),
    Field("time", .time, "Capture time of the packet that holds its last byte.", when: "packets have times"),
    Field("packet", .integer, "That packet, from 1.", when: "the input has packets"),
    Field("fate", .fate, "Its fate."),
    Field("status", .integer, "Status code of the error response or answer that rejects it.", when: "it was rejected"),
    Field(
      "reason", .text, "The reason of the answer that rejects it, over HTTP/2.", when: "there is one", since: "0.3"),
    Field(
      "discarded_by",
      .values([
        "refused_stream": "The server reset the stream with REFUSED_STREAM.",
        "goaway": "Its stream is above the last one of the server's GOAWAY.",
        "incomplete": "The client reset the stream, or the connection ended, before the end of the request.",
      ]), "Why it was certainly not processed.", when: "over HTTP/2, if it was discarded", since: "0.3"),
    Field("identifier", .integer, "Its identifier.", when: "the frame has one"),
    Field("expiration", .integer, "Until when to deliver it.", unit: .unixSeconds, when: "the frame has one"),
  ]

  private static let token: [Field] = [
    Field("token", .hexadecimal, "The device token."),
    topic,
    Field("sent", .integer, "Sendings to it."),
    Field("accepted", .integer, "The part of `sent` that is proven accepted."),
    Field("rejected", .integer, "The part of `sent` that error responses reject."),
    Field("status", .integer, "Status code of the last error response that rejects one.", when: "`rejected` is not 0"),
    Field(
      "listed", .time, "When the feedback service listed it for the first time.",
      when: "it did, and packets have times"),
    Field(
      "timestamp", .integer, "When its app was found to be gone, as the earliest of its feedback tuples says.",
      unit: .unixSeconds, when: "feedback lists it, with a time"),
    Field("sent_after_listed", .integer, "Sendings after `listed`.", when: "feedback lists it"),
    Field("sent_after_gone", .integer, "Sendings after `timestamp`.", when: "`timestamp` is there"),
    Field("first_seen", .time, "Time of the first sending or tuple.", when: "packets have times"),
    Field("last_seen", .time, "Time of the last sending or tuple.", when: "packets have times"),
    Field(
      "reason", .text, "The reason of the last answer that rejects one, over HTTP/2.", when: "there is one",
      since: "0.3"),
  ]

  private static let storySummary: [Field] =
    RecordFields.totalsOfAllProtocols + [
      Field("sent", .integer, "Sendings of the stories."),
      Field("stories", .integer, "`notification_story` records: the sum of the following seven."),
      Field("accepted_twice", .integer, "Stories with this outcome."),
      Field("expired", .integer, "Stories with this outcome."),
      Field("recovered", .integer, "Stories with this outcome."),
      Field("accepted", .integer, "Stories with this outcome."),
      Field("open", .integer, "Stories with this outcome."),
      Field("rejected", .integer, "Stories with this outcome."),
      Field("lost", .integer, "Stories with this outcome."),
      Field("tokens", .integer, "`token` records."),
      Field(
        "recovered_ms_p50", .number, "Median of `recovered_ms`.", unit: .milliseconds,
        when: "a story was recovered, and packets have times"),
      Field(
        "recovered_ms_p99", .number, "What 99 % of `recovered_ms` do not exceed.", unit: .milliseconds,
        when: "`recovered_ms_p50` is there"),
      Field(
        "recovered_ms_max", .number, "The largest `recovered_ms`.", unit: .milliseconds,
        when: "`recovered_ms_p50` is there"),
      RecordFields.responsesInAll,
    ]
}

extension Shape {
  static let storyOutcome = values([
    "accepted_twice": "Two or more sendings were accepted: sent twice, or recorded on both sides of a balancer.",
    "expired": "One was accepted, written after its expiration: the gateway delivers it only at once.",
    "recovered": "One was accepted, after others that were not.",
    "accepted": "The first sending was accepted, and no other.",
    "open": "The recording does not show enough; `open_reason` says why.",
    "rejected": "None was accepted, and at least one was rejected, or there is no token, so that any would be.",
    "lost": "All sendings were discarded, and nothing that the recording does not show could hold another.",
  ])

  static let openReason = values([
    "unknown_fate": "No error response proves anything about a sending.",
    "unanswered": "A request of the provider API got no answer.",
    "not_tracked": "It cannot be recognised when it is sent again, or is one too many to be remembered.",
    "capture_loss": "The capture dropped packets.",
    "unread_packets": "Packets have a link type, or are in a tunnel, that is not read.",
    "gap": "Bytes that a provider sent are missing.",
    "uncertain_fields":
      "Fields that tell which notification a request is are uncertain, or were not kept whole, so it may be any.",
    "undecrypted": "A connection could not be decrypted.",
    "unread_connection": "A connection uses an unknown protocol.",
    "selection": "The records that were read are a selection.",
    "other_part": "Other parts of the recording were not read (`--shard`).",
    "other_recording": "Another of the merged recordings is of the same time.",
    "unknown_provider": "The same was sent on connections of which only some show their provider.",
    "no_times": "The recording has no times.",
    "connection_start": "The beginning of a connection was not captured.",
    "connection_end": "The end of a connection was not captured.",
    "between_files": "There is a pause of more than a second between two files.",
    "before_recording": "The recording begins too short a time before it (`--resend-within`).",
    "after_recording": "The recording ends too short a time after it (`--resend-within`).",
  ])
}
