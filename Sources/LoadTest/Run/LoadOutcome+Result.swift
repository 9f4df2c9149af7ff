import Glibc
import Measurement

/// The books of a run in the form they are written.
extension LoadOutcome {
  /// - Parameter environment: of this process.
  public func result(_ environment: Environment) -> RunResult {
    var result = RunResult()
    result.environment = environment
    result.started = started
    if let replay = plan.replay { result.replay = .init(replay) }
    guard let last = phases.last else { return result }
    let measured = phases.first { $0.name == "measured" }
    result.interrupted = interruption
    result.measuredS = measured?.seconds ?? 0
    result.notifications = last.tally.notifications
    result.sendings = last.tally.sendings.result
    result.schedule.skipped = last.tally.skipped
    result.schedule.unsent = last.tally.unsent
    result.connections = last.tally.connections
    (result.connections.asked, result.connections.everUp) = (plan.connections.count, last.tally.everUp)
    result.errorResponses = last.tally.errors
    result.answers.unresolved = last.tally.unresolvedResponses
    result.answers.strayBytes = last.tally.strayBytes
    if let measured, measured.seconds > 0 {
      let counts = tally(of: measured)
      result.rates.writtenPerS = Double(counts.sendings.written) / measured.seconds
      result.rates.writtenBytesPerS = Double(counts.writtenBytes) / measured.seconds
      // What was written in the phase and proven later belongs to it, so acceptance is that of the whole run's share.
      let share =
        last.tally.sendings.written > 0
        ? Double(last.tally.sendings.accepted) / Double(last.tally.sendings.written) : 0
      result.rates.acceptedPerS = result.rates.writtenPerS * share
    }
    var all = LoadMeasurements()
    for phase in phases { all.merge(phase.measurements) }
    let steady = measured?.measurements ?? LoadMeasurements()
    result.latency.sendLagUs = steady.sendLag
    result.latency.errorMs = all.error
    result.latency.drainMs = all.drain
    result.latency.recoverMs = all.recover
    result.latency.tcpConnectMs = all.tcpConnect
    result.latency.tlsHandshakeMs = all.fullHandshake
    result.latency.tlsResumedMs = all.resumedHandshake
    result.batches.notifications = steady.batchNotifications
    result.batches.bytes = steady.batchBytes
    for reason in LoadTally.FlushReason.allCases {
      result.batches.flushReasons[reason.rawValue] = last.tally.flushReasons[reason]
    }
    result.lossWindow = all.lossWindow
    result.series = series
    result.timeline = timeline
    result.phases = phases.map { phase in
      let counts = tally(of: phase)
      var part = RunResult.Phase()
      part.name = phase.name
      part.seconds = phase.seconds
      part.notifications = counts.notifications
      part.sendings = counts.sendings.result
      part.skipped = counts.skipped
      part.connections = counts.connections
      part.errorResponses = counts.errors
      part.sendLagUs = phase.measurements.sendLag
      return part
    }
    result.resources.cpuUserS = processor.user
    result.resources.cpuSystemS = processor.system
    result.resources.maxRssBytes = maximumMemory
    // As the send lag: of the steady part, which connecting and draining say nothing of.
    result.resources.loopLagUs = steady.loopLag
    result.verdict.limitedBy = limit
    let (standing, reasons) = judge(last.tally)
    result.verdict.outcome = standing
    result.verdict.reasons = reasons
    result.warnings =
      [interruptionWarning].compactMap { $0 } + reasons
      + [result.connections.failureWarning].compactMap { $0 } + warnings(loopLag: steady.loopLag)
    result.verdict.invariants = result.invariants(usesMarkers: plan.usesMarkers && plan.resendsUnknown)
    return result
  }

  /// What a phase added to the counts before it.
  private func tally(of phase: Phase) -> LoadTally {
    guard let index = phases.firstIndex(where: { $0.name == phase.name }), index > 0 else { return phase.tally }
    return phase.tally - phases[index - 1].tally
  }

  private var limit: RunResult.Verdict.Limit {
    guard case .unlimited = plan.pace else {
      return isBehind ? (usesMostOfItsCores ? .generator : .gateway) : .schedule
    }
    return usesMostOfItsCores ? .generator : .gateway
  }

  /// What is there instead of what was asked for.
  private var interruptionWarning: String? {
    guard let interruption else { return nil }
    let nothing = "nothing was measured, so there are no rates and no lag"
    let after = seconds(interruption.afterS)
    switch interruption.phase {
    case "connect": return "interrupted while connections were made: nothing was sent"
    case "warm-up":
      return "interrupted in the warm-up, after \(after) of \(seconds(plan.warmUp / .seconds(1))): \(nothing)"
    default:
      // The length is then only a limit that nobody asked for.
      if let count = plan.count, plan.duration >= .seconds(86_400) {
        return
          "interrupted after \(after), with \(phases.last?.tally.generated ?? 0) of \(count) notifications generated"
      }
      return "interrupted after \(after) of \(seconds(plan.duration / .seconds(1)))"
    }
  }

  private func seconds(_ value: Double) -> String {
    let tenths = (value * 10).rounded() / 10
    return "\(tenths == tenths.rounded() && value >= 10 ? "\(Int(nearest: tenths))" : "\(tenths)") s"
  }

  /// Where the numbers may be this process's own and not the gateway's.
  private func warnings(loopLag: LatencyHistogram) -> [String] {
    var warnings: [String] = []
    if usesMostOfItsCores {
      warnings.append(
        "the generator used more than 90 % of its threads' processor time: rates and latencies may be its own, not the gateway's"
      )
    }
    let lag = loopLag.quantile(0.99)
    if lag > Self.tolerableLoopLag {
      warnings.append(
        "the generator's clock was late by \(lag / 1_000) ms (p99 of loop lag): too little processor time, so latencies are its own as well"
      )
    }
    return warnings
  }

  /// Microseconds.
  private static let tolerableLoopLag = 10_000

  /// It did not write what was due.
  private var isBehind: Bool {
    guard let measured = phases.first(where: { $0.name == "measured" }) else { return false }
    // What was never sent has no lag.
    let unsent = phases.last?.tally.unsent ?? 0
    return measured.measurements.sendLag.quantile(0.5) > 50_000 || unsent > measured.tally.generated / 20
  }

  private var usesMostOfItsCores: Bool {
    guard let measured = phases.first(where: { $0.name == "measured" }), measured.seconds > 0 else { return false }
    return measured.cpu / measured.seconds > 0.9 * Double(max(1, min(plan.threads, plan.connections.count)))
  }
}

extension LoadTally {
  var notifications: RunResult.Notifications {
    var counts = RunResult.Notifications()
    (counts.generated, counts.accepted, counts.rejected) = (generated, accepted, rejected)
    (counts.unknown, counts.abandoned, counts.unproven) = (unknown, abandoned, unknown + abandonedOpen)
    return counts
  }

  var connections: RunResult.Connections {
    var counts = RunResult.Connections()
    (counts.attempted, counts.opened, counts.resumed, counts.failed) = (attempted, opened, resumed, failed)
    for cause in Cause.allCases { counts.closed[cause.rawValue] = closed[cause] ?? 0 }
    counts.suites = suites.filter { $0.value > 0 }
    counts.failures = failures
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
    (counts.discarded, counts.unknown, counts.markers) = (discarded, unknown, markers)
    counts.markersAnswered = markersAnswered
    return counts
  }
}
