extension Schema {
  /// The document of `apnscope capacity`.
  public static let capacity = Schema(
    "capacity", title: "Search for a capacity", form: .document,
    text: [
      """
      `apnscope capacity --output` writes `capacity.json`: all trials, the rate that was found, and under \
      `analysis` the conclusions. The analysis is computed again when a document is read.
      """,
      """
      Values that do not exist, e.g. a recovery without an error, are absent and never 0.
      """,
    ],
    root: .object([
      Field(
        "schema", .either([.exactly(2), .exactly(1)]),
        "Version of this contract; a field that is renamed or retyped changes it. 1: `target` is called `campaign`."),
      Field("kind", .word("capacity"), "Which document it is."),
      Field("started", .time, "When the search began."),
      Field("ended", .time, "When it ended."),
      Field("environment", .environment, "The generator's machine and software."),
      Field("plan", .settings, "Settings that all trials share, by their names in a plan of a load."),
      Field("settings", .object(searchSettings), "How the search was made."),
      Field("ending", ending, "How the search ended."),
      Field("sustained_per_s", .number, "Notifications that are sustained.", unit: .perSecond, when: "a rate passed"),
      Field(
        "sustained_range", .object(range), "Between which rates the highest that is sustained lies.",
        when: "a rate passed, since 0.2"),
      Field("connections", .integer, "Connections over which the rate was found."),
      Field("target", .object(target), "The campaign to plan.", when: "`--target` was given"),
      Field(
        "demand", .object(demand), "The demand to lay over the capacity.", when: "`--demand` was given", since: "0.3"),
      Field(
        "storms", .array(.integer), "Numbers of connections that open at once (`--storm`).",
        when: "`--storm` was given", since: "0.3"),
      Field(
        "devices", .object(measuredFleet), "The fleet of devices that tells when the last one has the campaign.",
        when: "`--devices` was given", since: "0.3"),
      Field("campaign", .object(target), "The same in documents of schema 1.", until: "0.2"),
      Field("trials", .array(.object(trial)), "The trials in their order."),
      Field("analysis", .object(analysis), "Laws fitted to the trials, and the plan of the campaign."),
    ]),
    example: #"""
      {
        "schema": 2, "kind": "capacity", "ending": "found", "sustained_per_s": 41500,
        "sustained_range": {"lower_per_s": 40300, "upper_per_s": 42700}, "connections": 4
      }
      """#)

  private static let ending: Shape = .values([
    "found": "The rate held for long, and one a step above it failed twice.",
    "generator_limited": "The rate held; the generator was too slow to try higher rates.",
    "unsettled": "Trials ran out; the rate passed, but need not be confirmed.",
    "nothing_passed": "Not even the lowest rate passed.", "interrupted": "It was interrupted.",
  ])

  private static let searchSettings: [Field] = [
    Field("precision", .number, "How far a passing and a failing rate are apart at the end.", unit: .share),
    Field("trial_s", .number, "Length of a trial's measured phase.", unit: .seconds),
    Field("confirm_s", .number, "The same of a long trial.", unit: .seconds),
    Field("settle_s", .number, "Time before the measured phase.", unit: .seconds),
    Field("lag_limit_us", .integer, "Largest send lag (p99) with which a trial passes.", unit: .microseconds),
    Field("error_limit", .number, "Largest share of rejections with which a trial passes.", unit: .share),
    Field("resent_limit", .number, "Largest share of second or later sendings with which it passes.", unit: .share),
    Field("trial_command", .text, "The command that made the trials.", when: "`--trial-command` was given"),
  ]

  private static let range: [Field] = [
    Field("lower_per_s", .number, "Lower end of the range.", unit: .perSecond),
    Field("upper_per_s", .number, "Upper end.", unit: .perSecond, when: "a trial has shown how much is too much"),
  ]

  private static let measuredFleet: [Field] = [
    Field("source", .text, "The name of its file."), Field("devices", .integer, "Its devices."),
    Field(
      "offline_share", .number, "Share of the devices' time in which they were not online.", unit: .share,
      when: "the result has a course"),
    Field("online", .integer, "Notifications that the gateway sent as it got them, to connected devices."),
    Field(
      "received_per_s", .number,
      "The highest rate at which notifications came for 10 s or, in a shorter run, for all of it.", unit: .perSecond),
    Field("online_us", .histogram, "To a connected device.", unit: .microseconds),
    Field("is_from_due", .boolean, "Whether `online_us` is from when it was due, or from the gateway's read."),
    Field("stored_us", .histogram, "From the gateway's read to a device that came back.", unit: .microseconds),
    Field("early", .integer, "Notifications that tell a time after the one at which they came: the clocks differ."),
    Field(
      "remarks", .array(.text),
      "Reasons to doubt the answer: the run was ended early, segments are missing, the gateway made errors.",
      when: "there are any"),
  ]

  private static let target: [Field] = [
    Field("notifications", .integer, "How many are to be sent (`--target`)."),
    Field("within_s", .number, "Time that it may take.", unit: .seconds, when: "`--within` was given"),
  ]

  private static let demand: [Field] = [
    Field("source", .text, "Name of the file."),
    Field(
      "origin",
      .values([
        "inspection": "An inspection: what a recording shows as sent.", "table": "A CSV with times and rates.",
        "history": "A history: what its loads sent, or its simulators received.",
      ]), "Kind of the file."),
    Field("factor", .number, "Factor of all rates."),
    Field("started", .time, "When second 0 is.", when: "the file has such times"),
    Field("from_s", .array(.number), "Beginnings of steps with one rate each, from 0.", unit: .seconds),
    Field("per_s", .array(.number), "Rates of the steps, before the factor.", unit: .perSecond),
    Field("end_s", .number, "End of the last step.", unit: .seconds),
    Field("error_share", .number, "Rejections in what the file shows.", unit: .share, when: "the file shows it"),
    Field("notes", .array(.text), "What the file does not show, as sentences."),
  ]

  private static let trial: [Field] = trialSetup + trialCounts + trialFigures

  private static let trialSetup: [Field] = [
    Field("number", .integer, "Number of the trial, from 1."),
    Field(
      "purpose",
      .values([
        "burst": "As fast as possible, for an upper bound.", "search": "A step of the search.",
        "confirm": "A long trial of the rate that was found.", "above": "A long trial a step above it.",
        "connections": "As fast as possible over other numbers of connections.",
        "batch": "As fast as possible with other batches.", "errors": "As fast as possible with errors on purpose.",
        "check": "One more point, which a fit has to predict.",
        "storm": "All connections opened at once, with full handshakes.",
      ]), "Why the trial was made."),
    Field(
      "verdict",
      .values([
        "passed": "It kept all limits.", "failed": "It broke one.",
        "void": "Void: the generator was disturbed, or the trial was interrupted.",
        "measured": "Not judged: it ran as fast as possible.",
      ]), "Its verdict."),
    Field("reasons", .array(.text), "Why it failed or is void, as sentences."),
    Field("connections", .integer, "Connections at a time."),
    Field("batch", .integer, "Most notifications of a write.", when: "it is not a full TLS record"),
    Field("offered_per_s", .number, "Rate of the schedule.", unit: .perSecond, when: "it had a rate"),
    Field("fault_share", .number, "Notifications that were made bad on purpose.", unit: .share),
    Field("settle_s", .number, "Time before the measured phase.", unit: .seconds),
    Field("measured_s", .number, "Length of the measured phase.", unit: .seconds),
    Field("drain_s", .number, "From its end until all was proven.", unit: .seconds),
  ]

  private static let trialCounts: [Field] = [
    Field("notifications", .notificationCounts, "Distinct notifications.", of: .trial),
    Field("sendings", .sendingCounts, "Every time a notification was written.", of: .trial),
    Field("errors", .integer, "Error responses.", of: .trial),
    Field("connections_opened", .integer, "Connections that came up.", of: .trial),
    Field("connections_failed", .integer, "Attempts to connect that failed.", of: .trial),
    Field("written_bytes", .integer, "Plaintext that was written.", unit: .bytes, of: .trial),
    Field(
      "opening", .object(opening), "How its connections were opened before its first notification.",
      when: "it had begun to", since: "0.3"),
  ]

  private static let opening: [Field] = [
    Field(
      "seconds", .number, "Until every connection had been established, or no more were waited for.", unit: .seconds),
    Field("stagger_s", .number, "Time over which the attempts were spread.", unit: .seconds),
    Field("opened", .integer, "Connections that were established."),
    Field("resumed", .integer, "The part of `opened` that resumed a session."),
    Field("failed", .integer, "Attempts that failed."),
    Field("up", .integer, "Connections that the gateway took, as far as the whole trial shows."),
    Field(
      "handshake_p50_us", .integer, "Median of full TLS handshakes.", unit: .microseconds, when: "there were any"),
    Field(
      "handshake_p99_us", .integer, "99th percentile of full TLS handshakes.", unit: .microseconds,
      when: "there were any"),
    Field("cpu_cores", .number, "Cores that the process used.", unit: .cores),
    Field(
      "waited_share", .number, "Time in which its threads could have run and had no processor.", unit: .share),
  ]

  private static let trialFigures: [Field] = [
    Field("written_per_s", .number, "Notifications that were written.", unit: .perSecond, of: .trialMeasured),
    Field(
      "accepted_per_s", .number, "Notifications that were accepted, over the time until that was proven.",
      unit: .perSecond, of: .trial),
    Field("send_lag_p50_us", .integer, "Median of send lag.", unit: .microseconds, of: .trialMeasured),
    Field("send_lag_p99_us", .integer, "99th percentile of send lag.", unit: .microseconds, of: .trialMeasured),
    Field(
      "loop_lag_p99_us", .integer, "99th percentile of how late the event loops' clocks came.", unit: .microseconds,
      of: .trialMeasured),
    Field(
      "stalled_s", .number, "Time in which the generator was stalled.", unit: .seconds, of: .trial, since: "0.2"),
    Field(
      "longest_stall_ms", .number, "The longest such time.", unit: .milliseconds, of: .trial, since: "0.2"),
    Field(
      "backlog_per_s", .number, "Growth of the backlog: due and not yet written.", unit: .perSecond, of: .trialMeasured,
      when: "it had a rate and 3 seconds"),
    Field(
      "behind_ms", .number, "The longest that a marker's answer took.", unit: .milliseconds, of: .trialMeasured,
      when: "a marker was answered"),
    Field("loss_mean", .number, "Mean of notifications that an error discarded.", when: "there was an error"),
    Field(
      "recover_mean_ms", .number, "Mean time from an error response to the next write.", unit: .milliseconds,
      when: "there was a recovery"),
    Field("per_write_mean", .number, "Mean of notifications of a write.", when: "something was written"),
    Field(
      "cpu_cores", .number, "Cores that the load used.", unit: .cores, of: .trialMeasured,
      when: "the trial was made by this process, or has a whole second in its series"),
    Field("available_cores", .integer, "Cores that it could use.", unit: .cores),
    Field(
      "waited_share", .number, "Time in which its threads could have run and had no processor.", unit: .share,
      of: .trialMeasured, when: "the trial was made by this process"),
    Field(
      "limited_by",
      .values([
        "generator": "The generator, at least in one segment.", "gateway": "The gateway.", "schedule": "The rate.",
      ]),
      "The limit that kept its rate from being higher.", when: "the trial was made by a command (`--trial-command`)",
      since: "0.3"
    ),
    Field(
      "cpu_per_notification_us", .number, "Processor time for each notification.", unit: .microseconds,
      of: .trialMeasured, when: "something was written"),
    Field("max_rss_bytes", .integer, "Most resident memory.", unit: .bytes, of: .trial),
  ]
}
