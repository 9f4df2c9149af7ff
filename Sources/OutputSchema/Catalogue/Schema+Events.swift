extension Schema {
  /// The lines of `apnscope simulate --log`.
  public static let events = Schema(
    "events", title: "Events of a simulated gateway", form: .lines,
    text: [
      """
      `apnscope simulate --log` appends one JSON object a line for every connection that is accepted, refused or \
      closed, and for every error response; `event` determines which fields follow. When the disk cannot keep up, \
      lines are dropped and a `dropped` event counts them.
      """,
      """
      Each run begins with a `started` event; its connections are numbered from 1.
      """,
    ],
    root: .choice(
      by: "event",
      [
        .init("started", "The simulator begins. Logs of 0.1.0 do not have it.", started),
        .init("accepted", "A connection to the gateway is open; under TLS its handshake is complete.", accepted),
        .init("refused", "A connection to the gateway was closed at once, by a rule or a limit.", refused),
        .init("handshake_failed", "TLS was not agreed on; `closed` follows.", handshakeFailed),
        .init("error_response", "All six bytes of an error response were sent.", answer),
        .init("error_response_incomplete", "The connection closed before a complete error response was sent.", answer),
        .init("goaway", "GOAWAY was sent on a connection over HTTP/2.", goAway),
        .init(
          "provider_token", "A connection over HTTP/2 uses a provider token that was accepted, for the first time.",
          providerToken),
        .init("no_response", "A connection ends as after an error response, without sending one.", answer),
        .init("closed", "A connection to the gateway has ended.", closed),
        .init("feedback_accepted", "A connection to the feedback service is open.", accepted),
        .init("feedback_refused", "A connection to the feedback service was closed at once, by a limit.", turnedAway),
        .init(
          "feedback_handshake_failed", "TLS was not agreed on, on a connection to the feedback service.",
          feedbackHandshakeFailed),
        .init("feedback_closed", "A connection to the feedback service has ended.", feedbackClosed),
        .init("dropped", "Lines were not written because the disk could not keep up.", dropped),
      ]),
    example: #"""
      {"time":"2015-09-16T01:02:03.000000000Z","event":"started","schema":1}
      {"time":"2015-09-16T01:02:03.123456789Z","event":"error_response","client":"127.0.0.1:50000",\#
      "topic":"com.example.app","connection":7,"status":8,"identifier":42,"notification":41,"accepted":41}
      """#)

  private static let time = Field("time", .time, "When it happened.")
  private static let client = Field("client", .text, "Address and port of the provider.")
  private static let topic = Field("topic", .text, "Topic of the client's certificate.", when: "it has one")
  private static let number = Field("connection", .integer, "Number of the connection in this run, from 1.")
  private static let version = Field(
    "tls", .text, "Protocol version as `TLS 1.2`.", when: "the connection uses TLS")
  private static let suite = Field(
    "suite", .text, "OpenSSL's name of the cipher suite.", when: "the connection uses TLS")
  private static let resumed = Field(
    "resumed", .boolean, "Whether a session was resumed.", when: "the connection uses TLS")
  private static let error = Field(
    "error", .text, "Message of TLS or the system about the end.", when: "there is one")

  private static let started: [Field] = [
    time, Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
  ]

  private static let accepted: [Field] = [time, client, topic, number, version, suite, resumed]

  private static let goAway: [Field] = [
    time, client, topic, number, Field("last_stream", .integer, "The last stream that is, or may be, processed."),
    Field(
      "reason", .text,
      "The reason in the debug data, such as `Shutdown`; after a broken rule or a flood the name of the error code."),
  ]

  private static let providerToken: [Field] = [
    time, client, topic, number, Field("key_id", .text, "The key that signed it."),
    Field("team_id", .text, "The team that issued it."), Field("issued_at", .time, "When it was issued."),
  ]

  private static let handshakeFailed: [Field] = [
    time, client, topic, number, Field("reason", .text, "OpenSSL's message."),
  ]

  private static let feedbackHandshakeFailed: [Field] = [
    time, client, topic, number,
    Field("reason", .text, "Message of OpenSSL or the system.", when: "there is one"),
  ]

  private static let dropped: [Field] = [time, Field("count", .integer, "How many.")]

  private static let turnedAway: [Field] = [
    time, client,
    Field(
      "reason",
      .values([
        "too_many_connections": "As many as `--max-connections` are open.",
        "too_much_memory": "Connections hold as much as `--max-connection-memory`.",
      ]), "Which limit."),
  ]

  private static let refused: [Field] = [
    time, client, topic,
    Field("connection", .integer, "Number of the connection in this run.", when: "a rule refused it"),
    Field(
      "reason",
      .values([
        "connection_limit": "The topic has as many connections as `--connection-limit`.",
        "rapid_reconnect": "The topic connects more often than `--reconnect-limit`.",
        "wrong_environment": "`--wrong-environment` names the topic.",
        "accept_then_close": "`--accept-then-close` hit it by chance.",
        "too_many_connections": "As many as `--max-connections` are open.",
        "too_much_memory": "Connections hold as much as `--max-connection-memory`.",
      ]), "Which rule or limit."),
    version, suite, resumed,
  ]

  private static let answer: [Field] = [
    time, client, topic, number,
    Field("status", .integer, "The status code."),
    Field("identifier", .integer, "The identifier that is named.", when: "the notification has one"),
    Field("notification", .integer, "Number of the notification on its connection, from 0.", when: "there is one"),
    Field("accepted", .integer, "Notifications of the connection that were accepted so far."),
    Field(
      "reason", .text, "The error of a malformed frame, or how many bytes of the response were sent.",
      when: "there is more to report"),
  ]

  private static let closed: [Field] = [
    time, client, topic, number,
    Field("accepted", .integer, "Notifications of the connection that were accepted."),
    Field("discarded", .integer, "Notifications of the connection that were discarded."),
    Field("reason", .gatewayEnd, "How it ended."),
    error,
  ]

  private static let feedbackClosed: [Field] = [
    time, client, topic, number,
    Field("tuples", .integer, "Tuples that were sent."),
    Field(
      "reason",
      .values([
        "complete": "The client read the list to its end, and it was cleared.",
        "incomplete": "The client left before; the list stays.",
      ]), "How it ended."),
    error,
  ]
}

extension Shape {
  /// How a connection to the gateway ended.
  static let gatewayEnd = values([
    "rejected": "A notification was refused.", "shutdown": "The gateway went away for maintenance.",
    "peer_fin": "The client closed it.", "peer_rst": "The client reset it, or the network broke.",
    "idle": "Idle for `--idle-close`.", "lifetime": "It was open for `--lifetime`.",
    "local": "The simulator ended.", "handshake_failed": "TLS was not agreed on.",
    "refused": "A rule or a limit closed it at once.",
    "frame_timeout": "A frame was not complete within `--frame-timeout`.",
    "tls_error": "TLS failed after the handshake.",
    "feedback_lost": "The feedback list could not store failures that an answer would have proven accepted.",
    "too_much_memory":
      "Unfinished frames took more than `--max-memory`, and the frame of this connection was the oldest.",
    "protocol_error": "Over HTTP/2, the provider broke a rule of the connection or flooded it, and got a GOAWAY.",
  ])
}
