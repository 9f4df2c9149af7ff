// The analysis of a capacity run's trials.

extension Schema {
  static let analysis: [Field] = [
    Field(
      "contradiction", .object(contradiction), "A trial that took more than the search says is sustained.",
      when: "there is one"),
    Field(
      "scalability", .object(scalability), "The universal scalability law over connections, fitted.",
      when: "three numbers of connections or more were tried"),
    Field(
      "goodput", .object(goodput), "The goodput law over errors, of one connection.",
      when: "a trial had an error that teaches it"),
    Field(
      "batching", .object(batching), "Processor time of a notification as F/b + V, for b notifications of a write.",
      when: "enough batches were tried"),
    Field("campaign", .object(campaignPlan), "Resources of a campaign.", when: "a rate passed"),
    Field(
      "demand", .object(demandForecast), "The demand over the sustained rate.",
      when: "there is a demand, and a rate passed", since: "0.3"),
    Field(
      "storms", .array(.object(stormForecast)),
      "How long connections that open at once take to be back: those that were asked for, otherwise those that were tried.",
      when: "there are any", since: "0.3"),
    Field(
      "devices", .object(deviceForecast), "When the last device has the campaign.",
      when: "`--devices` was given with `--target`", since: "0.3"),
    Field("warnings", .array(.text), "Why numbers may be other than they seem, as sentences."),
  ]

  private static let check: [Field] = [
    Field("at", .number, "The connections, or the share of errors, of the point."),
    Field("predicted_per_s", .number, "Prediction of the law.", unit: .perSecond),
    Field("measured_per_s", .number, "Measured value.", unit: .perSecond),
    Field("deviation", .number, "How much more was measured than predicted.", unit: .share),
  ]

  private static let contradiction: [Field] = [
    Field("trial", .integer, "Number of the trial."),
    Field("accepted_per_s", .number, "Throughput.", unit: .perSecond),
  ]

  private static let leavesErrors = "there are more than three points"

  private static let scalability: [Field] = [
    Field("gamma", .number, "Throughput of one connection.", unit: .perSecond),
    Field("alpha", .number, "The part that has to wait in line.", unit: .share),
    Field("beta", .number, "What keeping all in agreement costs."),
    Field("gamma_error", .number, "Standard error of gamma.", unit: .perSecond, when: leavesErrors),
    Field("alpha_error", .number, "Standard error of alpha.", when: leavesErrors),
    Field("beta_error", .number, "Standard error of beta.", when: leavesErrors),
    Field(
      "gamma_half_width", .number, "Half of gamma's 95 % confidence interval.", unit: .perSecond,
      when: leavesErrors),
    Field("alpha_half_width", .number, "Half of alpha's 95 % confidence interval.", when: leavesErrors),
    Field("beta_half_width", .number, "Half of beta's 95 % confidence interval.", when: leavesErrors),
    Field("r_squared", .number, "The part of the variance that the law explains.", unit: .share),
    Field("points", .integer, "Trials that the law is fitted to."),
    Field("peak", .number, "Connections above which more are slower.", when: "it is known from the trials"),
    Field("check", .object(check), "One more point against the law.", when: "there is one"),
  ]

  private static let goodput: [Field] = [
    Field("streaming_per_s", .number, "Throughput without rejections.", unit: .perSecond),
    Field("discarded_per_error", .number, "Mean of notifications that an error discards."),
    Field("downtime_ms", .number, "Time that an error costs besides.", unit: .milliseconds),
    Field("error_share", .number, "Rejections without intentionally bad notifications.", unit: .share),
    Field("check", .object(check), "One more point against the law.", when: "there is one"),
  ]

  private static let batching: [Field] = [
    Field("per_write_us", .number, "F: processor time of a write.", unit: .microseconds),
    Field("per_notification_us", .number, "V: processor time of a notification.", unit: .microseconds),
    Field(
      "per_write_half_width_us", .number, "Half of F's 95 % confidence interval.", unit: .microseconds,
      when: "there are more than two points"),
    Field(
      "per_notification_half_width_us", .number, "Half of V's 95 % confidence interval.", unit: .microseconds,
      when: "there are more than two points"),
    Field("r_squared", .number, "The part of the variance that the law explains.", unit: .share),
    Field("not_shown", .text, "Why F and V say too little to be shown.", when: "they do"),
  ]

  private static let basis = Shape.named(
    Shape.Definition(
      "evidence", "Evidence of a figure.",
      .values([
        "measured": "A trial has shown it.", "interpolated": "It lies between values that trials have shown.",
        "extrapolated": "A law predicts it beyond all that trials have shown.",
      ])))

  private static let demandForecast: [Field] = [
    Field(
      "verdict",
      .values([
        "fits": "The peak is not above the range of the sustained rate.",
        "late": "The peak is above the range: notifications have to wait.", "uncertain": "No trial proves either.",
      ]), "Whether the demand fits."),
    Field("notifications", .number, "Notifications of the demand."),
    Field("length_s", .number, "Length of the demand.", unit: .seconds),
    Field("peak_per_s", .number, "The highest rate.", unit: .perSecond),
    Field("peak_at_s", .number, "When it is first demanded.", unit: .seconds),
    Field("mean_per_s", .number, "The mean rate.", unit: .perSecond),
    Field(
      "headroom", .number, "What the peak leaves of the sustained rate; below 0 when it is above it.", unit: .share),
    Field("at_sustained", .object(backlogCourse), "The backlog with the sustained rate."),
    Field(
      "at_lower", .object(backlogCourse), "The same with the lower end of its range.", when: "there is a range"),
    Field(
      "at_upper", .object(backlogCourse), "The same with the upper end of its range.", when: "it has one"),
    Field("connections", .integer, "Connections that the peak needs.", when: "the trials allow a prediction"),
    Field("connections_basis", basis, "Evidence of `connections`.", when: "`connections` is there"),
    Field(
      "storm", .object(demandStorm), "A reconnect storm at the beginning of the peak.",
      when: "a trial shows how long one takes"),
    Field("notes", .array(.text), "What is assumed, or not known, as sentences."),
  ]

  private static let backlogCourse: [Field] = [
    Field("capacity_per_s", .number, "The rate at which notifications leave while any wait.", unit: .perSecond),
    Field("largest", .number, "Most notifications that wait at a time."),
    Field("largest_at_s", .number, "When that is.", unit: .seconds, when: "any ever wait"),
    Field("longest_delay_s", .number, "Longest that a notification waits.", unit: .seconds),
    Field("longest_s", .number, "Longest time in which some wait without a break.", unit: .seconds),
    Field("total_s", .number, "All such times together.", unit: .seconds),
    Field("last_out_s", .number, "When the last notification is sent.", unit: .seconds),
  ]

  private static let demandStorm: [Field] = [
    Field("connections", .integer, "Number of connections."),
    Field("seconds", .number, "Until they are back; nothing is sent before.", unit: .seconds),
    Field("basis", basis, "Evidence of `seconds`."),
    Field("largest", .number, "Most notifications that wait at a time."),
    Field("over_after_s", .number, "From the storm's beginning until none wait.", unit: .seconds),
  ]

  private static let stormForecast: [Field] = [
    Field("connections", .integer, "Number of connections."),
    Field("seconds", .number, "Until all are back.", unit: .seconds, when: "a trial proves it"),
    Field("basis", basis, "Evidence of `seconds`.", when: "`seconds` is there"),
    Field("trial", .integer, "Number of the trial that it is from.", when: "`seconds` is there"),
    Field(
      "handshakes_per_s", .number, "Connections that were established in the trial.", unit: .perSecond,
      when: "`seconds` is there"),
    Field(
      "handshake_p50_us", .integer, "Median of the trial's full handshakes.", unit: .microseconds,
      when: "`seconds` is there, with TLS"),
    Field(
      "handshake_p99_us", .integer, "99th percentile of the trial's full handshakes.", unit: .microseconds,
      when: "`seconds` is there, with TLS"),
    Field("notes", .array(.text), "What the time does not show, or why there is none, as sentences."),
  ]

  private static let deviceForecast: [Field] = [
    Field("notifications", .integer, "Notifications of the campaign."),
    Field("offline_share", .number, "Share of the devices' time in which they were away.", unit: .share),
    Field("away", .integer, "The part of `notifications` for devices that are away."),
    Field("sending_s", .number, "To send the campaign.", unit: .seconds, when: "a rate passed"),
    Field(
      "receiving_s", .number, "For the connected devices to get it, at the highest rate at which the fleet did.",
      unit: .seconds, when: "the fleet got anything"),
    Field(
      "keeping_up_s", .number,
      "From the start to when the last connected device has it, if devices keep up with the sending.", unit: .seconds,
      when: "both of these are there, and the fleet's latencies are known"),
    Field(
      "last_connected_s", .number, "The same, if devices get no more than the fleet did.", unit: .seconds,
      when: "`keeping_up_s` is there"),
    Field("basis", basis, "Evidence of `last_connected_s`.", when: "`last_connected_s` is there"),
    Field("notes", .array(.text), "What the times do not show, or why there is none, as sentences."),
  ]

  private static let campaignPlan: [Field] = [
    Field(
      "held_s", .number, "For how long a trial held the sustained rate.", unit: .seconds,
      when: "a trial passed at it", since: "0.3"),
    Field("error_share", .number, "Rejections without intentionally bad notifications.", unit: .share),
    Field(
      "error_share_below", .number, "The share is less than this with 95 % confidence.", unit: .share,
      when: "there was no rejection"),
    Field(
      "cases", .array(.object(campaignCase)), "The campaign at several shares of errors, the measured one first."),
    Field(
      "demand_per_s", .number, "Notifications that the target asks for.", unit: .perSecond,
      when: "there is a target and a time"),
    Field(
      "network_bits_per_s", .number, "On the wire, with TLS records and TCP/IP headers.", unit: .bitsPerSecond),
    Field("bytes_each", .number, "Plaintext of a notification.", unit: .bytes),
    Field("memory_bytes", .integer, "Most resident memory of the generator.", unit: .bytes),
    Field("notes", .array(.text), "Warnings, as sentences."),
  ]

  private static let campaignCase: [Field] = [
    Field("error_share", .number, "Rejections.", unit: .share),
    Field("basis", basis, "Evidence of the rates.", since: "0.3"),
    Field("per_connection_per_s", .number, "Notifications that one connection gets accepted.", unit: .perSecond),
    Field(
      "accepted_per_s", .number, "Notifications that the measured connections get accepted together.",
      unit: .perSecond),
    Field("sendings_each", .number, "Sendings for each notification that is accepted."),
    Field("reconnects_per_s", .number, "Reconnects.", unit: .perSecond),
    Field("seconds_for_target", .number, "How long the target takes.", unit: .seconds, when: "there is a target"),
    Field("connections", .integer, "Connections that send it in time.", when: "the trials allow a prediction"),
    Field(
      "connections_basis", basis, "Evidence of `connections`.", when: "`connections` is there", since: "0.3"),
    Field(
      "hosts", .integer, "Machines like this one, one more than needed.",
      when: "the trials allow a prediction"),
  ]
}
