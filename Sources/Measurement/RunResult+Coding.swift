// Groups of figures that one protocol has are flat in documents: a reader finds them where they were before there was
// another protocol.

extension RunResult {
  private enum CodingKeys: String, CodingKey {
    case schema, kind, measuredBy, started, start, environment, labels, plan, replay, verdict, interrupted, merged,
      parts, measuredS
    case notifications, sendings, schedule, topics, rates, errorResponses, answers, feedback, connections, latency,
      batches
    case lossWindow, series, bins, phases, stalls, timeline, resources, warnings
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    schema = try container.decode(Int.self, forKey: .schema)
    kind = try container.decode(String.self, forKey: .kind)
    measuredBy = try container.decodeIfPresent(Int.self, forKey: .measuredBy)
    started = try container.decode(String.self, forKey: .started)
    start = try container.decodeIfPresent(Start.self, forKey: .start)
    environment = try container.decode(Environment.self, forKey: .environment)
    labels = try container.decodeIfPresent([String: String].self, forKey: .labels)
    plan = try container.decode([String: PlanValue].self, forKey: .plan)
    replay = try container.decodeIfPresent(Replay.self, forKey: .replay)
    verdict = try container.decode(Verdict.self, forKey: .verdict)
    interrupted = try container.decodeIfPresent(Interruption.self, forKey: .interrupted)
    merged = try container.decodeIfPresent(Merged.self, forKey: .merged)
    parts = try container.decodeIfPresent([Segment].self, forKey: .parts)
    measuredS = try container.decode(Double.self, forKey: .measuredS)
    notifications = try container.decode(Notifications.self, forKey: .notifications)
    sendings = try container.decode(Sendings.self, forKey: .sendings)
    schedule = try container.decode(Schedule.self, forKey: .schedule)
    topics = try container.decodeIfPresent([Topic].self, forKey: .topics)
    rates = try container.decode(Rates.self, forKey: .rates)
    binary.errorResponses = try container.decode([String: Int].self, forKey: .errorResponses)
    binary.answers = try container.decode(Answers.self, forKey: .answers)
    feedback = try container.decodeIfPresent(Feedback.self, forKey: .feedback)
    connections = try container.decode(Connections.self, forKey: .connections)
    latency = try container.decode(Latency.self, forKey: .latency)
    batches = try container.decode(Batches.self, forKey: .batches)
    binary.lossWindow = try container.decode(LatencyHistogram.self, forKey: .lossWindow)
    series = try container.decode([Sample].self, forKey: .series)
    bins = try container.decodeIfPresent(Bins.self, forKey: .bins)
    phases = try container.decode([Phase].self, forKey: .phases)
    stalls = try container.decodeIfPresent(Stalls.self, forKey: .stalls)
    timeline = try container.decode(Timeline.self, forKey: .timeline)
    resources = try container.decode(Resources.self, forKey: .resources)
    warnings = try container.decode([String].self, forKey: .warnings)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schema, forKey: .schema)
    try container.encode(kind, forKey: .kind)
    try container.encodeIfPresent(measuredBy, forKey: .measuredBy)
    try container.encode(started, forKey: .started)
    try container.encodeIfPresent(start, forKey: .start)
    try container.encode(environment, forKey: .environment)
    try container.encodeIfPresent(labels, forKey: .labels)
    try container.encode(plan, forKey: .plan)
    try container.encodeIfPresent(replay, forKey: .replay)
    try container.encode(verdict, forKey: .verdict)
    try container.encodeIfPresent(interrupted, forKey: .interrupted)
    try container.encodeIfPresent(merged, forKey: .merged)
    try container.encodeIfPresent(parts, forKey: .parts)
    try container.encode(measuredS, forKey: .measuredS)
    try container.encode(notifications, forKey: .notifications)
    try container.encode(sendings, forKey: .sendings)
    try container.encode(schedule, forKey: .schedule)
    try container.encodeIfPresent(topics, forKey: .topics)
    try container.encode(rates, forKey: .rates)
    try container.encode(binary.errorResponses, forKey: .errorResponses)
    try container.encode(binary.answers, forKey: .answers)
    try container.encodeIfPresent(feedback, forKey: .feedback)
    try container.encode(connections, forKey: .connections)
    try container.encode(latency, forKey: .latency)
    try container.encode(batches, forKey: .batches)
    try container.encode(binary.lossWindow, forKey: .lossWindow)
    try container.encode(series, forKey: .series)
    try container.encodeIfPresent(bins, forKey: .bins)
    try container.encode(phases, forKey: .phases)
    try container.encodeIfPresent(stalls, forKey: .stalls)
    try container.encode(timeline, forKey: .timeline)
    try container.encode(resources, forKey: .resources)
    try container.encode(warnings, forKey: .warnings)
  }
}

extension RunResult.Sendings {
  private enum CodingKeys: String, CodingKey {
    case written, resent, accepted, rejected, discarded, unknown, markers, markersAnswered
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    written = try container.decode(Int.self, forKey: .written)
    resent = try container.decode(Int.self, forKey: .resent)
    accepted = try container.decode(Int.self, forKey: .accepted)
    rejected = try container.decode(Int.self, forKey: .rejected)
    discarded = try container.decode(Int.self, forKey: .discarded)
    unknown = try container.decode(Int.self, forKey: .unknown)
    binary.markers = try container.decode(Int.self, forKey: .markers)
    binary.markersAnswered = try container.decodeIfPresent(Int.self, forKey: .markersAnswered)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(written, forKey: .written)
    try container.encode(resent, forKey: .resent)
    try container.encode(accepted, forKey: .accepted)
    try container.encode(rejected, forKey: .rejected)
    try container.encode(discarded, forKey: .discarded)
    try container.encode(unknown, forKey: .unknown)
    try container.encode(binary.markers, forKey: .markers)
    try container.encodeIfPresent(binary.markersAnswered, forKey: .markersAnswered)
  }
}

extension RunResult.Phase {
  private enum CodingKeys: String, CodingKey {
    case name, seconds, notifications, sendings, skipped, connections, errorResponses, sendLagUs, rates, latency
    case batches, lossWindow
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    name = try container.decode(RunPhase.self, forKey: .name)
    seconds = try container.decode(Double.self, forKey: .seconds)
    notifications = try container.decode(RunResult.Notifications.self, forKey: .notifications)
    sendings = try container.decode(RunResult.Sendings.self, forKey: .sendings)
    skipped = try container.decodeIfPresent(Int.self, forKey: .skipped) ?? 0
    connections = try container.decode(RunResult.Connections.self, forKey: .connections)
    binary.errorResponses = try container.decode([String: Int].self, forKey: .errorResponses)
    sendLagUs = try container.decode(LatencyHistogram.self, forKey: .sendLagUs)
    rates = try container.decodeIfPresent(RunResult.Rates.self, forKey: .rates)
    latency = try container.decodeIfPresent(RunResult.Latency.self, forKey: .latency)
    batches = try container.decodeIfPresent(RunResult.Batches.self, forKey: .batches)
    binary.lossWindow = try container.decodeIfPresent(LatencyHistogram.self, forKey: .lossWindow)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(notifications, forKey: .notifications)
    try container.encode(sendings, forKey: .sendings)
    try container.encode(skipped, forKey: .skipped)
    try container.encode(connections, forKey: .connections)
    try container.encode(binary.errorResponses, forKey: .errorResponses)
    try container.encode(sendLagUs, forKey: .sendLagUs)
    try container.encodeIfPresent(rates, forKey: .rates)
    try container.encodeIfPresent(latency, forKey: .latency)
    try container.encodeIfPresent(batches, forKey: .batches)
    try container.encodeIfPresent(binary.lossWindow, forKey: .lossWindow)
  }
}
