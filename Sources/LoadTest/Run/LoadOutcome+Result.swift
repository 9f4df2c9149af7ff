import Glibc
import Measurement

/// The result document of a run.
extension LoadOutcome {
  /// The result document of the run.
  ///
  /// - Parameter environment: the environment of this process.
  public func result(_ environment: Environment) -> RunResult {
    var result = RunResult()
    result.environment = environment
    result.started = started
    result.start = startResult
    if let replay = plan.replay { result.replay = .init(replay) }
    guard !phases.isEmpty else { return result }
    let tally = tally
    let measured = phase(.measured)
    result.measuredBy = RunResult.currentMeasure
    result.interrupted = interruption
    result.measuredS = measured?.seconds ?? 0
    result.notifications = tally.notifications
    result.notifications.pruned = plan.feedback.map { _ in tally.pruned }
    result.feedback = feedback.map { .init($0, tally, prunes: plan.feedback?.prunes ?? false) }
    result.sendings = tally.sendings.result
    result.schedule.skipped = tally.skipped
    result.schedule.unsent = tally.unsent
    result.connections = tally.connections
    (result.connections.asked, result.connections.everUp) = (plan.connections.count, tally.everUp)
    result.binary.errorResponses = tally.errors
    result.binary.answers.unresolved = tally.unresolvedResponses
    result.binary.answers.strayBytes = tally.strayBytes
    result.topics = topicResults
    result.rates = rates
    let steady = measured?.measurements ?? LoadMeasurements()
    result.latency = steady.latency
    result.batches = measured?.batches ?? RunResult.Batches()
    result.binary.lossWindow = steady.lossWindow
    result.bins = bins
    result.stalls = stalls
    result.series = series
    result.timeline = timeline
    result.phases = phases.map { phase in
      var part = phase.result
      part.notifications.pruned = plan.feedback.map { _ in phase.tally.pruned }
      return part
    }
    result.resources.cpuUserS = processor.user
    result.resources.cpuSystemS = processor.system
    result.resources.maxRssBytes = maximumMemory
    // Of the steady part, as the send lag: connecting and draining are no part of it.
    result.resources.loopLagUs = steady.loopLag
    result.verdict.limitedBy = limit
    let (standing, reasons) = judge(tally)
    result.verdict.outcome = standing
    result.verdict.reasons = reasons
    result.warnings =
      [interruptionWarning].compactMap { $0 } + reasons
      + [result.connections.failureWarning, result.connections.refusalWarning, result.duplicateWarning]
      .compactMap { $0 } + [topicWarning(result.topics)].compactMap { $0 } + feedbackWarnings(result)
      + [startWarning].compactMap { $0 } + warnings
    result.verdict.invariants = result.invariants(usesMarkers: plan.usesMarkers && plan.resendsUnknown)
    return result
  }

  /// `nil` without topics.
  private var topicResults: [RunResult.Topic]? {
    guard !topics.isEmpty else { return nil }
    return topics.map { topic in
      let tally = topic.tally
      var counts = RunResult.Topic(topic.name, share: topic.share)
      (counts.notifications, counts.sendings) = (tally.notifications, tally.sendings.result)
      (counts.schedule.skipped, counts.schedule.unsent) = (tally.skipped, tally.unsent)
      counts.errorResponses = tally.errors
      counts.connections = tally.connections
      (counts.connections.asked, counts.connections.everUp) = (topic.connections, tally.everUp)
      return counts
    }
  }

  /// Without a schedule each topic is sent as fast as its own connections take it.
  private func topicWarning(_ topics: [RunResult.Topic]?) -> String? {
    guard case .unlimited = plan.pace, let topics else { return nil }
    let all = Double(topics.reduce(0) { $0 + $1.notifications.generated })
    let off = topics.filter { topic in
      abs(Double(topic.notifications.generated) - (topic.share ?? 0) * all) > max(2, Self.tolerableShift * all)
    }
    guard !off.isEmpty else { return nil }
    func percent(_ share: Double) -> String { "\((share * 1_000).rounded() / 10) %" }
    let parts = off.map { topic in
      "\(topic.topic) had \(percent(Double(topic.notifications.generated) / all)) and not \(percent(topic.share ?? 0))"
    }
    return
      "without a rate each topic is sent as fast as its connections take it: of the notifications \(parts.joined(separator: ", "))"
  }

  /// As a share of all notifications.
  private static let tolerableShift = 0.05

  /// Of the measured phase: its sendings and their fates.
  private var rates: RunResult.Rates {
    guard let measured = phase(.measured), measured.seconds > 0 else { return RunResult.Rates() }
    var rates = measured.rates
    rates.basis = isGatewayBehind ? .measuredAndDrain : .measured
    if isGatewayBehind, let drain = phase(.drain) {
      rates.acceptedPerS =
        Double(measured.tally.sendings.accepted + drain.tally.sendings.accepted) / (measured.seconds + drain.seconds)
    }
    return rates
  }

  /// The gateway took noticeably longer than the measured phase for its sendings.
  private var isGatewayBehind: Bool {
    phase(.measured).map { $0.settledAfter > Self.tolerableDelay * $0.seconds } ?? false
  }

  /// As a share of the measured phase.
  private static let tolerableDelay = 0.02

  private var limit: RunResult.Verdict.Limit {
    guard case .unlimited = plan.pace else {
      return isBehind ? (usesMostOfItsCores || ownsItsLag ? .generator : .gateway) : .schedule
    }
    return usesMostOfItsCores ? .generator : .gateway
  }

  /// The actual instead of the requested values.
  private var interruptionWarning: String? {
    guard let interruption else { return nil }
    let nothing = "nothing was measured: no rates and no lag"
    let after = seconds(interruption.afterS)
    switch interruption.phase {
    case .connect: return "interrupted while connecting: nothing was sent"
    case .warmUp:
      return "interrupted in the warm-up, after \(after) of \(seconds(plan.warmUp / .seconds(1))): \(nothing)"
    case .measured, .drain:
      // The length is then only an implicit limit.
      if let count = plan.count, plan.duration >= .seconds(86_400) {
        return
          "interrupted after \(after), with \(tally.generated) of \(count) notifications generated"
      }
      return "interrupted after \(after) of \(seconds(plan.duration / .seconds(1)))"
    }
  }

  private func seconds(_ value: Double) -> String {
    let tenths = (value * 10).rounded() / 10
    return "\(tenths == tenths.rounded() && value >= 10 ? "\(Int(nearest: tenths))" : "\(tenths)") s"
  }

  private func feedbackWarnings(_ result: RunResult) -> [String] {
    guard let feedback = plan.feedback else { return [] }
    return result.feedback?.warnings(interval: feedback.interval / .seconds(1)) ?? []
  }

  /// Where the numbers may be this process's own and not the gateway's, or are of another time.
  private var warnings: [String] {
    var warnings: [String] = []
    if isGatewayBehind, let measured = phase(.measured) {
      warnings.append(
        "the gateway settled the last notification of the measured phase \(milliseconds(measured.settledAfter * 1e3)) after its end: accepted_per_s covers the measured phase and the drain"
      )
    }
    if usesMostOfItsCores {
      warnings.append(
        "the generator used more than 90 % of its threads' processor time: rates and latencies may be the generator's, not the gateway's"
      )
    }
    let lag = phase(.measured)?.measurements.loopLag.quantile(0.99) ?? 0
    if let measured = phase(.measured), stalls.spoils(measured.seconds) {
      warnings.append(
        "the generator stalled for \(milliseconds(stalls.totalS * 1e3)) of \(seconds(measured.seconds)), at most \(milliseconds(stalls.longestMs)) at a time: lags include its stalls"
      )
    } else if lag > Self.tolerableLoopLag, !usesMostOfItsCores {
      warnings.append(
        "the generator's clock was late by \(lag / 1_000) ms (p99 of loop lag): too little processor time, so latencies include its delays"
      )
    }
    return warnings
  }

  private func milliseconds(_ value: Double) -> String {
    value < 1_000 ? "\(Int(nearest: value.rounded())) ms" : seconds(value / 1e3)
  }

  /// Microseconds.
  private static let tolerableLoopLag = 10_000

  /// Whether the load did not write all due notifications in time.
  private var isBehind: Bool {
    guard let measured = phase(.measured) else { return false }
    // The lag of notifications that were never sent is a lower bound.
    return measured.measurements.latency.sendLagUs.quantile(0.5) > 50_000 || tally.unsent > tally.generated / 20
  }

  /// The median lag is the generator's own rather than the gateway's.
  private var ownsItsLag: Bool {
    guard let latency = phase(.measured)?.measurements.latency, let own = latency.sendLagOwnUs, own.count > 0,
      let gateway = latency.sendLagGatewayUs
    else { return false }
    return own.quantile(0.5) >= gateway.quantile(0.5)
  }

  private var usesMostOfItsCores: Bool {
    guard let measured = phase(.measured), measured.seconds > 0 else { return false }
    return measured.cpu / measured.seconds > 0.9 * Double(plan.loopCount)
  }
}

extension LoadOutcome.Phase {
  fileprivate var rates: RunResult.Rates {
    var rates = RunResult.Rates()
    guard seconds > 0 else { return rates }
    rates.writtenPerS = Double(tally.sendings.written) / seconds
    rates.acceptedPerS = Double(tally.sendings.accepted) / seconds
    rates.writtenBytesPerS = Double(tally.writtenBytes) / seconds
    return rates
  }

  fileprivate var batches: RunResult.Batches {
    var batches = RunResult.Batches()
    batches.notifications = measurements.batchNotifications
    batches.bytes = measurements.batchBytes
    for reason in LoadTally.FlushReason.allCases { batches.flushReasons[reason] = tally.flushReasons[reason] }
    return batches
  }

  fileprivate var result: RunResult.Phase {
    var part = RunResult.Phase()
    (part.name, part.seconds) = (phase, seconds)
    part.notifications = tally.notifications
    part.sendings = tally.sendings.result
    part.skipped = tally.skipped
    part.connections = tally.connections
    part.binary.errorResponses = tally.errors
    part.sendLagUs = measurements.latency.sendLagUs
    part.rates = rates
    part.latency = measurements.latency
    part.batches = batches
    part.binary.lossWindow = measurements.lossWindow
    return part
  }
}

extension LoadTally {
  var notifications: RunResult.Notifications {
    var counts = RunResult.Notifications()
    (counts.generated, counts.accepted, counts.rejected) = (generated, accepted, rejected)
    (counts.unknown, counts.abandoned, counts.unproven) = (unknown, abandoned, open)
    return counts
  }

  var connections: RunResult.Connections {
    var counts = RunResult.Connections()
    (counts.attempted, counts.opened, counts.resumed, counts.failed) = (attempted, opened, resumed, failed)
    for cause in Cause.ofLoads { counts.closed[cause] = closed[cause] ?? 0 }
    counts.suites = suites.filter { $0.value > 0 }
    counts.failures = failures
    counts.refused = refused
    return counts
  }

  var errors: [String: Int] { Dictionary(uniqueKeysWithValues: errorResponses.map { ("\($0.key)", $0.value) }) }

  static func - (a: LoadTally, b: LoadTally) -> LoadTally {
    var difference = a
    for path in counters { difference[keyPath: path] -= b[keyPath: path] }
    difference.errorResponses.merge(b.errorResponses) { $0 - $1 }
    difference.closed.merge(b.closed) { $0 - $1 }
    difference.suites.merge(b.suites) { $0 - $1 }
    difference.subtractFailures(b.failures)
    difference.flushReasons.merge(b.flushReasons) { $0 - $1 }
    return difference
  }
}

extension RunResult.Feedback {
  init(_ books: FeedbackBooks, _ tally: LoadTally, prunes: Bool) {
    self.init()
    self.prunes = prunes
    (polls, complete, incomplete, failed) = (books.polls, books.complete, books.incomplete, books.failed)
    failures = books.reasons
    (tuples, listed, registeredSince) = (books.counts.tuples, books.counts.listed, books.counts.registeredSince)
    (unknown, notRemembered, tuplesCutOff) = (books.counts.unknown, books.counts.notRemembered, books.tuplesCutOff)
    tokens = notRemembered == 0 ? books.tokens : nil
    listedTokens = books.listedTokens
    (sentToListed, rejectedListed) = (tally.listed.written, tally.listed.rejected)
    (discardedByListed, rejectedOther) = (tally.listed.discarded, tally.listed.otherRejected)
    prunedUnproven = tally.prunedOpen
  }
}

extension RunResult.Replay {
  init(_ replay: Replay) {
    self.init()
    notifications = replay.count
    lengthS = replay.length / .seconds(1)
    skippedRecords = replay.skippedRecords
  }
}

extension LoadTally.Sendings {
  var result: RunResult.Sendings {
    var counts = RunResult.Sendings()
    (counts.written, counts.resent, counts.accepted, counts.rejected) = (written, resent, accepted, rejected)
    (counts.discarded, counts.unknown, counts.binary.markers) = (discarded, unknown, proofsAsked)
    counts.binary.markersAnswered = proofs
    return counts
  }
}
