import ArgumentParser
import Foundation
import Glibc
import LoadTest
import Measurement
import Reporting
import Synchronization
import TLSTransport

/// One search for a capacity: from the words of the command line to the report.
struct CapacityRun {
  private let command: Capacity
  private let status = LoadStatus()

  init(_ command: Capacity) { self.command = command }

  func run() async throws {
    _ = signal(SIGPIPE, SIG_IGN)
    var plan = LoadPlan()
    try command.target.apply(to: &plan)
    try command.workload.apply(to: &plan)
    command.connections.apply(to: &plan)
    plan.drain = command.trials.drain.duration
    // Before anything is made or measured.
    do { _ = try Workload(plan.workload) } catch { throw ValidationError("\(error).") }
    let schedule = CapacitySchedule(command, plan)
    let output = try TextOutput()
    if command.dryRun {
      _ = try command.target.context(isDryRun: true)
      output.say(schedule.text)
      return try output.check()
    }
    try Descriptors.require(
      connections: schedule.mostConnections(plan), threads: plan.threads, servesMetrics: false)
    try command.target.lookUp(for: &plan)
    // Made first, so that a bad path is known before the trials.
    let folder = try command.result.output.map { try ReportFolder($0) }
    try folder?.check("capacity.json")
    let history = try History.appending(to: command.result.history)
    let context = try command.target.context()
    let stop = TrialStop()
    let signals = await StopSignals { stop.now() }
    defer { signals.end() }

    var document = try blank(plan)
    var trials = Trials(command: command, plan: plan, context: context, stop: stop, status: status)
    do {
      try await trials.search(&document)
      for extra in schedule.sweeps where !stop.isAsked { _ = try await trials.measure(extra) }
    } catch let failure as LoadRunner.Failure {
      complain("\(command.target.gateway.address): \(failure)")
      guard !trials.made.isEmpty else { throw ExitStatus.unavailable }
      document.trials = trials.made
      document.ended = now()
      try write(document, output, folder, history)
      throw ExitStatus.unavailable
    } catch let error as Workload.PlanError {
      throw ValidationError("\(error).")
    }
    document.trials = trials.made
    document.ended = now()
    try write(document, output, folder, history)
    if stop.isAsked { throw ExitStatus.interrupted }
    if document.sustainedPerS == nil { throw ExitStatus.thresholdFailed }
  }

  private func now() -> String { rfc3339(Int64(Date.now.timeIntervalSince1970 * 1e9)) }

  /// The document without trials.
  private func blank(_ plan: LoadPlan) throws -> CapacityDocument {
    var document = CapacityDocument()
    document.started = now()
    document.environment = Apnscope.environment(Report.command)
    // The settings that load has too, by the same names.
    var load = try Load.parse(["--plain"])
    (load.target, load.workload, load.connections) = (command.target, command.workload, command.connections)
    let ofOneTrial: Set<String> = ["for", "warm_up", "drain", "behind", "poisson", "count"]
    document.plan = EffectivePlan(load, plan).values.filter { !ofOneTrial.contains($0.key) }
    document.settings.precision = command.trials.precision.value
    document.settings.trialS = command.trials.trial.duration / .seconds(1)
    document.settings.confirmS = command.trials.confirm.duration / .seconds(1)
    document.settings.settleS = command.trials.settle.duration / .seconds(1)
    document.settings.lagLimitUs = Int(command.limits.lagLimit.duration / .microseconds(1))
    document.settings.errorLimit = command.limits.errorLimit.value
    document.settings.resentLimit = command.limits.resentLimit.value
    document.connections = plan.connections.count
    document.campaign = command.question.count.map {
      .init(notifications: $0.value, withinS: command.question.within.map { $0.duration / .seconds(1) })
    }
    return document
  }

  private func write(
    _ document: CapacityDocument, _ output: TextOutput, _ folder: ReportFolder?, _ history: RunHistory?
  ) throws {
    let json = try document.jsonDocument()
    try folder?.write(
      document.page(footer: "Made by " + .code(Report.command.joined(separator: " "))),
      [("capacity.json", Array((json + "\n").utf8))])
    output.say(command.result.format == .json ? json : CapacitySummary(document).text)
    try complaining { try history?.append(document, document: json) }
    try output.check()
  }
}

/// Asks whatever trial runs to end, and none to begin.
final class TrialStop: Sendable {
  private let state = Mutex<(isAsked: Bool, runner: LoadRunner?)>((false, nil))

  var isAsked: Bool { state.withLock { $0.isAsked } }

  func now() {
    let runner = state.withLock { state in
      state.isAsked = true
      return state.runner
    }
    runner?.stop()
  }

  /// `false` when it is not to run any more.
  func begin(_ runner: LoadRunner) -> Bool {
    state.withLock { state in
      guard !state.isAsked else { return false }
      state.runner = runner
      return true
    }
  }
}

/// What is asked of one trial.
struct TrialRequest {
  var purpose: CapacityTrial.Purpose
  var seconds: Duration
  /// `nil`: as fast as possible.
  var rate: Double?
  var connections: Int?
  var batch: Int?
  var faultShare: Double?
}

/// Makes trials, one after the other, and keeps them.
private struct Trials {
  let command: Capacity
  let plan: LoadPlan
  let context: TLSContext?
  let stop: TrialStop
  let status: LoadStatus
  private(set) var made: [CapacityTrial] = []

  init(command: Capacity, plan: LoadPlan, context: TLSContext?, stop: TrialStop, status: LoadStatus) {
    (self.command, self.plan, self.context, self.stop, self.status) = (command, plan, context, stop, status)
  }

  mutating func search(_ document: inout CapacityDocument) async throws {
    document.ending = .interrupted
    let options = command.trials
    guard let burst = try await measure(TrialRequest(purpose: .burst, seconds: options.trial.duration)) else { return }
    guard burst.acceptedPerS > 0 else {
      document.ending = .nothingPassed
      return
    }
    var search = CapacitySearch(
      near: burst.acceptedPerS, precision: options.precision.value, maximumTrials: options.maxTrials.value)
    defer { (document.sustainedPerS, document.sustainedRange) = (search.sustained, search.range) }
    while let next = search.next {
      let purpose: CapacityTrial.Purpose =
        switch next.kind {
        case .step: .search
        case .confirmation: .confirm
        case .above: .above
        }
      let seconds = next.isLong ? options.confirm.duration : options.trial.duration
      guard let trial = try await make(TrialRequest(purpose: purpose, seconds: seconds, rate: next.rate)) else {
        return
      }
      search.note(
        trial.verdict == .passed ? .passed : trial.verdict == .void ? .void : .failed, held: trial.heldPerS)
    }
    document.ending =
      switch search.ending {
      case .found: .found
      case .generatorLimited: .generatorLimited
      case .unsettled: .unsettled
      case .nothingPassed, nil: .nothingPassed
      }
  }

  /// The same for what goes as fast as possible: one that others disturbed is made again, and the last attempt counts.
  mutating func measure(_ request: TrialRequest) async throws -> CapacityTrial? {
    for _ in 0..<Self.retries {
      guard let trial = try await make(request) else { return nil }
      if trial.verdict != .void { return trial }
    }
    return try await make(request, isLast: true)
  }

  private static let retries = 1

  /// `nil` when it was interrupted; it is kept as void then, with what it counted.
  ///
  /// - Parameter isLast: there will be no better one, so it is not void.
  private mutating func make(_ request: TrialRequest, isLast: Bool = false) async throws -> CapacityTrial? {
    var plan = plan
    plan.duration = request.seconds
    plan.warmUp = command.trials.settle.duration
    if let rate = request.rate { plan.pace = .scheduled(.constant(rate), isPoisson: false) }
    if let connections = request.connections { plan.connections.count = connections }
    if let batch = request.batch { plan.batching.notifications = batch }
    if let share = request.faultShare, share > 0 { plan.workload.faults[.missingToken, default: 0] += share }
    // A gateway that was there before may be starting again.
    if !made.isEmpty { plan.connections.patienceWithNobody = plan.connections.giveUp }
    let runner = try LoadRunner(plan, tls: context)
    guard stop.begin(runner) else { return nil }
    let outcome: LoadOutcome
    do {
      let status = status
      outcome = try await runner.run { status.show($0) }
      status.end()
    } catch {
      status.end()
      throw error
    }
    if case .obstacle(let reason) = outcome.givenUp { throw LoadRunner.Failure.unreachable(reason) }
    let result = outcome.result(Apnscope.environment([]))
    var trial = outcome.trial(result)
    (trial.number, trial.purpose) = (made.count + 1, request.purpose)
    if stop.isAsked {
      (trial.verdict, trial.reasons) = (.void, [CapacityTrial.interruption])
    } else {
      var limits = TrialLimits()
      limits.lag = Int(command.limits.lagLimit.duration / .microseconds(1))
      limits.errorShare = command.limits.errorLimit.value
      limits.resentShare = command.limits.resentLimit.value
      limits.drift = command.trials.precision.value / 2
      limits.judge(&trial, thresholds: command.limits.threshold.map { $0.threshold.judge(result) })
      if isLast, request.rate == nil { trial.verdict = .measured }
    }
    made.append(trial)
    StandardError.write(CapacitySummary.line(trial) + "\n")
    return stop.isAsked ? nil : trial
  }
}
