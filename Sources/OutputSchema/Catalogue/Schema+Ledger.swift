extension Schema {
  /// The document of `apnscope simulate --ledger`.
  public static let ledger = Schema(
    "ledger", title: "Ledger of a simulated gateway", form: .document,
    text: [
      """
      `apnscope simulate --ledger` writes the gateway's own books as one JSON document when it ends, by SIGINT, \
      SIGTERM or `--for`.
      """,
      """
      The counts balance: `received` = `accepted` + the sum of `rejected` + `discarded`, and `gateway.accepted` = \
      `delivered` + `stored` + `coalesced` + `expired` + `dropped` + `uninstalled`.
      """,
    ],
    root: .object([
      Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
      Field("kind", .word("simulate"), "Which document it is."),
      Field("started", .time, "When the simulator began to listen."),
      Field("ended", .time, "When the books were closed."),
      Field("gateway", .object(gateway), "Frames that the gateway received and its answers.", of: .run),
      Field(
        "payloads",
        .object([
          Field("kinds", .map(key: .payloadKind, value: .integer), "Notifications by what they are for."),
          Field(
            "lint", .map(key: .text, value: .integer),
            "Notifications by the rules that their payload or frame breaks: codes, as in `lint` of records."),
        ]), "Notifications that the gateway looked at, judged.", of: .run,
        when: "payloads are judged (not with `--no-lint`)"),
      Field(
        "http2", .object(http2), "What only the HTTP/2 provider API has.", of: .run, when: "`--http2` was given",
        since: "0.3"),
      Field("devices", .object(devices), "Accepted notifications by their delivery.", of: .run),
      Field(
        "local_push", .object(localPush), "The server of local push connectivity.", of: .run,
        when: "`--local-push` or `--local-push-control` was given", since: "0.3"),
      Field("feedback", .object(feedback), "Connections to the feedback service and its tuples.", of: .run),
      Field(
        "records",
        .object([
          Field(
            "notifications", .integer,
            "Notifications that are in records. They include frames after bytes that are no frame, which `received` of `gateway` does not."
          ),
          Field(
            "lost", .integer,
            "Notifications that arrived and are in no record, or may be in none: the writer was behind, or could not write."
          ),
          Field(
            "outcomes_lost", .integer, "Outcomes for devices that are in no record for that reason.",
            when: "there are any", since: "0.3"),
        ]), "The notifications that arrived, by whether they are in records.", of: .run, when: "`--records` was given"),
      Field(
        "verdict", .object(providerVerdict),
        "The verdict on the providers, by the rules of `apnscope follow`; it is of this gateway alone.", of: .run,
        when: "`--verdict` was given"),
      Field(
        "expectations", .array(.object(threshold)), "The conditions of `--expect` and `--until`, as they came out.",
        of: .run, when: "any were given"),
      Field("connections", .array(.object(connection)), "Connections to the gateway, by when they ended."),
      Field(
        "connections_omitted", .integer, "Connections that are counted and not listed: `--max-listed-connections`."),
    ]),
    example: #"""
      {
        "schema": 1, "kind": "simulate", "started": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:05:05Z",
        "gateway": {
          "connections": 1, "handshakes": 1, "resumed": 0, "handshake_failures": 0, "refused": 0, "received": 4,
          "accepted": 2, "rejected": {"8": 1}, "discarded": 1, "malformed": 0, "incomplete": 0,
          "error_responses": {"8": 1}, "error_responses_incomplete": 0, "bytes": 480
        },
        "devices": {"delivered": 2, "coalesced": 0, "expired": 0, "dropped": 0, "stored": 0, "uninstalled": 0},
        "feedback": {
          "connections": 0, "handshake_failures": 0, "completed": 0, "tuples_sent": 0, "waiting": 0, "lost": 0
        },
        "connections": [
          {
            "client": "127.0.0.1:50000", "topic": "com.example.app", "received": 4, "accepted": 2,
            "rejected": {"status": 8, "identifier": 42, "notification": 2}, "discarded": 1,
            "opened": "2026-01-02T03:04:10.5Z", "closed": "2026-01-02T03:04:11.25Z", "end": "rejected"
          }
        ],
        "connections_omitted": 0
      }
      """#)

  private static let gateway: [Field] = [
    Field("connections", .integer, "TCP connections that were accepted."),
    Field("handshakes", .integer, "The part of `connections` whose TLS handshake was completed; all without TLS."),
    Field("resumed", .integer, "The part of `handshakes` that resumed a session."),
    Field("handshake_failures", .integer, "The part of `connections` that ended before its handshake was completed."),
    Field("refused", .integer, "The part of `handshakes` that a rule closed at once."),
    Field("received", .integer, "Frames that arrived whole, and those that could not be parsed."),
    Field("accepted", .integer, "The part of `received` that was accepted."),
    Field(
      "rejected", .map(key: .text, value: .integer),
      "The parts of `received` that were refused, answered or not: by status, and by reason over HTTP/2."),
    Field("discarded", .integer, "The part of `received` after a rejection or shutdown on its connection."),
    Field("malformed", .integer, "The part of `rejected` that could not be parsed."),
    Field("incomplete", .integer, "Connections that ended inside a frame, which is in no other count."),
    Field("error_responses", .countsByStatus, "Error responses of which all six bytes were sent, by status."),
    Field(
      "error_responses_incomplete", .integer,
      "Error responses not counted in `error_responses`: the connection closed before all six bytes were sent.",
      since: "0.2"),
    Field("bytes", .integer, "Plaintext from providers.", unit: .bytes),
  ]

  private static let http2: [Field] = [
    Field("connections", .integer, "The part of `gateway.connections` that came to the address of HTTP/2."),
    Field(
      "received", .integer,
      "Notifications: the part of `gateway.received` over HTTP/2. `received` = `accepted` + `rejected` + `discarded`."),
    Field("accepted", .integer, "The part of `received` that got status 200."),
    Field(
      "rejected", .integer, "The part of `received` that got another status; `gateway.rejected` has them by reason."),
    Field(
      "discarded", .integer,
      "The part of `received` that was certainly not processed: above the limit on streams, above the last stream of a GOAWAY, or hit by a fault."
    ),
    Field("incomplete", .integer, "Notifications that never ended, which are in no other count."),
    Field(
      "unanswered", .integer,
      "Notifications whose answer was cut behind its status: its content waited for the client's window when the stream or the connection ended, or a fault cut it."
    ),
    Field(
      "unknown",
      .object([
        Field("accepted", .integer, "The part of `accepted`."), Field("rejected", .integer, "The part of `rejected`."),
        Field("discarded", .integer, "The part of `discarded`."),
      ]),
      "Notifications of which the provider was told nothing: no status, no refusal, no GOAWAY that excludes them. A recording calls their fate unknown."
    ),
    Field("other_requests", .integer, "Requests that are no notifications."),
    Field(
      "channels",
      .object([
        Field("created", .integer, "Channels that were created."), Field("read", .integer, "Channels that were read."),
        Field("deleted", .integer, "Channels that were deleted."),
        Field("listed", .integer, "Lists of the channels of an app."),
        Field("rejected", .map(key: .text, value: .integer), "Rejected requests by reason."),
        Field("registered", .integer, "Channels that are registered."),
        Field("keeping", .integer, "The part of `registered` that keeps a message."),
      ]), "Requests to the management of broadcast channels, which are in `other_requests`.",
      when: "`--http2-channels` was given"),
    Field("answers", .countsByStatus, "Answers to all requests, by HTTP status."),
    Field("goaways", .integer, "GOAWAY frames that were sent."),
    Field("resets_sent", .integer, "RST_STREAM frames that were sent."),
    Field("resets_received", .integer, "RST_STREAM frames of clients that closed a stream."),
    Field("pings", .integer, "PING frames of clients."),
    Field(
      "violations", .map(key: .text, value: .integer),
      "Rules of RFC 9113 and RFC 7541 that clients broke, by their words."),
    Field(
      "floods", .map(key: .text, value: .integer),
      "Connections that were ended for what a client did too often: resets, settings, pings, empty_frames, window_updates, ignored_frames, continuations."
    ),
    Field(
      "faults", .map(key: .text, value: .integer),
      "Faults of `--http2-fault` that were done, by their kind."),
    Field(
      "provider_tokens",
      .array(
        .object([
          Field("key_id", .text, "The `kid`."), Field("team_id", .text, "The `iss`."),
          Field("issued_at", .time, "The `iat`."),
          Field(
            "age_s", .integer, "Its age when it was first accepted; below 0 if the provider's clock is ahead.",
            unit: .seconds),
          Field("connections", .integer, "Connections that used it."),
        ])), "The provider tokens that were accepted, in that order. Their signatures are nowhere."),
    Field("provider_tokens_omitted", .integer, "Accepted provider tokens that are not listed."),
    Field(
      "provider_token_renewals", .integer, "Provider tokens that took the place of another one on their connection."),
  ]

  private static let devices: [Field] = [
    Field("delivered", .integer, "Notifications that reached a device that is online."),
    Field("coalesced", .integer, "Replaced by a later one for the same device and topic before it came online."),
    Field("expired", .integer, "Thrown away because the expiration passed, or was not to be stored."),
    Field("dropped", .integer, "Thrown away while they could have been delivered, because the store was full."),
    Field("stored", .integer, "Waiting for a device that is offline."),
    Field("uninstalled", .integer, "For an uninstalled app: dropped, and the token put on the feedback list."),
    Field(
      "channel", .object(deviceChannel),
      "Of the device channel. Of notifications for registered devices `delivered` are those that the device has acknowledged, and `stored` those that wait or are not acknowledged.",
      of: .run, when: "`--device-channel` was given", since: "0.3"),
  ]

  private static let deviceChannel: [Field] = [
    Field("connections", .integer, "TCP connections of devices."),
    Field("handshake_failures", .integer, "The part of `connections` that ended before its handshake was completed."),
    Field("registrations", .integer, "Registrations that got a token, the same one again included."),
    Field("registered", .integer, "Tokens that were valid at the end."),
    Field("online", .integer, "The part of `registered` whose device was connected at the end."),
    Field("sent", .integer, "Notifications that were sent to devices, those that were sent again included."),
    Field("repeated", .integer, "The part of `sent` that was sent before, on a connection that ended."),
    Field("accepted", .integer, "The part of `gateway.accepted` that was for registered devices."),
    Field("acknowledged", .integer, "The part of `devices.delivered` that was for registered devices."),
    Field(
      "coalesced_ms", .histogram,
      "From when a notification for a registered device was read to when it was replaced by a later one.",
      unit: .milliseconds, when: "the gateway had devices"),
    Field(
      "expired_ms", .histogram, "From when a notification for a registered device was read to when it expired.",
      unit: .milliseconds, when: "the gateway had devices"),
    Field("unacknowledged", .integer, "The part of `devices.stored` that was sent and not acknowledged."),
    Field(
      "restored", .integer,
      "Notifications of an earlier run, from `--device-store`: in `devices`, and not in `gateway.accepted`."),
    Field("unkept", .integer, "Notifications that could not be kept, and were not accepted for that reason."),
    Field("malformed", .integer, "Messages of devices that could not be read; each ended its connection."),
    Field("refused", .map(key: .text, value: .integer), "Requests of devices that were refused, by reason."),
  ]

  private static let localPush: [Field] = [
    Field("connections", .integer, "TCP connections to both channels."),
    Field("handshake_failures", .integer, "The part of `connections` that ended before its handshake was completed."),
    Field(
      "registered", .map(key: .text, value: .integer),
      "Connections on which a user has registered, by channel: `notification`, `control`."),
    Field("here", .integer, "Users who had a notification channel at the end."),
    Field(
      "networks", .map(key: .text, value: .object(localPushNetwork)),
      "The part that is of each network of `--local-push`, by its name, which is empty if it has none. `offered` and `absent` of the whole also have messages for users who were on no network, and `restarts` of the whole are those of the server."
    ),
    Field(
      "refused", .map(key: .text, value: .integer),
      "Connections that the server has ended, by reason: `unregistered` (something else than a user came first), `user` (another one than before, or its identifier or name is too long), `replaced` (the user has connected anew), `late` (nobody registered in time), `slow` (the peer did not read)."
    ),
    Field("malformed", .integer, "Connections that ended because of bytes that are no message."),
    Field(
      "requests", .map(key: .text, value: .integer), "Requests of devices by content; each was acknowledged."),
    Field(
      "sources", .map(key: .text, value: .integer),
      "Messages for users by where they come from: `device`, `control` (the endpoint), `file`, `rate`. The sum of `offered` of texts, invitations and call actions."
    ),
    Field("texts", .object(localPushRequests), "Texts for users."),
    Field("invitations", .object(localPushRequests), "Invitations to calls."),
    Field("call_actions", .object(localPushRequests), "Actions in calls, on the control channel."),
    Field("heartbeats", .object(localPushRequests), "Heartbeats on the notification channel."),
    Field("directories", .object(localPushRequests), "Lists of the users who are here, on the control channel."),
    Field(
      "stray_acknowledgements", .integer,
      "Acknowledgements that nobody awaited, because the request had timed out or never was."),
    Field("silenced_connections", .integer, "Connections that a fault has made the server silent on."),
    Field("restarts", .integer, "Restarts of the whole server."),
  ]

  private static let localPushNetwork: [Field] = [
    Field("registered", .integer, "Connections on which a user has registered: who comes twice counts twice."),
    Field("here", .integer, "Users who were there at the end."),
    Field("restarts", .integer, "How often nobody listened: restarts of the network, and of the whole server."),
    Field(
      "texts", .object(localPushRequests),
      "Texts for users who were there; `absent` is of messages for the network while nobody was."),
    Field("invitations", .object(localPushRequests), "Invitations to calls, likewise."),
    Field("heartbeats", .object(localPushRequests), "Heartbeats."),
  ]

  /// Requests of one kind.
  private static let localPushRequests: [Field] = [
    Field("offered", .integer, "All: `sent` + `absent` + `overloaded` + `silenced`."),
    Field("sent", .integer, "`acknowledged` + `timed_out` + `lost` + `unacknowledged`."),
    Field("acknowledged", .integer, "Acknowledged in time."),
    Field("timed_out", .integer, "Not acknowledged in time."),
    Field("lost", .integer, "Not acknowledged when the connection ended; the device may have them."),
    Field("unacknowledged", .integer, "Those whose time was not over at the end."),
    Field("absent", .integer, "Not sent, because the user had no connection of the channel."),
    Field("overloaded", .integer, "Not sent, because too many requests on the connection were not acknowledged."),
    Field("silenced", .integer, "Not sent, because a fault has swallowed them."),
  ]

  private static let feedback: [Field] = [
    Field("connections", .integer, "TCP connections to the feedback service."),
    Field("handshake_failures", .integer, "The part of `connections` that ended before its handshake was completed."),
    Field("completed", .integer, "Transfers that were read to their end, so that the list was cleared."),
    Field("tuples_sent", .integer, "Tuples that were sent."),
    Field("waiting", .integer, "Tuples on the lists of all topics when the books were closed."),
    Field("lost", .integer, "The part of `devices.uninstalled` that could not be put on a list.", since: "0.2"),
  ]

  private static let connection: [Field] = [
    Field("client", .text, "Address and port of the provider."),
    Field("topic", .either([.text, .null]), "Topic of its certificate; null without a certificate."),
    Field("received", .integer, "As in `gateway`, of this connection."),
    Field("accepted", .integer, "As in `gateway`, of this connection."),
    Field("rejected", .either([.object(rejection), .null]), "The rejection that ended it; null without one."),
    Field("discarded", .integer, "As in `gateway`, of this connection."),
    Field("opened", .time, "When it was accepted."),
    Field("closed", .time, "When it ended."),
    Field("end", .gatewayEnd, "How it ended."),
    Field("error", .text, "Message of TLS or the system about the end.", when: "there is one"),
    Field(
      "rejections", .integer, "Notifications that were rejected; none of them ended the connection.",
      when: "the connection is over HTTP/2", since: "0.3"),
  ]

  private static let rejection: [Field] = [
    Field("status", .integer, "The status code."),
    Field("identifier", .integer, "Identifier of the notification.", when: "its command has one"),
    Field("notification", .integer, "Number of the notification on its connection, from 0."),
  ]
}
