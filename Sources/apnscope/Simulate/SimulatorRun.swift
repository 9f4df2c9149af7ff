import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import GatewayControl
import GatewayRecords
import GatewaySimulator
import Glibc
import Measurement
import MetricsEndpoint
import NIOPosix
import Records
import Reporting
import UnixSignals

/// One run of the simulator, from the command line to the final ledger.
struct SimulatorRun {
  private let command: Simulate

  init(_ command: Simulate) { self.command = command }

  private enum Event { case stop, shutDown, devicesOnline, second }

  func run() async throws {
    _ = signal(SIGPIPE, SIG_IGN)
    var options = try command.options()
    options.maximumConnections = try connectionLimit(options)
    if command.limits.maxConnectionMemory == nil {
      let needed = options.maximumConnections * options.memoryPerConnection
      options.maximumConnectionMemory = max(options.maximumConnectionMemory, needed)
    }
    let output = try SimulatorOutput(isFree: !command.books.recordsAreOutput)
    let ledgerOutput = try command.books.ledger.map { try WholeDocument($0) }
    let history = try History.appending(to: command.books.history)
    let junit = try command.expectations.junit.map { try WholeDocument($0) }
    let ready = try command.expectations.readyFile.map { try ReadyFile($0) }
    let list = try feedbackList()
    let log = try openLog()
    let recorder = try makeRecorder(options)

    // Before listening: a process that sees the port may send a signal at once.
    let signals = await UnixSignalsSequence(trapping: StopSignals.signals + [.sigusr1, .sigusr2])
    let simulator = try await start(options, list, log, recorder)
    let observed = recorder.flatMap { keepsHistory ? ObservedGateway(simulator, $0, judging: judging) : nil }
    let metrics = try await startMetrics(simulator, observed)
    let control = try await startControl(observed)
    let (ends, ending) = AsyncStream<Void>.makeStream()
    let page = try await command.web.start { ending.yield() }
    let networks = simulator.localPushNetworks.map { network in
      "local-push\(network.name.isEmpty ? "" : "/\(network.name)") \(network.address)"
    }
    let places =
      ([
        simulator.gateway.map { "gateway \($0)" }, simulator.http2.map { "http2 \($0)" },
        simulator.channelManagement.map { "channels \($0)" }, simulator.deviceChannel.map { "devices \($0)" },
      ] + networks + [
        simulator.localPushControl.map { "local-push-control \($0)" }, simulator.feedback.map { "feedback \($0)" },
        metrics.map { "metrics http://\($0.address)/metrics" }, control.map { "control http://\($0.address)" },
      ]).compactMap { $0 }
    for place in places { output.say(place) }
    ready?.write(places)

    let hasLostFailures = await watch(simulator, signals, page, ends)
    await metrics?.stop()
    await control?.stop()
    let end = WallClock.system.nanoseconds()
    var ledger = await simulator.stop()
    var problems = simulator.takeFailures()
    do { try await list.close() } catch { problems.append(error.description) }
    log?.close()
    if let recorder {
      let outcome = recorder.finish(observedUntil: end)
      (ledger.records, ledger.verdict) = (outcome.records, outcome.verdict)
      problems += outcome.failures.map(sentence)
    }

    let expected = command.expectations.all
    if !expected.isEmpty { ledger.expectations = expected.map { $0.judge(ledger) } }
    let last = ledger
    await page?.finish { ProviderPage(last, command: Report.command).page }
    output.show(SimulatorSummary(ledger).text, command.display.colour)
    if let ledgerOutput { ledgerOutput.write(try ledger.jsonDocument()) }
    if let history {
      do {
        try history.append(ledger, of: Apnscope.environment(Report.command), document: try ledger.jsonDocument())
      } catch { problems.append("\(error)") }
    }
    junit?.write(JUnitReport(suite: "apnscope simulate", ledger.expectations ?? []).text)
    ready?.remove()
    problems += [log?.failure, options.tls?.keyLogFailure.map { "\(command.tls.keylog ?? ""): \($0)" }].compactMap {
      $0
    }
    if let log, log.droppedLines > 0 {
      problems.append("\(command.books.log ?? ""): \(grouped(log.droppedLines)) lines could not be written")
    }
    for problem in problems { complain(problem) }
    try ledgerOutput?.check()
    try junit?.check()
    try ready?.check()
    if hasLostFailures || !problems.isEmpty { throw ExitStatus.inputOutput }
    try output.check()
    if ledger.expectations?.contains(where: { !$0.passed }) == true { throw ExitStatus.thresholdFailed }
  }

  private func sentence(_ failure: GatewayRecorder.Failure) -> String {
    switch failure {
    case .writing(let reason): return reason
    case .stalled:
      let name = OutputFile.name(of: command.books.records ?? OutputFile.standardOutput)
      return "\(name): nobody reads the records; the rest of them is left out, and there is no verdict"
    case .temporaryFile(let failure): return "no verdict: \(failure)"
    }
  }

  // MARK: the beginning

  /// The largest number of connections, within the file descriptors that the process may open.
  private func connectionLimit(_ options: SimulatorOptions) throws -> Int {
    let endpoints = [command.books.metrics != nil, command.control.control != nil, command.web.web != nil].count { $0 }
    let most = Descriptors.connections(threads: options.threads, endpoints: endpoints)
    guard most > 0 else {
      complain(Descriptors.problem)
      throw ExitStatus.unavailable
    }
    // The help documents that the default depends on the descriptors; only an explicit value is reported.
    if let wanted = command.limits.maxConnections, wanted > most {
      complain(
        "--max-connections is lowered from \(grouped(wanted)) to \(grouped(most)): this process may open \(grouped(Descriptors.limit)) files at a time (ulimit -n)"
      )
    }
    return min(options.maximumConnections, most)
  }

  private func feedbackList() throws -> FeedbackList {
    var limits = FeedbackList.Limits()
    if command.feedbackListFile == nil { limits.maximumFileBytes = command.limits.maxMemory.bytes }
    do {
      return try FeedbackList(path: command.feedbackListFile, limits: limits)
    } catch {
      let way = error.kind == .inUse ? " (by another gateway?); --feedback-list takes another file, or memory" : ""
      complain(error.description + way)
      throw ExitStatus.code(for: error)
    }
  }

  private func openLog() throws -> EventLog? {
    do {
      return try command.books.log.map { path in
        let log = try EventLog(path: path)
        log.write(.started(at: WallClock.system.nanoseconds()))
        return log
      }
    } catch {
      complain("\(error)")
      throw ExitStatus.inputOutput
    }
  }

  private func makeRecorder(_ options: SimulatorOptions) throws -> GatewayRecorder? {
    let output = try recorderOutput()
    guard output != nil || keepsHistory else { return nil }
    var recording = GatewayRecorder.Options()
    recording.maximumWaitingBytes = command.limits.maxUnrecorded.bytes
    recording.dissection.maximumMemory = command.limits.maxUnrecorded.bytes
    recording.dissection.limits = options.rules.limits
    recording.historyBytes = keepsHistory ? command.control.maxHistory.bytes : nil
    recording.plainTopic = options.plainTopic
    return GatewayRecorder(into: output, source: GatewayRecorder.source(options), options: recording)
  }

  private func recorderOutput() throws -> RecorderOutput? {
    let judging = command.books.verdict || command.expectations.needVerdict ? judging : nil
    guard let path = command.books.records else { return judging.map { RecorderOutput(judging: $0) } }
    let (output, check) = try recordsFile(path)
    let writer = JSONLinesWriter(fates: .early, judging: command.payloads.ofRecords, output: output)
    return RecorderOutput(writer: writer, judging: judging) {
      do throws(FileFailure) {
        try check()
        return nil
      } catch {
        return error.kind == .readerGone ? nil : error.description
      }
    }
  }

  private func recordsFile(_ path: String) throws -> (output: RecordOutput, check: () throws(FileFailure) -> Void) {
    if let rotation = command.books.rotation {
      let file = try RotatedFile(path, rotation)
      return ({ file.write($0) }, { () throws(FileFailure) in try file.check() })
    }
    let outputs = try Outputs(OutputFile.file(path), isDirectory: false)
    return (try outputs.open(), { () throws(FileFailure) in try outputs.check() })
  }

  private var judging: ProviderInspection.Options {
    var options = ProviderInspection.Options()
    options.stories.memory = command.limits.maxVerdictMemory.bytes
    options.stories.folder = TemporaryFiles.folder
    options.stories.resendWithin = command.resends.nanoseconds
    options.tokens = command.expectations.tokens
    return options
  }

  private func start(
    _ options: SimulatorOptions, _ list: FeedbackList, _ log: EventLog?, _ recorder: GatewayRecorder?
  ) async throws -> Simulator {
    do {
      return try await Simulator.start(options, feedbackList: list, log: log, observer: recorder?.observer)
    } catch {
      complain("\(error)")
      throw ExitStatus.unavailable
    }
  }

  /// Whether what was received is kept: for the control endpoint, or the verdict in the metrics.
  private var keepsHistory: Bool {
    command.control.control != nil || command.books.metrics != nil && command.books.verdict
  }

  private func startMetrics(_ simulator: Simulator, _ observed: ObservedGateway?) async throws -> MetricsEndpoint? {
    guard let address = command.books.metrics?.address else { return nil }
    do {
      return try await MetricsEndpoint.start(
        host: address.host, port: address.port, group: MultiThreadedEventLoopGroup.singleton
      ) { await simulator.metrics() + (observed?.metrics() ?? []) }
    } catch {
      complain("metrics: \(error)")
      throw ExitStatus.unavailable
    }
  }

  private func startControl(_ gateway: ObservedGateway?) async throws -> ControlEndpoint? {
    guard let address = command.control.control?.address, let gateway else { return nil }
    do {
      return try await ControlEndpoint.start(
        for: gateway, host: address.host, port: address.port, acceptsRemote: command.control.allowRemote,
        group: MultiThreadedEventLoopGroup.singleton, version: Apnscope.version)
    } catch {
      let way = "\(error)".contains("alone") ? "; --allow-remote lets other machines change the gateway" : ""
      complain("control: \(error)\(way)")
      throw ExitStatus.unavailable
    }
  }

  // MARK: while it runs

  /// Returns at the requested end, and whether the feedback list failed meanwhile. A second signal ends the process,
  /// also while the ledger is written.
  private func watch(
    _ simulator: Simulator, _ sequence: UnixSignalsSequence, _ page: LivePage?, _ ends: AsyncStream<Void>
  ) async -> Bool {
    let (events, source) = AsyncStream.makeStream(of: Event.self)
    Task {
      var requests = StopRequests()
      for await signal in sequence {
        switch signal {
        case .sigusr1: source.yield(.shutDown)
        case .sigusr2: source.yield(.devicesOnline)
        default:
          requests.note()
          source.yield(.stop)
        }
      }
    }
    let limit = command.books.duration.map { limit in
      Task {
        try await Task.sleep(for: limit.duration)
        source.yield(.stop)
      }
    }
    let button = Task { for await _ in ends { source.yield(.stop) } }
    let goal = SimulatorGoal(command.expectations)
    let goalClock = goal.map { goal in
      Task {
        var goal = goal
        while !goal.isReached(by: await simulator.snapshot()) { try await Task.sleep(for: SimulatorGoal.pause) }
        source.yield(.stop)
      }
    }
    let clock = Task {
      while true {
        try await Task.sleep(for: .seconds(1))
        source.yield(.second)
      }
    }
    defer {
      limit?.cancel()
      goalClock?.cancel()
      button.cancel()
      clock.cancel()
    }
    var status = SimulatorStatus(
      isQuiet: command.display.progress.quiet, hasScreen: command.screen.screen)
    defer { status.end() }
    var hasLostFailures = false
    for await event in events {
      switch event {
      case .stop: return hasLostFailures
      case .shutDown: simulator.shutDownConnections()
      case .devicesOnline: simulator.bringDevicesOnline()
      case .second:
        for problem in simulator.takeFailures() {
          hasLostFailures = true
          status.interrupt { complain(problem) }
        }
        guard status.isShown || page != nil else { continue }
        let ledger = await simulator.snapshot()
        page?.publish { ProviderPage(ledger, command: Report.command).page }
        if status.isShown { status.show(ledger, await simulator.openConnections().gateway) }
      }
    }
    return hasLostFailures
  }
}
