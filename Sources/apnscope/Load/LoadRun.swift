import ArgumentParser
import CommandFiles
import Glibc
import LoadTest
import Measurement
import MetricsEndpoint
import NIOPosix
import Reporting

/// One load run, from the command line to the verdict.
struct LoadRun {
  private let command: Load

  init(_ command: Load) { self.command = command }

  func run() async throws {
    _ = signal(SIGPIPE, SIG_IGN)
    var plan = try command.loadPlan()
    let settings = EffectivePlan(command, plan)
    let output = try TextOutput()
    if command.printPlan {
      try check(plan)
      output.say(settings.toml)
      return try output.check()
    }
    try Descriptors.require(
      connections: plan.connections.count, threads: plan.loopCount,
      endpoints: [command.result.metrics != nil, command.web.web != nil].count { $0 },
      pollsFeedback: plan.feedback != nil)
    try command.target.lookUp(for: &plan)
    let runner = try make(plan)
    let file = try command.result.file.map { try WholeDocument($0) }
    let junit = try command.result.junit.map { try WholeDocument($0) }
    let history = try History.appending(to: command.result.history)
    let environment = Apnscope.environment(CommandLine.arguments)
    let isSegment = plan.workload.segments > 1
    if isSegment { deferThresholds() }
    let log = try command.log.open()
    let stop = await StopSignals { runner.stop() }
    defer { stop.end() }

    let metrics = try await startMetrics(runner, plan)
    let page = try await command.web.start { runner.stop() }
    let partial = try partialResult(of: file, environment, settings)
    let watch = ThresholdWatch(command.result.threshold.map(\.threshold), environment)
    let outcome: LoadOutcome
    do {
      outcome = try await carryOut(
        runner, plan, partial, watch, log, page.map { LiveRun($0, environment, settings, command) })
    } catch {
      partial?.remove()
      _ = log?.end(nil)
      await metrics?.stop()
      if let failure = error as? LoadRunner.Failure, case .late = failure {
        complain("\(failure)")
      } else {
        complain("\(command.target.gateway.address): \(error)")
      }
      throw ExitStatus.unavailable
    }
    var result = outcome.result(environment)
    result.plan = settings.values
    result.labels = command.result.labels
    if !isSegment { result.verdict.thresholds = command.result.threshold.map { $0.threshold.judge(result) } }
    watch?.mark(&result)
    let isLogged = log?.end(result) ?? true
    let shown = RunReport(result, command: Report.command)
    await page?.finish { shown.page }
    let document = try result.jsonDocument()
    file?.write(document)
    junit?.write(JUnitReport(result).text)
    // If the result could not be written, the partial result is kept instead.
    if file?.failure == nil { partial?.remove() }
    if command.result.shown == .json {
      output.say(document)
    } else {
      output.show(LoadSummary(result).text, command.result.display.colour)
    }
    try complaining { try history?.append(result, document: document) }
    try output.check()
    try file?.check()
    try junit?.check()
    let isInterrupted = stop.wasAsked || page?.wasStopped ?? false
    await linger(stop)
    await metrics?.stop()
    if !isLogged { throw ExitStatus.inputOutput }
    if outcome.givenUp != nil, let reason = result.verdict.reasons?.first {
      complain("\(command.target.gateway.address): \(reason)")
    }
    if let status = Self.status(of: result, isGivenUp: outcome.givenUp != nil, isInterrupted: isInterrupted) {
      throw status
    }
  }

  /// Runs the load, with its status on the terminal and its books so far in a file.
  private func carryOut(
    _ runner: LoadRunner, _ plan: LoadPlan, _ partial: PartialResult?, _ watch: ThresholdWatch?, _ log: LoadLog?,
    _ live: LiveRun?
  ) async throws -> LoadOutcome {
    let status = LoadStatus(
      "apnscope load  \(command.target.gateway.address)", isQuiet: command.result.display.progress.quiet,
      hasScreen: command.result.screen.screen)
    let length = RunLength(plan)
    let gateway = "\(command.target.gateway.address)"
    // Without a log nothing is noted for it.
    let events: (@Sendable ([LoadEvent]) -> Void)? = if let log { { log.receive($0) } } else { nil }
    do {
      let outcome = try await runner.run(
        { status.show($0, of: length) },
        notice: {
          status.end()
          complain("\(gateway): \($0)")
        },
        checkpoint: {
          partial?.keep($0)
          live?.show($0)
          guard let watch, watch.fails($0), let failure = watch.failure else { return }
          runner.stop()
          log?.abort(failure.entry)
          status.end()
          complain("\(failure.threshold.expression) does not hold: \(failure.entry.reason ?? "")")
        },
        events: events)
      status.end()
      await partial?.end()
      return outcome
    } catch {
      status.end()
      await partial?.end()
      throw error
    }
  }

  /// The exit status, the most important first; `nil` for success.
  static func status(of result: RunResult, isGivenUp: Bool, isInterrupted: Bool) -> ExitCode? {
    let broken = result.verdict.invariants.filter { !$0.holds }
    // Interrupted runs, and runs without a gateway, do not warn about unanswered markers.
    if broken.contains(where: { !$0.isAboutProof }) { return ExitStatus.brokenBooks }
    if isGivenUp { return ExitStatus.unavailable }
    if isInterrupted { return ExitStatus.interrupted }
    if result.verdict.outcome == .failed { return ExitStatus.unavailable }
    if !broken.isEmpty { return ExitStatus.brokenBooks }
    return result.verdict.thresholds.contains { !$0.passed } ? ExitStatus.thresholdFailed : nil
  }

  /// The file that is left when this process is killed; only for a result that is written to a file.
  private func partialResult(
    of file: WholeDocument?, _ environment: Environment, _ settings: EffectivePlan
  ) throws -> PartialResult? {
    guard let file, file.isFile, let output = command.result.file else { return nil }
    return try PartialResult(beside: output, environment, plan: settings.values, labels: command.result.labels)
  }

  /// Conditions are on the whole stream, which a segment is not.
  private func deferThresholds() {
    guard !command.result.threshold.isEmpty else { return }
    complain("--threshold is for the whole stream: 'apnscope merge' evaluates it when the segments are joined")
  }

  /// Starts the metrics endpoint. Its address is written to standard error, because standard output is for the result.
  private func startMetrics(_ runner: LoadRunner, _ plan: LoadPlan) async throws -> MetricsEndpoint? {
    guard let address = command.result.metrics?.address else { return nil }
    let info = command.result.info(plan)
    do {
      let endpoint = try await MetricsEndpoint.start(
        host: address.host, port: address.port, group: MultiThreadedEventLoopGroup.singleton
      ) { runner.snapshot().metrics + [info] }
      complain("metrics at http://\(endpoint.address)/metrics")
      return endpoint
    } catch {
      complain("metrics: \(error)")
      throw ExitStatus.unavailable
    }
  }

  /// Waits for as long as metrics are to be served after the end, or until a signal.
  private func linger(_ stop: StopSignals) async {
    guard let time = command.result.metricsLinger?.duration else { return }
    let end = ContinuousClock.now + time
    while ContinuousClock.now < end, !stop.wasAsked { try? await Task.sleep(for: .milliseconds(20)) }
  }

  private func make(_ plan: LoadPlan) throws -> LoadRunner {
    try check(plan)
    guard !plan.topics.isEmpty else { return try LoadRunner(plan, tls: try command.target.context()) }
    return try LoadRunner(plan, identities: try command.target.contexts(of: plan.topics))
  }

  /// Throws when the plan is invalid.
  private func check(_ plan: LoadPlan) throws {
    do {
      _ = try LoadRunner(plan, tls: nil)
    } catch {
      throw ValidationError("\(error).")
    }
  }
}

/// The page of a run that goes on.
private struct LiveRun: Sendable {
  private let page: LivePage
  private let environment: Environment
  private let plan: [String: RunResult.PlanValue]
  private let labels: [String: String]?

  init(_ page: LivePage, _ environment: Environment, _ settings: EffectivePlan, _ command: Load) {
    (self.page, self.environment) = (page, environment)
    (plan, labels) = (settings.values, command.result.labels)
  }

  /// Shows the run so far, without its connections over time.
  func show(_ books: LoadOutcome) {
    page.publish {
      var result = books.ongoingResult(environment)
      (result.plan, result.labels) = (plan, labels)
      return RunReport(result, command: Report.command).page
    }
  }
}

extension RunLength {
  /// The length of a run by its plan: the count if there is one, as its end by time is a day away then.
  init(_ plan: LoadPlan) {
    if let count = plan.count {
      self = .notifications(count)
    } else if plan.replay != nil {
      self = .unknown
    } else {
      self = .seconds((plan.warmUp + plan.duration) / .seconds(1))
    }
  }
}
