import ArgumentParser
import Bytes
import CommandFiles
import FoundationEssentials
import Glibc
import LoadTest
import Measurement
import Reporting
import Synchronization

/// One capacity search, from the command line to the report.
struct CapacityRun {
  private let command: Capacity
  private let status: LoadStatus

  init(_ command: Capacity) {
    self.command = command
    status = LoadStatus("apnscope capacity", isQuiet: command.display.progress.quiet)
  }

  func run() async throws {
    _ = signal(SIGPIPE, SIG_IGN)
    var plan = LoadPlan()
    try command.target.apply(to: &plan)
    try command.workload.apply(to: &plan)
    try command.target.selectTopics(of: command.workload.payloadFile, in: &plan)
    try command.connections.apply(to: &plan)
    plan.drain = command.trials.drain.duration
    // Before anything is made or measured.
    do { _ = try Workload(plan.workload) } catch { throw ValidationError("\(error).") }
    let search = command.searchPlan
    let schedule = CapacitySchedule(search, plan)
    let output = try TextOutput()
    if command.dryRun {
      if command.trials.trialCommand == nil { _ = try command.target.context(isDryRun: true) }
      output.say(schedule.text)
      return try output.check()
    }
    var document = try blank(plan)
    if command.trials.trialCommand == nil {
      try Descriptors.require(
        connections: schedule.maximumConnections(plan), threads: plan.threads, endpoints: command.web.web == nil ? 0 : 1
      )
      try command.target.lookUp(for: &plan)
    }
    // Made first, so that a bad path is known before the trials.
    let folder = try command.result.output.map { try ReportFolder($0) }
    try folder?.check("capacity.json")
    let history = try History.appending(to: command.result.history)
    let context = command.trials.trialCommand == nil ? try command.target.context() : nil
    let stop = LoadStop()
    let trialCommand = try makeTrialCommand(stop)
    let signals = await StopSignals { stop.request() }
    defer { signals.end() }

    document.started = now()
    let page = try await command.web.start { stop.request() }
    let live = page.map { LiveSearch($0, document) }
    live?.show(nil)
    let status = status
    let numbers = TrialNumbers(schedule)
    var runner = CapacityRunner(
      search, load: plan, environment: Apnscope.environment([]), stop: stop
    ) { plan in
      if let trialCommand {
        let title = numbers.next()
        complain(title)
        return .result(try await trialCommand.run(plan, number: numbers.made))
      }
      let load = try LoadRunner(plan, tls: context)
      stop.begin(load)
      defer { status.end() }
      let trial = numbers.next()
      let length = RunLength(plan)
      return .outcome(try await load.run { status.show($0, of: length, trial: trial) })
    } note: {
      StandardError.write(CapacitySummary.line($0) + "\n")
      live?.show($0)
    }
    do {
      try await runner.run()
    } catch let failure as TrialCommand.Failure {
      complain(failure.description)
      guard !runner.trials.isEmpty else { throw ExitStatus.unavailable }
      document.take(runner, ended: now())
      try write(document, output, folder, history)
      throw ExitStatus.unavailable
    } catch let failure as LoadRunner.Failure {
      complain("\(command.target.gateway.address): \(failure)")
      guard !runner.trials.isEmpty else { throw ExitStatus.unavailable }
      document.take(runner, ended: now())
      try write(document, output, folder, history)
      throw ExitStatus.unavailable
    } catch let error as Workload.PlanError {
      throw ValidationError("\(error).")
    }
    document.take(runner, ended: now())
    let last = document
    await page?.finish { LiveSearch.page(last) }
    try write(document, output, folder, history)
    if stop.isRequested { throw ExitStatus.interrupted }
    if document.sustainedPerS == nil { throw ExitStatus.thresholdFailed }
  }

  /// `nil` when trials are made from this process.
  private func makeTrialCommand(_ stop: LoadStop) throws -> TrialCommand? {
    guard let text = command.trials.trialCommand else { return nil }
    let folder = try command.result.output.map { Paths.path(of: "trials", in: $0) } ?? Self.temporaryFolder()
    // Safe: the text lives through the call.
    guard unsafe mkdir(folder, 0o777) == 0 || errno == EEXIST else {
      complain("\(folder): \(SystemError.text(errno))")
      throw ExitStatus.cannotOpen
    }
    let command = command
    return TrialCommand(
      command: text, folder: folder, timeout: command.trials.trialTimeout.duration, stop: stop
    ) { plan in
      var load = try Load.parse(["--plain"])
      (load.target, load.workload, load.connections) = (command.target, command.workload, command.connections)
      load.pace.duration = TimeSpan(plan.duration)
      load.pace.rate = TrialCommand.rate(plan).flatMap { Rate(argument: "\($0)/s") }
      return EffectivePlan(load, plan).trial
    }
  }

  private static func temporaryFolder() throws -> String {
    let parent = EngineSegment.variable("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    return Paths.path(of: "apnscope-trials-\(getpid())", in: parent)
  }

  private func now() -> String { rfc3339(Int64(Date.now.timeIntervalSince1970 * 1e9)) }

  /// The document without trials.
  private func blank(_ plan: LoadPlan) throws -> CapacityDocument {
    var document = CapacityDocument()
    document.environment = Apnscope.environment(Report.command)
    // The settings that load has too, by the same names.
    var load = try Load.parse(["--plain"])
    (load.target, load.workload, load.connections) = (command.target, command.workload, command.connections)
    let ofOneTrial: Set<String> = ["for", "warm_up", "drain", "behind", "poisson", "count"]
    document.plan = EffectivePlan(load, plan).values.filter { !ofOneTrial.contains($0.key) }
    document.settings.trialCommand = command.trials.trialCommand
    document.settings.precision = command.trials.precision.value
    document.settings.trialS = command.trials.trial.duration / .seconds(1)
    document.settings.confirmS = command.trials.confirm.duration / .seconds(1)
    document.settings.settleS = command.trials.settle.duration / .seconds(1)
    document.settings.lagLimitUs = Int(command.limits.lagLimit.duration / .microseconds(1))
    document.settings.errorLimit = command.limits.errorLimit.value
    document.settings.resentLimit = command.limits.resentLimit.value
    document.connections = plan.connections.count
    try command.questions.apply(to: &document)
    return document
  }

  private func write(
    _ document: CapacityDocument, _ output: TextOutput, _ folder: ReportFolder?, _ history: RunHistory?
  ) throws {
    let json = try document.jsonDocument()
    try folder?.write(
      document.page(footer: "Made by " + .code(Report.command.joined(separator: " "))),
      [("capacity.json", Array((json + "\n").utf8))])
    if command.result.format == .json {
      output.say(json)
    } else {
      output.show(CapacitySummary(document).text, command.display.colour)
    }
    try complaining { try history?.append(document, document: json) }
    try output.check()
  }
}

/// The page of a search that goes on.
private final class LiveSearch: Sendable {
  private let page: LivePage
  private let document: Mutex<CapacityDocument>

  /// - Parameter document: without trials.
  init(_ page: LivePage, _ document: CapacityDocument) {
    self.page = page
    self.document = Mutex(document)
  }

  /// Adds a trial, and shows all so far.
  func show(_ trial: CapacityTrial?) {
    let document = document.withLock { document in
      if let trial { document.trials.append(trial) }
      return document
    }
    page.publish { Self.page(document) }
  }

  static func page(_ document: CapacityDocument) -> Page {
    document.page(footer: "Made by " + .code(Report.command.joined(separator: " ")))
  }
}

extension CapacityDocument {
  /// The trials and their result.
  fileprivate mutating func take(_ runner: CapacityRunner, ended: String) {
    trials = runner.trials
    self.ended = ended
    ending =
      switch runner.ending {
      case .found: .found
      case .generatorLimited: .generatorLimited
      case .unsettled: .unsettled
      case .nothingPassed: .nothingPassed
      case .interrupted: .interrupted
      }
    (sustainedPerS, sustainedRange) = (runner.sustained, runner.range)
  }
}
