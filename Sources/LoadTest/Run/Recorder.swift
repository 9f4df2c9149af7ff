import Measurement

/// Collects what the loops counted, a sample a second, and cuts it into phases.
///
/// Each loop records into separate histograms. Every second these are collected for the second's percentiles, and added
/// to the histograms of the phase; so the cost of a second does not grow with the run.
struct Recorder {
  private static let second: Int64 = 1_000_000_000

  private let loopRunners: LoopRunnerGroup
  private let clock: @Sendable () -> Int64
  private let progress: @Sendable (LoadProgress) -> Void
  /// Receives the counts at each step, so observers do not access event loops.
  private let publish: @Sendable (LoadSnapshot) -> Void
  private var sendLag99 = 0
  private var latencies = LatencyBuckets()
  let began: Int64
  /// The beginning of the current phase.
  private(set) var phaseBegan: Int64
  /// The time at which the phase's processor time was read, which may be a little later.
  private var phaseAsked: Int64
  private var sampled: Int64
  /// The time of the next sample: at whole seconds, so that lateness does not accumulate.
  private var nextSample: Int64
  private var atSample = LoadTally()
  private var processor = ProcessStatus.processor()
  private(set) var phaseProcessor = ProcessStatus.processor()
  private var phaseWaited = 0.0
  /// The tallies and measurements of each phase, as collected from the loops so far.
  private(set) var tallies = [LoadTally](repeating: LoadTally(), count: RunPhase.allCases.count)
  /// The tallies of each topic of the plan, in the whole run so far.
  private var topics: [LoadTally]
  private(set) var measurements = [LoadMeasurements](repeating: LoadMeasurements(), count: RunPhase.allCases.count)
  private var ofSecond = LoadMeasurements()
  private var stalls: StallRecorder
  /// The schedule and its start; `nil` before the start.
  private var schedule: (plan: LoadPlan, began: Beginning)?
  /// The current phase, as progress shows it.
  var phase = RunPhase.connect { didSet { if phase != oldValue { events?.begin(phase, at: phaseBegan) } } }
  private(set) var series: [RunResult.Sample] = []
  /// The polls of the feedback service; `nil` when there are none.
  var feedback: FeedbackPolling?
  /// Its tuples at the last sample.
  private var tuplesAtSample = 0
  /// The receiver of events; `nil` when there is none.
  var events: EventRecorder?
  /// When the measured phase ended; none of the stages begins later.
  private var measuredUntil = Int64.max
  /// The receiver of checkpoints.
  var checkpoints: Checkpoints?

  init(
    _ loopRunners: LoopRunnerGroup, topics: Int, clock: @escaping @Sendable () -> Int64,
    _ progress: @escaping @Sendable (LoadProgress) -> Void,
    publish: @escaping @Sendable (LoadSnapshot) -> Void
  ) {
    self.loopRunners = loopRunners
    self.topics = [LoadTally](repeating: LoadTally(), count: topics)
    self.clock = clock
    self.progress = progress
    self.publish = publish
    began = clock()
    (phaseBegan, phaseAsked, sampled, nextSample) = (began, began, began, began + Self.second)
    stalls = StallRecorder(began: began)
  }

  mutating func step() async -> LoadTally {
    if let listed = feedback?.step(clock()) { await loopRunners.each { $0.take(listed) } }
    let tally = await tally()
    publish(LoadSnapshot(tally, phase: phase.rawValue, sendLag99: sendLag99, latencies, feedback?.books))
    let now = clock()
    if now >= nextSample { await takeSample(tally, now) }
    return tally
  }

  private mutating func takeSample(_ tally: LoadTally, _ now: Int64) async {
    let backlog = await takeMeasurements()
    let seconds = Double(now - sampled) / 1e9
    let used = ProcessStatus.processor()
    let counts = tally - atSample
    var sample = RunResult.Sample()
    sample.tS = Double(sampled - began) / 1e9
    (sample.written, sample.accepted, sample.skipped) = (counts.sendings.written, counts.accepted, counts.skipped)
    sample.writes = counts.flushReasons.total
    sample.errors = counts.errorResponses.values.reduce(0, +)
    sample.errorsByStatus = counts.errors.filter { $0.value > 0 }
    if let books = feedback?.books {
      (sample.pruned, sample.feedbackTuples) = (counts.pruned, books.counts.tuples - tuplesAtSample)
      tuplesAtSample = books.counts.tuples
    }
    (sample.opened, sample.closed, sample.up) = (counts.opened, counts.closed.values.reduce(0, +), tally.up)
    sample.closedByCause = counts.connections.closed.positive
    sample.backlog = backlog
    sample.sendLagP99Us = ofSecond.latency.sendLagUs.quantile(0.99)
    sample.loopLagP99Us = ofSecond.loopLag.quantile(0.99)
    sample.stalledMs = 0
    sample.cpu = (used.user + used.system - processor.user - processor.system) / seconds
    sample.rssBytes = ProcessStatus.memory()
    series.append(sample)
    stalls.mark(&series, until: now)
    sendLag99 = sample.sendLagP99Us
    var shown = LoadProgress()
    (shown.phase, shown.elapsed) = (phase, Double(now - began) / 1e9)
    shown.askedPerSecond = asked(from: sampled, to: now).map { $0 / seconds }
    (shown.written, shown.writtenPerSecond) = (tally.sendings.written, Double(sample.written) / seconds)
    (shown.accepted, shown.acceptedPerSecond) = (tally.accepted, Double(sample.accepted) / seconds)
    shown.errors = tally.errorResponses.values.reduce(0, +)
    if feedback != nil { shown.pruned = tally.pruned }
    (shown.connections, shown.sendLag99, shown.cpu) = (tally.up, sendLag99, sample.cpu)
    progress(shown)
    await takeCheckpoint(now)
    (sampled, atSample, processor, ofSecond) = (now, tally, used, LoadMeasurements())
    // Seconds in which the process was stopped have no sample.
    nextSample += (now - nextSample) / Self.second * Self.second + Self.second
  }

  /// How many notifications the schedule has between two times; `nil` without a schedule.
  private func asked(from: Int64, to: Int64) -> Double? {
    guard let schedule, phase != .drain else { return nil }
    func due(_ time: Int64) -> Double {
      let seconds = Double(time - schedule.began.schedule) / 1e9
      return seconds < 0 ? 0 : schedule.plan.dueCount(at: seconds) ?? 0
    }
    return due(to) - due(from)
  }

  /// Returns how many notifications wait at that moment.
  @discardableResult
  private mutating func takeMeasurements() async -> Int {
    var backlog = 0
    let taken = await loopRunners.gather { ($0.books.takeMeasurements(), $0.books.stalls.take(), $0.backlog) }
    for (parts, _, waiting) in taken {
      for (phase, part) in zip(RunPhase.allCases, parts) {
        measurements[phase.index].merge(part)
        ofSecond.merge(part)
        latencies.add(part.latency)
      }
      backlog += waiting
    }
    stalls.note(taken.flatMap { $0.1 })
    events?.note(stalls.result)
    return backlog
  }

  private mutating func tally() async -> LoadTally {
    tallies = [LoadTally](repeating: LoadTally(), count: RunPhase.allCases.count)
    var happened: [(at: Int64, kind: LoadEvent.Kind)] = []
    topics = topics.map { _ in LoadTally() }
    for (topic, loop, events) in await loopRunners.gather({
      ($0.share.topic, $0.books.tallies, $0.books.events?.take(at: $0.clock()) ?? [])
    }) {
      for (phase, part) in zip(RunPhase.allCases, loop) { tallies[phase.index] += part }
      if let topic { for part in loop { topics[topic] += part } }
      happened += events
    }
    events?.pass(clock(), end: measuredUntil)
    events?.pass(on: happened)
    return tallies.reduce(into: LoadTally()) { $0 += $1 }
  }

  /// Ends the current phase.
  ///
  /// - Parameter end: the end by the plan, which may be shortly before now; `nil`: now.
  mutating func endPhase(at end: Int64? = nil) async -> LoadOutcome.Phase {
    await takeMeasurements()
    let now = clock()
    let end = min(end ?? now, now)
    let used = ProcessStatus.processor()
    let tally = await tally()
    let waitedNow = await loopRunners.gather { _ in ProcessStatus.waited() }.reduce(0, +)
    publish(
      LoadSnapshot(
        tally, phase: phase == .drain ? LoadSnapshot.over : phase.rawValue, sendLag99: sendLag99, latencies,
        feedback?.books))
    let seconds = Double(max(0, end - phaseBegan)) / 1e9
    // Of as long a time as the phase.
    let share = now > phaseAsked ? seconds / (Double(now - phaseAsked) / 1e9) : 0
    var ended = LoadOutcome.Phase(phase, seconds: seconds)
    ended.end = end
    ended.cpu = share * (used.user + used.system - phaseProcessor.user - phaseProcessor.system)
    ended.waited = share * max(0, waitedNow - phaseWaited)
    (phaseBegan, phaseAsked, phaseProcessor, phaseWaited) = (end, now, used, waitedNow)
    checkpoints?.books.phases.append(ended)
    return ended
  }

  /// The current counts and measurements: sendings of one phase may have been settled in a later one.
  func settle(_ outcome: inout LoadOutcome) async {
    for index in outcome.phases.indices {
      let phase = outcome.phases[index].phase
      (outcome.phases[index].tally, outcome.phases[index].measurements) = (LoadTally(), LoadMeasurements())
      let settledAt = await loopRunners.gather { $0.books.settledAt(phase) }.max() ?? 0
      outcome.phases[index].settledAfter = max(0, Double(settledAt - outcome.phases[index].end) / 1e9)
    }
    // A phase that a loop had entered before the run was stopped in the previous one is added to that.
    for phase in RunPhase.allCases {
      guard let index = outcome.phases.lastIndex(where: { $0.phase.index <= phase.index }) else { continue }
      outcome.phases[index].tally += tallies[phase.index]
      outcome.phases[index].measurements.merge(measurements[phase.index])
    }
    for (index, tally) in topics.enumerated() { outcome.topics[index].tally = tally }
    outcome.stalls = stalls.result
    guard let schedule else { return }
    let bins = await loopRunners.gather { $0.books.bins }.reduce(into: WriteBins()) { $0.merge($1) }
    var result = RunResult.Bins()
    (result.fromS, result.lengthS) = (Double(schedule.began.run - began) / 1e9, Double(bins.length) / 1e9)
    result.written = bins.counts
    outcome.bins = result
  }

  /// The schedule begins, with the warm-up if there is one.
  mutating func begin(_ plan: LoadPlan, _ beginning: Beginning) {
    schedule = (plan, beginning)
    phaseBegan = beginning.run
    feedback?.begin(at: beginning.run)
    events?.begin(plan, at: beginning.schedule)
    let measured = beginning.schedule + plan.warmUp.nanoseconds
    stalls.measured = (measured, measured + plan.duration.nanoseconds)
  }

  /// The measured phase has ended before its time, or at it.
  mutating func endMeasuring(at time: Int64) {
    measuredUntil = time
    feedback?.end(at: time)
    if let measured = stalls.measured { stalls.measured = (measured.from, min(measured.to, time)) }
  }
  /// Ends what connections are still in; asked for once, when the run is over.
  func timeline() async -> RunResult.Timeline {
    let began = began
    var whole = RunResult.Timeline()
    for part in await loopRunners.gather({ $0.books.timeline.end(since: began, at: $0.clock()) }) {
      whole.omitted += part.omitted
      whole.spans += part.spans
    }
    whole.spans.sort { ($0.fromS, $0.connection) < ($1.fromS, $1.connection) }
    return whole
  }
}

extension LoadPlan {
  /// How many notifications are due at this time after the start of the schedule; `nil` without a schedule.
  func dueCount(at seconds: Double) -> Double? {
    switch pace {
    case .unlimited: nil
    case .scheduled(let schedule, _):
      schedule.exactCount(at: seconds) / (whole != nil ? Double(workload.segments) : 1)
    case .recorded(let replay, let speed):
      Double(
        RecordedSchedule(replay, speed: speed, first: workload.segment, step: workload.segments).count(at: seconds))
    }
  }
}

extension LoopRunner {
  /// Due notifications and resends that are not written; 0 without a schedule.
  var backlog: Int {
    machine.hasSchedule ? connections.reduce(machine.backlog) { $0 + $1.batchCount } : 0
  }
}
