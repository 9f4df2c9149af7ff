extension Schema {
  /// The document of `apnscope devices --output`.
  public static let fleet = Schema(
    "fleet", title: "Result of a fleet of simulated devices", form: .document,
    text: [
      """
      `apnscope devices --output` writes what its devices received, and what became of their connections, as one JSON \
      document. `apnscope merge` joins those of several segments of a fleet into one of the same kind.
      """,
      """
      The counts balance: `attempted` = `opened` + the sum of `failed` + `abandoned`, `opened` = the sum of `closed`, and \
      `received` = `online` + `stored` + `repeated`.
      """,
    ],
    root: .object([
      Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
      Field("kind", .word("devices"), "Which document it is."),
      Field("started", .time, "When the fleet began; of segments the earliest."),
      Field("ended", .time, "When it ended; of segments the latest."),
      Field("environment", .environment, "Machine and software; of segments that of the first."),
      Field("labels", .map(key: .text, value: .text), "Labels of `--label`.", when: "there are any"),
      Field(
        "plan", .map(key: .text, value: .anything),
        "The options in effect, by their names with `_` for `-`, and `devices`, those of the segment."),
      Field("segment", .text, "The part of the fleet, as `2/4`; of a merged result its parts, as `1/4,2/4`."),
      Field("interrupted", .boolean, "Whether a signal ended the run before `--for` or `--until-idle` did."),
      Field("devices", .object(devices), "Devices by what became of them.", of: .run),
      Field("connections", .object(connections), "Connections to the device channel.", of: .run),
      Field("registrations", .object(registrations), "Requests for tokens.", of: .run),
      Field("notifications", .object(notifications), "Notifications, each counted once.", of: .run),
      Field("latency", .object(latency), "Histograms of times; an hour and more count as an hour.", of: .run),
      Field(
        "campaigns", .array(.object(campaign)),
        "Notifications by the name of their campaign, which their payloads tell; those without one first.", of: .run),
      Field(
        "local_push", .object(localPush), "Counts that only local push has.", of: .run,
        when: "`--local-push` was given",
        since: "0.3"),
      Field(
        "faults", .map(key: fault, value: .integer),
        "What the gateway did and must not do, by name; none is there for 0.",
        of: .run),
      Field("last_received", .time, "When the last notification came.", when: "any did"),
      Field("storms", .array(.object(storm)), "The course of each `--storm`, in the order of their times."),
      Field("timeline", .object(course), "The course of the run."),
      Field(
        "resources",
        .object([
          Field("cpu_user_s", .number, "Processor time of the process.", unit: .seconds),
          Field("cpu_system_s", .number, "Processor time of the kernel for it.", unit: .seconds),
          Field("max_rss_bytes", .integer, "Most resident memory; of segments the sum.", unit: .bytes),
        ]), "Resources that the process used; of segments the sums."),
      Field("warnings", .array(.text), "What to know about the result."),
    ]),
    example: #"""
      {
        "schema": 1, "kind": "devices", "started": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:05:05Z",
        "environment": {
          "host": "a", "kernel": "Linux 6.1", "cpu": "", "cores": 2, "memory_bytes": 0, "openssl": "", "apnscope": "0.3.0",
          "command": []
        },
        "plan": {"count": 1}, "segment": "1/1", "interrupted": false,
        "devices": {"asked": 1, "ever_online": 1, "online_at_end": 1, "restored": 0},
        "connections": {"attempted": 1, "opened": 1, "failed": {}, "abandoned": 0, "closed": {"end": 1}},
        "registrations": {"asked": 1, "tokens": 1, "wrong_tokens": 0, "token_changes": 0, "refused": {}},
        "notifications": {
          "received": 0, "online": 0, "stored": 0, "repeated": 0, "duplicates": 0, "acknowledgements": 0, "payload_bytes": 0,
          "early": 0
        },
        "latency": {
          "online_us": {
            "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0, "counts": []
          },
          "stored_us": {
            "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0, "counts": []
          },
          "repeated_us": {
            "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0, "counts": []
          },
          "from_due": {
            "online_us": {
              "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0,
              "counts": []
            },
            "stored_us": {
              "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0,
              "counts": []
            },
            "repeated_us": {
              "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0,
              "counts": []
            }
          },
          "from_written": {
            "online_us": {
              "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0,
              "counts": []
            },
            "stored_us": {
              "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0,
              "counts": []
            },
            "repeated_us": {
              "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0,
              "counts": []
            }
          },
          "connect_us": {
            "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0, "counts": []
          },
          "ready_us": {
            "unit": "us", "count": 0, "min": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0, "counts": []
          }
        },
        "campaigns": [], "faults": {}, "storms": [],
        "timeline": {"period_s": 1, "samples": [{"time": 1767323045, "online_s": 1, "opened": 1, "received": 0}]},
        "resources": {"cpu_user_s": 0, "cpu_system_s": 0, "max_rss_bytes": 0}, "warnings": []
      }
      """#)

  private static let devices: [Field] = [
    Field("asked", .integer, "Devices of the fleet, or of the segment."),
    Field("ever_online", .integer, "The part of `asked` that was online at any time."),
    Field("online_at_end", .integer, "The part of `asked` that was online when the run ended."),
    Field("restored", .integer, "Restores: each takes a device to its next generation."),
  ]

  private static let connections: [Field] = [
    Field("attempted", .integer, "Attempts to connect."),
    Field("opened", .integer, "The part of `attempted` that could be written to: TCP, and TLS if there is."),
    Field("failed", .map(key: .text, value: .integer), "The part of `attempted` that failed, by reason."),
    Field("abandoned", .integer, "The part of `attempted` that the end of the run cut off."),
    Field("closed", .map(key: closeCause, value: .integer), "The ends of `opened` by cause."),
  ]

  private static let closeCause = Shape.values([
    "left": "The device went, and said so.", "reset": "The device went without a word, by a reset.",
    "storm": "A storm took it.", "restored": "The device was restored.", "end": "The run ended.",
    "gateway_offline": "The gateway said that it closes the connection.",
    "refused": "The gateway refused what the device needs.", "silence": "The device heard nothing for `--silence`.",
    "unanswered": "The device's request was not acknowledged within `--request-timeout`.",
    "peer_fin": "The gateway closed it.",
    "peer_rst": "The gateway reset it, or the network broke.", "message": "The gateway's bytes are no messages.",
    "memory": "Unfinished messages took more than `--max-buffered`.", "error": "TLS or the system failed.",
  ])

  private static let fault = Shape.values([
    "duplicate": "A notification whose sequence was not above the last one of its app.",
    "wrong_token": "A token that is not the one of `--seed`.",
    "unknown_token": "A notification for a token that the device did not have.",
    "unexpected": "A message that has no meaning where it came.",
    "unreadable": "JSON that is no message, or lacks a member.", "unknown_message": "A message of an unknown name.",
    "framing": "Bytes that are no message, or too long a one: they ended their connection.",
  ])

  private static let registrations: [Field] = [
    Field("asked", .integer, "Requests for the token of an app."),
    Field("tokens", .integer, "The part of `asked` that was answered with a token."),
    Field("wrong_tokens", .integer, "The part of `tokens` that is not the token of `--seed`."),
    Field("token_changes", .integer, "Tokens that the gateway replaced."),
    Field(
      "refused", .map(key: .text, value: .integer),
      "Refusals by reason, also of other requests; Documentation/device-channel.md has the reasons."),
  ]

  private static let notifications: [Field] = [
    Field("received", .integer, "Notifications that devices received; duplicates are not among them."),
    Field("online", .integer, "The part of `received` that the gateway sent as soon as it came."),
    Field("stored", .integer, "The part of `received` that waited at the gateway."),
    Field("repeated", .integer, "The part of `received` that the gateway sent on an earlier connection, too."),
    Field("duplicates", .integer, "Notifications whose sequence was not above the last one."),
    Field("acknowledgements", .integer, "Acknowledgements, each of one or more notifications."),
    Field("payload_bytes", .integer, "Payloads of `received`.", unit: .bytes),
    Field(
      "early", .integer,
      "The part of `received` that tells a time after the one at which it came: the clocks of two machines differ, and latencies are wrong."
    ),
  ]

  private static let localPush: [Field] = [
    Field("joins", .map(key: .text, value: .integer), "Joinings of each `--network`, on which the extension runs."),
    Field("joins_elsewhere", .integer, "Joinings of other networks."),
    Field(
      "networks", .map(key: .text, value: .object(localPushNetwork)),
      "The part that is of each `--network`, by its name; empty without any. Their sums are those of the whole."),
    Field("registrations", .integer, "Users that were sent to the server, one a connection."),
    Field("registered", .integer, "The part of `registrations` that was acknowledged."),
    Field("timed_out", .integer, "The part of `registrations` that was not acknowledged in time."),
    Field("texts", .integer, "Texts: a part of `notifications.received`, which has `invitations` besides."),
    Field("invitations", .integer, "Invitations to calls."),
    Field("missed_calls", .integer, "The part of `invitations` that came later than `--call-time` after it was sent."),
    Field("heartbeats", .integer, "Heartbeats of the server."),
    Field("other_requests", .integer, "Requests of other kinds."),
    Field(
      "untimed", .integer,
      "The part of texts and invitations that does not say when it was sent, and is in no histogram."),
    Field("acknowledgements", .integer, "Acknowledgements of requests of all kinds."),
    Field(
      "invitation_us", .histogram,
      "From the server's sending of an invitation to the device; it is in `online_us`, too.",
      unit: .microseconds),
  ]

  private static let localPushNetwork: [Field] = [
    Field("registered", .integer, "Users that its server acknowledged."),
    Field("texts", .integer, "Texts that came there."),
    Field("invitations", .integer, "Invitations to calls that came there."),
    Field("heartbeats", .integer, "Heartbeats of its server."),
  ]

  private static let latency: [Field] = [
    Field("online_us", .histogram, "From the gateway's read to the device, of `online`.", unit: .microseconds),
    Field("stored_us", .histogram, "The same of `stored`.", unit: .microseconds),
    Field("repeated_us", .histogram, "The same of `repeated`.", unit: .microseconds),
    Field(
      "from_due", .object(paths), "From when it was due, of notifications whose payloads tell it (`load --stamp`)."),
    Field("from_written", .object(paths), "From when it was written, of notifications whose payloads tell it."),
    Field(
      "connect_us", .histogram, "From the attempt to connect to when the connection could be written to.",
      unit: .microseconds),
    Field(
      "ready_us", .histogram, "From the attempt to connect to when the device said that it is online.",
      unit: .microseconds),
  ]

  private static let paths: [Field] = [
    Field("online_us", .histogram, "To the device, of `online`.", unit: .microseconds),
    Field("stored_us", .histogram, "The same of `stored`.", unit: .microseconds),
    Field("repeated_us", .histogram, "The same of `repeated`.", unit: .microseconds),
  ]

  private static let campaign: [Field] = [
    Field("name", .text, "Its name; `other` are those beyond the first 100.", when: "the payloads tell one"),
    Field("received", .integer, "Notifications that devices received."),
    Field(
      "online", .integer, "The part of `received` that the gateway sent as soon as it came: the device was connected."),
    Field("dated", .integer, "The part of `received` whose payload tells when it was due."),
    Field(
      "first_due_ns", .integer, "When the first one was due, in UNIX nanoseconds.",
      when: "any tells"),
    Field(
      "first_sent_ns", .integer, "When the gateway read the first one, in UNIX nanoseconds.",
      when: "any came"),
    Field(
      "last_online_ns", .integer, "When the last one of `online` came, in UNIX nanoseconds.",
      when: "any came"),
    Field(
      "last_ns", .integer, "When the last one of `received` came, in UNIX nanoseconds.",
      when: "any came"),
  ]

  private static let storm: [Field] = [
    Field(
      "network", .text, "The network of local push that it hit, and no other one.", when: "it was of one"),
    Field("at_s", .number, "From the start of the run.", unit: .seconds),
    Field("within_s", .number, "The time within which devices came back.", unit: .seconds),
    Field("lost", .integer, "Devices that lost their connection."),
    Field("back", .integer, "The part of `lost` that was online again before the next storm."),
    Field(
      "last_back_s", .number, "From the storm to when the last one of `back` was online.", unit: .seconds,
      when: "any was"),
    Field(
      "last_stored_s", .number, "From the storm to the last notification that had waited for one of `back`.",
      unit: .seconds, when: "any came"),
    Field("opened_per_s", .array(.integer), "Connections opened in each of the first 600 seconds after the storm."),
    Field("peak_opened_per_s", .integer, "The highest of these.", unit: .perSecond),
  ]

  private static let course: [Field] = [
    Field("period_s", .integer, "The time of a sample, a power of two.", unit: .seconds),
    Field(
      "samples",
      .array(
        .object([
          Field("time", .integer, "Its beginning, a multiple of the period.", unit: .unixSeconds),
          Field(
            "online_s", .integer,
            "Seconds that devices were online, all together, looked at once a second; divided by the period it is how many were.",
            unit: .seconds),
          Field("opened", .integer, "Connections that were opened."),
          Field("received", .integer, "Notifications that were received."),
        ])), "In the order of time; at most `--timeline`."),
  ]

  /// The lines of `apnscope devices --received`.
  public static let received = Schema(
    "received", title: "Notifications that simulated devices received", form: .lines,
    text: [
      """
      `apnscope devices --received` writes a JSON object a line for each notification that a device received; duplicates are \
      not among them. Lines of one device are in the order of their arrival.
      """
    ],
    root: .object([
      Field("time_ns", .integer, "When it was read, in UNIX nanoseconds."),
      Field("device", .integer, "Number of the device in its population."),
      Field("token", .hexadecimal, "The token that it was sent to."),
      Field("topic", .text, "The topic of the app."),
      Field("sequence", .integer, "Its number among those of the app."),
      Field("sent_ns", .integer, "When the gateway read it from the provider, in UNIX nanoseconds."),
      Field("stored", .boolean, "Whether it waited at the gateway."),
      Field("repeated", .boolean, "Whether it was sent on an earlier connection, too."),
      Field("priority", .integer, "10, 5 or 1."),
      Field("push_type", .text, "The push type.", when: "the provider sent one"),
      Field("collapse_id", .text, "The collapse identifier.", when: "the provider sent one"),
      Field("payload_sha256", .hexadecimal, "SHA-256 of the payload.", when: "`--payloads` was not given"),
      Field("payload", .string(.base64), "The payload.", when: "`--payloads` was given"),
    ]),
    example: #"""
      {"time_ns": 1767323045000000000, "device": 7, "token": "0102", "topic": "com.example.app", "sequence": 1, "sent_ns": 1767323044000000000, "stored": false, "repeated": false, "priority": 10, "payload_sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}
      """#)
}
