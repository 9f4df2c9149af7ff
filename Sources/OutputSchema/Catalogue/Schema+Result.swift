extension Schema {
  /// The document of `apnscope load --output` and `apnscope merge --output`.
  public static let result = Schema(
    "result", title: "Result of a load", form: .document,
    text: [
      """
      `apnscope load --output` and `apnscope merge --output` write one JSON document; during a run, `load` saves a \
      document to a file beside it, whose name ends in `.part`.
      """,
      """
      `notifications` counts each distinct notification once, by its final fate; `sendings` counts every time one was \
      written. Both, `error_responses` and `connections` cover the whole run. `rates`, `latency`, `batches` and \
      `loss_window` cover the measured phase, by the time of writing; `phases` has each of them for every phase.
      """,
      """
      Documents with `"measured_by": 2` use these definitions. Those without it are of 0.1.0, whose latencies cover \
      the whole run, and whose send lag lacks notifications that were never sent. Durations end in `_s`, `_ms` or `_us`.
      """,
    ],
    root: .object(run + counts + figures + course),
    example: #"""
      {
        "schema": 1, "kind": "load", "measured_by": 2, "measured_s": 30,
        "notifications": {
          "generated": 10, "accepted": 9, "rejected": 1, "unknown": 0, "abandoned": 0, "unproven": 0
        },
        "error_responses": {"8": 1}
      }
      """#)

  private static let run: [Field] = [
    Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
    Field("kind", .word("load"), "Which document it is."),
    Field("measured_by", .integer, "How the figures are computed: 2.", since: "0.2"),
    Field("started", .time, "When the run began; of a merged result, when its first part did."),
    Field(
      "start", .object(start), "The planned and the actual start of the schedule.",
      when: "it was to begin at a time of day (`--start-at`), and all merged parts at the same", since: "0.3"),
    Field("environment", .environment, "The generator's machine and software."),
    Field(
      "labels", .map(key: .text, value: .text),
      "The labels of `--label`: values by name; of merged parts those that all have.",
      when: "there are any", since: "0.3"),
    Field("plan", .settings, "The plan in effect: every setting by its name in a plan file."),
    Field("replay", .object(replay), "The recording that was replayed.", when: "recorded notifications were sent"),
    Field("verdict", .object(verdict), "Outcome of the run, its limit, and its checks."),
    Field("interrupted", .object(interruption), "Where the run was ended.", when: "it ended before its time"),
    Field("merged", .object(merged), "How far the parts ran together.", when: "it is of several runs"),
    Field(
      "parts", .array(.object(segment)), "The runs that it is of, by segment; at most 100,000.", when: "it was merged",
      since: "0.3"),
  ]

  private static let counts: [Field] = [
    Field(
      "measured_s", .number, "Length of the measured phase; 0 without one, and when merged parts did not run together.",
      unit: .seconds),
    Field("notifications", .notificationCounts, "Distinct notifications.", of: .run),
    Field("sendings", .sendingCounts, "Every time a notification was written.", of: .run),
    Field("schedule", .object(schedule), "Notifications that were due and never sent.", of: .run),
    Field("error_responses", .countsByStatus, "Error responses by status.", of: .run),
    Field("answers", .object(answers), "Bytes and responses of the gateway that settle no notification.", of: .run),
    Field(
      "feedback", .object(feedback), "Polls of the feedback service, and listed tokens.", of: .run,
      when: "feedback is polled, and the schedule has begun"),
    Field("connections", .connectionCounts, "Attempts, connections, and how they ended.", of: .run),
    Field(
      "topics", .array(.object(topic)), "The same counts for each topic; those of all topics add up to the run's.",
      of: .run, when: "the load had several identities", since: "0.3"),
  ]

  private static let topic: [Field] = [
    Field("topic", .text, "The topic, which the certificate of its connections names."),
    Field(
      "share", .number, "Share of the notifications that the weights of its payloads ask for, from 0 to 1.",
      when: "merged parts agree in it"),
    Field("notifications", .notificationCounts, "Distinct notifications.", of: .run),
    Field("sendings", .sendingCounts, "Every time a notification was written.", of: .run),
    Field("schedule", .object(schedule), "Notifications that were due and never sent.", of: .run),
    Field("error_responses", .countsByStatus, "Error responses by status.", of: .run),
    Field("connections", .connectionCounts, "Attempts, connections, and how they ended.", of: .run),
  ]

  /// A token is listed when a list that was read to its end has it with a time after its registration.
  private static let feedback: [Field] = [
    Field("prunes", .boolean, "Whether notifications to listed tokens were left out; `false` with `--no-prune`."),
    Field("polls", .integer, "Polls: polls = complete + incomplete + failed."),
    Field("complete", .integer, "Polls whose list was read to its end."),
    Field("incomplete", .integer, "Polls whose list was cut off; they list nothing."),
    Field("failed", .integer, "Polls that read nothing: there was no connection, or it ended in an error."),
    Field("failures", .map(key: .text, value: .integer), "Incomplete and failed polls by reason, in words."),
    Field(
      "tuples", .integer,
      "Tuples of complete polls: tuples = listed + registered_since + unknown + not_remembered."),
    Field("listed", .integer, "Tuples that list a token of the load after its registration, the start of the run."),
    Field("registered_since", .integer, "Tuples whose token was registered at their time, or after it: it stays."),
    Field("unknown", .integer, "Tuples with a token that the load does not have."),
    Field("not_remembered", .integer, "Tuples with a token beyond the limit of `--max-pruned`: it stays."),
    Field("tuples_cut_off", .integer, "Whole tuples of incomplete polls; in no other count."),
    Field(
      "tokens", .integer, "Distinct tokens of the load in complete lists.",
      when: "all were remembered, and the polls are of one run"),
    Field("listed_tokens", .integer, "Distinct tokens that are listed.", when: "the polls are of one run"),
    Field(
      "sent_to_listed", .integer,
      "Sendings to tokens that were listed before they were written; with pruning, what was in batches already."),
    Field(
      "rejected_listed", .integer, "Rejections with status 8 of sendings to tokens that were listed by then."),
    Field("discarded_by_listed", .integer, "Sendings that these rejections discarded."),
    Field("rejected_other", .integer, "Rejections with status 8 of sendings to other tokens."),
    Field(
      "pruned_unproven", .integer,
      "The part of the pruned notifications that was written before and may have been accepted."),
  ]

  private static let figures: [Field] = [
    Field("rates", .rates, "Notifications and bytes a second.", of: .measured),
    Field("latency", .latencies, "Histograms of lags and latencies.", of: .measured),
    Field("batches", .batches, "Sizes of writes, and why they were made.", of: .measured),
    Field("loss_window", .histogram, "Notifications that an error response discarded.", of: .measured),
    Field("resources", .object(resources), "Processor time and memory of the generator's process."),
  ]

  private static let course: [Field] = [
    Field("series", .array(.object(second)), "The run second by second."),
    Field(
      "bins", .object(bins), "Notifications in short times of equal length, for means and their autocorrelation.",
      when: "the schedule has begun, and the result is of one run"),
    Field("phases", .array(.object(phase)), "The same counts and figures for each phase that the run came to."),
    Field("stalls", .object(stalls), "Stalls of the generator.", since: "0.2"),
    Field("timeline", .object(timeline), "When each connection was up, as far as there was room."),
    Field("warnings", .array(.text), "Why numbers may be other than they seem, as sentences."),
  ]

  private static let replay: [Field] = [
    Field("notifications", .integer, "Recorded notifications that were there to be sent."),
    Field("length_s", .number, "From the first to the last, as recorded.", unit: .seconds),
    Field("skipped_records", .integer, "Records other than notifications."),
  ]

  private static let outcomes: Shape = .values([
    "proven": "All that was due was sent or pruned, and the fate of each notification is known.",
    "unproven": "Something is open; `reasons` says what.",
    "failed": "Nothing was accepted, the run was abandoned early, or not all connections came up.",
  ])

  private static let limits: Shape = .values([
    "generator": "This process had no more processor time.", "gateway": "The gateway took no more.",
    "schedule": "All due notifications were sent.",
  ])

  private static let verdict: [Field] = [
    Field("outcome", outcomes, "Outcome of the run.", since: "0.2"),
    Field("reasons", .array(.text), "Reasons for the outcome, as sentences.", since: "0.2"),
    Field("limited_by", limits, "Which side kept the rate from being higher."),
    Field("thresholds", .array(.object(threshold)), "The conditions of `--threshold`."),
    Field("invariants", .array(.object(invariant)), "Equations of the books, each with its numbers."),
  ]

  static let threshold: [Field] = [
    Field("expression", .text, "The condition, as `send_lag_p99<5ms`."),
    Field(
      "value", .number, "The measured value; times are in microseconds; in documents of 0.1.0 also 0 for none.",
      when: "there was something to measure"),
    Field("passed", .boolean, "Whether the condition holds."),
    Field(
      "reason", .text, "Why the condition cannot be judged, or that it ended the run: either way it does not pass.",
      when: "that is so"),
  ]

  private static let invariant: [Field] = [
    Field("name", .text, "The equation, as `written = accepted + rejected + discarded + unknown`."),
    Field("holds", .boolean, "Whether it holds."),
    Field("detail", .text, "The same with the numbers."),
  ]

  private static let interruption: [Field] = [
    Field("phase", .phaseName, "The phase that was on."),
    Field("after_s", .number, "Seconds of that phase.", unit: .seconds),
    Field(
      "cause",
      .values([
        "lost": "The process was not seen to end; these are the last books it kept.",
        "threshold": "A condition with `,abort` did not hold.",
      ]),
      "Why.", when: "the end was not asked for"),
  ]

  private static let merged: [Field] = [
    Field("runs", .integer, "Runs that the result is of."),
    Field("together", .boolean, "Whether all measured at the same time for nine tenths of the shortest phase."),
    Field("shortest_s", .number, "Length of the shortest measured phase.", unit: .seconds),
    Field(
      "from_s", .number, "When the time begins in which all measured.", unit: .unixSeconds,
      when: "all documents have it"),
    Field(
      "to_s", .number, "When it ends; before `from_s` when there is no such time.", unit: .unixSeconds,
      when: "all documents have it"),
  ]

  private static let segment: [Field] = [
    Field("segment", .text, "The part of the stream, as in a plan: `2/4`."),
    Field("host", .text, "The machine."),
    Field("labels", .map(key: .text, value: .text), "The run's labels.", when: "there are any"),
    Field("started", .time, "When the run began, by the machine's own clock."),
    Field(
      "late_s", .number, "From the planned to the actual start.", unit: .seconds,
      when: "it was to begin at a time of day, and began"),
    Field(
      "clock_offset_s", .number,
      "By how much the machine's clock is ahead of the gateway's, by the connections that are in the books of both.",
      unit: .seconds, when: "merged with a ledger that has its connections"),
    Field(
      "measured_from_s", .number, "When the measured phase began, by the machine's own clock.", unit: .unixSeconds,
      when: "there was one"),
    Field("measured_s", .number, "Length of the measured phase.", unit: .seconds),
    Field("written", .integer, "Notifications written, each time that one was.", of: .run),
    Field("accepted", .integer, "The part of `written` that is proven accepted.", of: .run),
    Field(
      "written_per_s", .number, "Written per second.", unit: .perSecond, of: .measured,
      when: "there was a measured phase"),
    Field(
      "send_lag_p99_us", .integer, "99th percentile of the send lag.", unit: .microseconds, of: .measured,
      when: "anything was due"),
    Field("cpu_cores", .number, "Processor time per second of the run.", of: .run, when: "the run took time"),
    Field("limited_by", limits, "What kept its rate from being higher."),
    Field("outcome", outcomes, "What it has proven.", when: "the document has it"),
    Field("interrupted", .object(interruption), "Where the run was ended.", when: "it ended before its time"),
    Field("warnings", .array(.text), "Its own warnings, at most 20."),
  ]

  private static let start: [Field] = [
    Field("planned", .time, "When the schedule was to begin."),
    Field(
      "actual", .time, "When it began, by the machine's clock; of a merged result the latest.", when: "it began"),
    Field(
      "late_s", .number, "From the planned to the actual time; of a merged result the most.", unit: .seconds,
      when: "it began"),
    Field(
      "missed", .integer, "Due before a run that was late began (`late = \"skip\"`); a part of `schedule.skipped`.",
      when: "it began"),
    Field(
      "clock_synchronised", .boolean,
      "Whether the system says that its clock is kept near to UTC; of a merged result, whether all do.",
      when: "the system tells it"),
    Field(
      "clock_error_s", .number, "The clock's largest error, as the system tells it; of a merged result the largest.",
      unit: .seconds, when: "the clock is synchronised"),
  ]

  private static let schedule: [Field] = [
    Field("skipped", .integer, "Due and skipped because they were late (`behind = \"skip\"`)."),
    Field("unsent", .integer, "Due and still waiting when the run ended. Neither is in any other count."),
  ]

  private static let answers: [Field] = [
    Field("unresolved", .integer, "Error responses that name no notification of their connection."),
    Field("stray_bytes", .integer, "Bytes that are not an error response.", unit: .bytes),
  ]

  private static let resources: [Field] = [
    Field("cpu_user_s", .number, "Processor time in user mode.", unit: .seconds, of: .run),
    Field("cpu_system_s", .number, "Processor time in the kernel.", unit: .seconds, of: .run),
    Field("max_rss_bytes", .integer, "Most resident memory.", unit: .bytes, of: .run),
    Field(
      "loop_lag_us", .histogram, "How late the event loops' clocks came, weighted by the time that it covers.",
      of: .measured),
  ]
}
