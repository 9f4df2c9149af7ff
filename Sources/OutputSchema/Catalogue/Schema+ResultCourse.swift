// How a run went over time: its seconds, bins, phases, stalls and connections.

extension Schema {
  static let second: [Field] = [
    Field("t_s", .number, "When the second began, since the run's start.", unit: .seconds),
    Field("written", .integer, "Notifications that were written.", of: .second),
    Field("writes", .integer, "Batches that they were written in.", of: .second, when: "every part counted them"),
    Field("accepted", .integer, "Notifications that were learnt to be accepted.", of: .second),
    Field("errors", .integer, "Error responses.", of: .second),
    Field("errors_by_status", .countsByStatus, "The parts of `errors` with each status.", of: .second),
    Field("skipped", .integer, "Left out because they would have been late.", of: .second),
    Field(
      "pruned", .integer, "Left out because feedback lists their token.", of: .second, when: "feedback is polled"),
    Field(
      "feedback_tuples", .integer, "Tuples of the polls that were completed.", of: .second, when: "feedback is polled"),
    Field("opened", .integer, "Connections that came up.", of: .second),
    Field("closed", .integer, "Connections that ended.", of: .second),
    Field(
      "closed_by_cause", .map(key: .closeCause, value: .integer), "The parts of `closed` with each cause.", of: .second,
      when: "every part counted them"),
    Field("up", .integer, "Connections that are up at its end."),
    Field("backlog", .integer, "Notifications that are due, or to be sent again, and not written at its end."),
    Field(
      "send_lag_p99_us", .integer, "99th percentile of send lag, by the time of writing.", unit: .microseconds,
      of: .second),
    Field(
      "loop_lag_p99_us", .integer, "99th percentile of how late the event loops' clocks came.", unit: .microseconds,
      of: .second),
    Field(
      "stalled_ms", .number, "How long an event loop was stalled.", unit: .milliseconds, of: .second,
      when: "every part noted it"),
    Field("cpu", .number, "Cores that the process used.", unit: .cores, of: .second),
    Field("rss_bytes", .integer, "Resident memory at its end.", unit: .bytes),
  ]

  static let bins: [Field] = [
    Field("from_s", .number, "When the first begins, since the run's start.", unit: .seconds),
    Field("length_s", .number, "Length of each: 0.1, or twice that as often as a long run needs.", unit: .seconds),
    Field("written", .array(.integer), "Notifications that were written in each; the run's end may cut the last one."),
  ]

  static let phase: [Field] = [
    Field("name", .phaseName, "Which phase it is."),
    Field("seconds", .number, "Its length.", unit: .seconds),
    Field(
      "notifications", .notificationCounts,
      "Distinct notifications: those generated in it, and those accepted or rejected by a sending of it."),
    Field("sendings", .sendingCounts, "Sendings that were written in it, by fate.", of: .phase),
    Field("skipped", .integer, "Left out because they would have been late.", of: .phase),
    Field("connections", .connectionCounts, "Attempts, connections, and how they ended.", of: .phase),
    Field("error_responses", .countsByStatus, "Error responses by status.", of: .phase),
    Field("send_lag_us", .histogram, "The same as `latency.send_lag_us`.", of: .phase),
    Field("rates", .rates, "Notifications and bytes a second.", of: .phase, since: "0.2"),
    Field("latency", .latencies, "Histograms of lags and latencies.", of: .phase, since: "0.2"),
    Field("batches", .batches, "Sizes of writes, and why they were made.", of: .phase, since: "0.2"),
    Field("loss_window", .histogram, "Notifications that an error response discarded.", of: .phase, since: "0.2"),
  ]

  static let stalls: [Field] = [
    Field("count", .integer, "Stalls of an event loop of 10 ms and more.", of: .measured),
    Field(
      "total_s", .number, "Time in which at least one event loop was stalled.", unit: .seconds, of: .measured),
    Field("longest_ms", .number, "The longest of them.", unit: .milliseconds, of: .measured),
    Field(
      "listed",
      .array(
        .object([
          Field("t_s", .number, "When it began, since the run's start.", unit: .seconds),
          Field("ms", .number, "How long it was.", unit: .milliseconds),
        ])), "The first thousand of them, in their order.", of: .run),
  ]

  static let timeline: [Field] = [
    Field("omitted", .integer, "Spans that are not listed, because there was no room (`--timeline`)."),
    Field(
      "spans",
      .array(
        .object([
          Field("connection", .integer, "Number of the connection in the run, from 0; kept when it is reopened."),
          Field(
            "state",
            .values([
              "handshake": "From the attempt to connect to the end of the TLS handshake, or its failure.",
              "up": "Until its last byte is settled.", "back-off": "Waiting after a failure.",
            ]), "State of the connection."),
          Field("from_s", .number, "From when, since the run's start.", unit: .seconds),
          Field("to_s", .number, "Until when, since the run's start.", unit: .seconds),
        ])), "Spans of the connections' lives, in the order in which they began."),
  ]
}

extension Shape {
  static let phaseName = values([
    "connect": "Connections are made.", "warm-up": "The schedule has begun; not measured yet.",
    "measured": "Rates and latencies are of this phase.", "drain": "The last answers, and resends after them.",
  ])

  static let connectionCounts = named(
    Definition(
      "connection counts", "Connections, attempts to make them, and how they ended.",
      .object([
        Field("asked", .integer, "Connections that the plan asks for.", when: "it is of a whole run, since 0.2"),
        Field(
          "ever_up", .integer,
          "The part of `asked` that was up at any time: the gateway settled a notification on it, or held it for more than a second, or until it was closed here. Where `refused` is absent: that was opened.",
          when: "it is of a whole run, since 0.2"),
        Field("attempted", .integer, "Attempts to connect."),
        Field("opened", .integer, "Attempts that succeeded, TLS handshake included."),
        Field("resumed", .integer, "The part of `opened` that resumed a TLS session."),
        Field("failed", .integer, "Attempts that failed."),
        Field(
          "refused", .integer,
          "The part of `opened` that the gateway closed within a second, before it had settled anything on it; `closed` has them too.",
          since: "0.2"),
        Field("closed", .map(key: .closeCause, value: .integer), "Connections that ended, by cause."),
        Field(
          "suites", .map(key: .text, value: .integer), "Handshakes by version and suite, as `TLS 1.2 AES128-SHA`.",
          since: "0.2"),
        Field(
          "failures", .map(key: .text, value: .integer), "Failed attempts by reason, in words.",
          since: "0.2"),
      ])))

  private static let thereIsARate = "the phase took time, and merged segments ran together; documents of 0.1.0 have 0"

  static let rates = named(
    Definition(
      "rates", "Notifications that were written in a phase, over the phase's length.",
      .object([
        Field(
          "written_per_s", .number, "Notifications that were written.", unit: .perSecond, when: thereIsARate),
        Field(
          "accepted_per_s", .number, "Notifications that were written and, then or later, accepted.", unit: .perSecond,
          when: thereIsARate),
        Field(
          "written_bytes_per_s", .number, "Plaintext that was written.", unit: .bytesPerSecond, when: thereIsARate),
        Field(
          "basis",
          .values([
            "measured": "The measured phase.",
            "measured_and_drain": "That and the drain: the gateway was still settling when the phase ended.",
          ]), "The time over which `accepted_per_s` is.",
          when: "the rates are the result's own and not a phase's, since 0.2"),
      ])))

  static let latencies = named(
    Definition(
      "latencies",
      "Histograms of times: lags and answers by the time of writing, connecting and recovering by their end.",
      .object([
        Field(
          "send_lag_us", .histogram,
          "From when each notification was due until it was written or abandoned."),
        Field(
          "send_lag_own_us", .histogram, "The part of each send lag in which the generator itself was late.",
          since: "0.2"),
        Field(
          "send_lag_gateway_us", .histogram, "The rest: no connection took more.", since: "0.2"),
        Field("error_ms", .histogram, "From the writing of a rejected notification to its error response."),
        Field("drain_ms", .histogram, "From the writing of a marker to its answer."),
        Field("recover_ms", .histogram, "From an error response until its connection is up again and writes."),
        Field("tcp_connect_ms", .histogram, "From SYN to SYN-ACK."),
        Field("tls_handshake_ms", .histogram, "Full TLS handshakes; in documents of 0.1.0 resumed ones as well."),
        Field("tls_resumed_ms", .histogram, "TLS handshakes that resumed a session.", since: "0.2"),
      ])))

  static let batches = named(
    Definition(
      "batches", "The writes of a phase.",
      .object([
        Field("notifications", .histogram, "Notifications of a write."),
        Field("bytes", .histogram, "Plaintext of a write."),
        Field(
          "flush_reasons",
          .map(
            key: .values([
              "full": "It was as large as it may be.", "linger": "It had waited for `--linger`.",
              "idle": "No earlier bytes were unsent.",
              "drain": "The socket had taken all unsent bytes.",
            ]), value: .integer), "Writes by why they were made when they were."),
      ])))
}
