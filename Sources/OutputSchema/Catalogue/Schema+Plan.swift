extension Schema {
  /// The settings of `apnscope load --plan`.
  public static let plan = Schema(
    "plan", title: "Plan of a load", form: .settings,
    text: [
      """
      `apnscope load --print-plan` writes the plan in effect as TOML, which `--plan` reads; results have the same \
      settings in `plan`. Each setting is the option of its name, with `_` for `-`; in a file any can be left out.
      """,
      """
      In the file, defaults and settings derived from others are in comments. Times are written `250ms` or \
      `2s`, rates `200.0/s`, mixes `10=9,5=1`.
      """,
    ],
    root: .settings,
    example: #"""
      gateway = "127.0.0.1:2195"
      rate = "10000.0/s"
      warm_up = "2s"
      connections = 8
      # threads = 2
      """#)

  fileprivate static let settings: [Field] = target + workload + pace + connections + feedback

  private static let polled = "feedback is polled"

  private static let feedback: [Field] = [
    Field(
      "poll_feedback", .text, "Feedback service and time between polls, as `127.0.0.1:2196,every=10s`.", when: polled),
    Field("no_prune", .boolean, "Whether listed tokens are sent to all the same.", when: polled),
    Field("max_pruned", .integer, "Most tokens of feedback that are remembered.", when: polled),
    Field("poll_timeout", .text, "Time limit of a poll.", when: polled),
    Field("max_tuples", .integer, "Most tuples of a poll.", when: polled),
  ]

  /// A search for a capacity sets the pace of each trial itself.
  private static let ofLoad = "the plan is that of a load"

  private static let onOff: Shape = .values(["on": "Yes.", "off": "No."])

  private static let target: [Field] = [
    Field("gateway", .text, "Where the gateway listens, as `127.0.0.1:2195`."),
    Field(
      "identity", .either([.text, .array(.text)]),
      "The provider's certificate: a directory, a PEM or a PKCS#12 file; a list of several.", when: "it was given"),
    Field("key", .text, "File of the private key.", when: "it was given"),
    Field("pass_phrase_file", .text, "File of the pass phrase.", when: "it was given"),
    Field(
      "topic", .either([.text, .array(.text)]), "Which of the directory's topics is pushed to; a list of several.",
      when: "it was given"),
    Field("ca", .text, "File of the certificates that the gateway's must lead to.", when: "it was given"),
    Field("no_verify", .boolean, "Whether any certificate of the gateway is taken."),
    Field("plain", .boolean, "Whether it is plain TCP without TLS."),
    Field("allow_remote", .boolean, "Whether the gateway may be on another machine."),
    Field("tls", .text, "TLS versions, as `1.0..1.2`."),
    Field("ciphers", .text, "Cipher suites up to TLS 1.2, as OpenSSL's cipher list.", when: "it was given"),
    Field("tls13_suites", .text, "Cipher suites of TLS 1.3.", when: "it was given"),
    Field("resume", onOff, "Whether sessions are resumed when a connection is reopened."),
    Field("keylog", .text, "NSS key log that secrets are appended to.", when: "it was given"),
  ]

  private static let made = "notifications are made and not replayed"

  private static let workload: [Field] = [
    Field(
      "seed", .either([.integer, .text]), "Seed of all notifications; a string above 2^53.", when: made),
    Field("command", .text, "Commands, one or a mix.", when: made),
    Field("tokens", .integer, "Different device tokens.", when: made),
    Field("token_length", .integer, "Length of a device token.", unit: .bytes, when: "all tokens have one"),
    Field(
      "token_file", .text, "File of the device tokens; `tokens` is then how many different ones it has.",
      when: "it was given"),
    Field(
      "payload", .text, "Sizes of payloads in bytes: a size, a range or a mix.",
      when: "without a template, kinds or a file"),
    Field("payload_template", .text, "Template that payloads are made from.", when: "it was given"),
    Field("payload_kind", .text, "Kinds of payloads, one or a mix.", when: "it was given"),
    Field("payload_file", .text, "File of the payloads.", when: "it was given"),
    Field("priority", .text, "Priorities, one or a mix; `none`: the item is left out.", when: made),
    Field("expiration", .text, "Expirations, one or a mix: UNIX seconds, `+60s`, or `none`.", when: made),
    Field(
      "faults", .text, "Shares of notifications with each fault, as `oversize=0.01,payload=badge_type:0.01`.",
      when: "there are any"),
    Field(
      "segment", .text,
      "The part of the stream that is sent, as `2/4`; in a file also `auto`. In a merged result all of them."),
    Field("replay", .text, "File of the records that are replayed.", when: "it was given"),
    Field("speed", .text, "How many times as fast as recorded, or `max`.", when: "records are replayed"),
    Field("replay_limit", .integer, "Most notifications that a replay may have.", when: "records are replayed"),
  ]

  private static let pace: [Field] = [
    Field("rate", .text, "Notifications a second over all connections.", when: "it was given"),
    Field("rate_per_connection", .text, "Notifications a second of each connection.", when: "it was given"),
    Field("stage", .array(.text), "Stages of the schedule, as `10s:0.0..50000.0/s`.", when: "there are any"),
    Field("poisson", .boolean, "Whether chance spaces notifications instead of even spacing.", when: made),
    Field(
      "behind",
      .values([
        "catch-up": "They are sent late.", "skip": "Those more than 100 ms late are left out and counted.",
      ]), "How notifications are treated that could not be sent in time.", when: ofLoad),
    Field("count", .integer, "Notifications after which it ends.", when: "it was given, or records are replayed"),
    Field("for", .text, "Length of the measured phase, at most.", when: ofLoad),
    Field("warm_up", .text, "Time before the measured phase.", when: ofLoad),
    Field("drain", .text, "How long the end may take.", when: ofLoad),
    Field(
      "of_whole", .boolean,
      "That rates, stages, `count` and `connections` are those of the whole stream, not of the segment.",
      when: "they are; in merged results, if the parts agree in them"),
    Field(
      "start_at", .text, "When the schedule begins, as `2026-11-22T09:00:00Z` or `next:30s`.", when: "it was given"),
    Field(
      "late",
      .values([
        "fail": "A run that is late sends nothing.", "skip": "It begins at once, and leaves out what was due before.",
      ]), "What becomes of a run whose start has passed.", when: "`start_at` was given"),
  ]

  private static let connections: [Field] = [
    Field("connections", .integer, "Connections at a time."),
    Field("threads", .integer, "Event loops that they are spread over."),
    Field("batch", .text, "Most of a write: bytes as `16384B`, or notifications as `16`."),
    Field("linger", .text, "How long a batch waits to become full."),
    Field("nagle", onOff, "Whether the kernel's Nagle algorithm is on."),
    Field(
      "buffers", .values(["small": "64 KiB to send, 16 KiB of it not sent.", "system": "The kernel's."]),
      "Socket buffers."),
    Field("send_buffer", .integer, "SO_SNDBUF.", unit: .bytes, when: "it is not the kernel's"),
    Field("not_sent_low_water", .integer, "TCP_NOTSENT_LOWAT.", unit: .bytes, when: "it is not the kernel's"),
    Field("stagger", .text, "Time over which the starts of connections are spread."),
    Field("lifetime", .text, "Time after which a connection is closed and reopened.", when: "it was given"),
    Field(
      "connection_count", .integer, "Notifications after which a connection is closed and reopened.",
      when: "it was given"),
    Field("connect_timeout", .text, "Time in which a TCP connection has to be made.", since: "0.2"),
    Field("handshake_timeout", .text, "Time in which TLS has to be agreed on.", since: "0.2"),
    Field("backoff", .text, "Wait after a failed attempt; it doubles with each further one."),
    Field("max_backoff", .text, "Longest such wait."),
    Field("give_up", .text, "Time without a useful connection after which the run ends."),
    Field("markers", onOff, "Whether a marker ends each connection's life and proves acceptance."),
    Field("marker_timeout", .text, "How long a marker's answer is waited for."),
    Field("max_attempts", .integer, "How often a notification may be written before it is abandoned."),
    Field("unsettled_memory", .integer, "Memory for written notifications that are not settled.", unit: .bytes),
    Field("leave_unknown", .boolean, "Whether notifications that a connection's end left open are not sent again."),
    Field("timeline", .integer, "Most spans of connections' lives that the result lists."),
    Field("threshold", .array(.text), "Conditions on the result.", when: "there are any"),
  ]
}

extension Shape {
  static let settings = named(
    Definition(
      "settings of a load", "Each is the option of its name, with its default filled in.", .object(Schema.settings)))
}
