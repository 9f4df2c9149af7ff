import Measurement

extension LoadOutcome {
  /// The trial of a run, without purpose and verdict.
  ///
  /// - Parameter result: of the same run.
  package func trial(_ result: RunResult) -> CapacityTrial {
    var trial = CapacityTrial()
    trial.connections = plan.connections.count
    trial.batch = plan.batching.notifications == .max ? nil : plan.batching.notifications
    trial.faultShare = plan.workload.faults.values.reduce(0, +)
    func seconds(_ name: RunPhase) -> Double { phase(name)?.seconds ?? 0 }
    (trial.settleS, trial.measuredS, trial.drainS) = (seconds(.warmUp), seconds(.measured), seconds(.drain))
    trial.notifications = result.notifications
    trial.sendings = result.sendings
    trial.errors = result.binary.errorResponses.values.reduce(0, +)
    trial.connectionsOpened = result.connections.opened
    trial.connectionsFailed = result.connections.failed
    trial.writtenBytes = tally.writtenBytes
    trial.opening = opening
    trial.writtenPerS = result.rates.writtenPerS ?? 0
    let proven = trial.settleS + trial.measuredS + trial.drainS
    trial.acceptedPerS = proven > 0 ? Double(trial.notifications.accepted) / proven : 0
    trial.sendLagP50Us = result.latency.sendLagUs.quantile(0.5)
    trial.sendLagP99Us = result.latency.sendLagUs.quantile(0.99)
    trial.loopLagP99Us = result.resources.loopLagUs.quantile(0.99)
    if let stalls = result.stalls {
      // Of the whole trial: one while it settles, or before the last answer is read, is blamed on the gateway as well.
      let ofTrial = stalls.listed.filter { $0.tS + $0.ms / 1e3 > seconds(.connect) }.map(\.ms)
      (trial.stalledS, trial.longestStallMs) = (ofTrial.reduce(0, +) / 1e3, ofTrial.max() ?? 0)
    }
    if let drain = phase(.measured)?.measurements.latency.drainUs, drain.count > 0 {
      trial.behindMs = Double(drain.maximum) / 1e3
    }
    if result.binary.lossWindow.count > 0 { trial.lossMean = result.binary.lossWindow.mean }
    if result.latency.recoverUs.count > 0 { trial.recoverMeanMs = result.latency.recoverUs.mean / 1e3 }
    if result.batches.notifications.count > 0 { trial.perWriteMean = result.batches.notifications.mean }
    if let measured = phase(.measured), measured.seconds > 0 {
      trial.cpuCores = measured.cpu / measured.seconds
      trial.waitedShare = measured.waited / measured.seconds / Double(threads)
      let written = trial.writtenPerS * measured.seconds
      if written > 0 { trial.cpuPerNotificationUs = measured.cpu * 1e6 / written }
    }
    trial.availableCores = min(plan.loopCount, max(1, result.environment.cores))
    trial.maxRssBytes = maximumMemory
    guard case .scheduled(let schedule, _) = plan.pace else { return trial }
    trial.offeredPerS = schedule.rate(at: 0)
    let begin = seconds(.connect) + trial.settleS
    let samples = result.series.filter { $0.tS >= begin && $0.tS + 1 <= begin + trial.measuredS + 0.5 }
    trial.backlogPerS = slope(samples.map { ($0.tS, Double($0.backlog)) })
    return trial
  }

  private var threads: Int { plan.loopCount }

  /// The connect phase; `nil` if the run has none.
  private var opening: CapacityTrial.Opening? {
    guard let connect = phase(.connect) else { return nil }
    var opening = CapacityTrial.Opening()
    opening.seconds = connect.seconds
    opening.staggerS = plan.connections.stagger / .seconds(1)
    (opening.opened, opening.resumed) = (connect.tally.everOpened, connect.tally.resumed)
    (opening.failed, opening.up) = (connect.tally.failed, tally.everUp)
    let handshakes = connect.measurements.latency.tlsHandshakeUs
    if handshakes.count > 0 {
      (opening.handshakeP50Us, opening.handshakeP99Us) = (handshakes.quantile(0.5), handshakes.quantile(0.99))
    }
    if connect.seconds > 0 {
      opening.cpuCores = connect.cpu / connect.seconds
      opening.waitedShare = connect.waited / connect.seconds / Double(threads)
    }
    return opening
  }
}

extension CapacityTrial {
  /// The trial of a result, without purpose and verdict: of several processes, if it was merged.
  ///
  /// A result does not tell how long its processes waited for a processor, nor how its connections were opened.
  ///
  /// - Parameter plan: the load that was asked for.
  package init(_ result: RunResult, of plan: LoadPlan) {
    self.init()
    connections = plan.connections.count
    batch = plan.batching.notifications == .max ? nil : plan.batching.notifications
    faultShare = plan.workload.faults.values.reduce(0, +)
    func seconds(_ name: RunPhase) -> Double { result.phase(name)?.seconds ?? 0 }
    (settleS, measuredS, drainS) = (seconds(.warmUp), seconds(.measured), seconds(.drain))
    (notifications, sendings) = (result.notifications, result.sendings)
    errors = result.binary.errorResponses.values.reduce(0, +)
    (connectionsOpened, connectionsFailed) = (result.connections.opened, result.connections.failed)
    writtenBytes = Int(
      nearest: result.phases.reduce(0) { $0 + ($1.rates?.writtenBytesPerS ?? 0) * $1.seconds }.rounded())
    writtenPerS = result.rates.writtenPerS ?? 0
    let proven = settleS + measuredS + drainS
    acceptedPerS = proven > 0 ? Double(notifications.accepted) / proven : 0
    let latency = result.latency
    (sendLagP50Us, sendLagP99Us) = (latency.sendLagUs.quantile(0.5), latency.sendLagUs.quantile(0.99))
    loopLagP99Us = result.resources.loopLagUs.quantile(0.99)
    if let stalls = result.stalls {
      let ofTrial = stalls.listed.filter { $0.tS + $0.ms / 1e3 > seconds(.connect) }.map(\.ms)
      (stalledS, longestStallMs) = (ofTrial.reduce(0, +) / 1e3, ofTrial.max() ?? 0)
    }
    if latency.drainUs.count > 0 { behindMs = Double(latency.drainUs.maximum) / 1e3 }
    if result.binary.lossWindow.count > 0 { lossMean = result.binary.lossWindow.mean }
    if latency.recoverUs.count > 0 { recoverMeanMs = latency.recoverUs.mean / 1e3 }
    if result.batches.notifications.count > 0 { perWriteMean = result.batches.notifications.mean }
    let begin = seconds(.connect) + settleS
    let samples = result.series.filter { $0.tS >= begin && $0.tS + 1 <= begin + measuredS + 0.5 }
    if !samples.isEmpty {
      let cores = samples.reduce(0) { $0 + $1.cpu } / Double(samples.count)
      cpuCores = cores
      if writtenPerS > 0 { cpuPerNotificationUs = cores * 1e6 / writtenPerS }
    }
    // As many as its threads can use, of as many machines.
    let hosts = result.environment.hosts?.count ?? 1
    let cores = max(1, result.environment.cores).multipliedReportingOverflow(by: max(1, hosts)).partialValue
    if case .number(let threads)? = result.plan["threads"], (1...1e6).contains(threads) {
      availableCores = max(1, min(Int(threads) * max(1, result.parts?.count ?? 1), cores))
    } else {
      availableCores = max(1, cores)
    }
    limitedBy = result.verdict.limitedBy
    waitedShare = nil
    maxRssBytes = result.resources.maxRssBytes
    guard case .scheduled(let schedule, _) = plan.pace else { return }
    offeredPerS = schedule.rate(at: 0)
    backlogPerS = slope(samples.map { ($0.tS, Double($0.backlog)) })
  }
}

/// Of the line that fits best.
private func slope(_ points: [(x: Double, y: Double)]) -> Double? {
  guard points.count >= 3 else { return nil }
  let count = Double(points.count)
  let x = points.reduce(0) { $0 + $1.x } / count
  let y = points.reduce(0) { $0 + $1.y } / count
  let square = points.reduce(0) { $0 + ($1.x - x) * ($1.x - x) }
  guard square > 0 else { return nil }
  return points.reduce(0) { $0 + ($1.x - x) * ($1.y - y) } / square
}
