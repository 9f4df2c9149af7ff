import ArgumentParser
import Bytes
import CommandFiles
import DeviceFleet
import Glibc
import Measurement
import MetricsEndpoint
import NIOPosix
import Reporting
import Synchronization

/// One run of a fleet, from the command line to its result.
struct DevicesRun {
  private let command: Devices

  init(_ command: Devices) { self.command = command }

  func run() async throws {
    _ = signal(SIGPIPE, SIG_IGN)
    var plan = try command.plan()
    let settings = FleetSettings(command, plan)
    let output = try TextOutput()
    if command.dryRun {
      output.say(settings.text)
      return try output.check()
    }
    try requireDescriptors(plan)
    try command.target.lookUp(for: &plan)
    let runner = try make(plan)
    let file = try command.result.file.map { try WholeDocument($0) }
    let received = try command.result.received.map {
      try ReceivedFile(
        $0, hasPayloads: command.result.payloads, limit: command.result.maxUnwritten?.bytes ?? 64 << 20)
    }
    let stop = await StopSignals { runner.stop() }
    defer { stop.end() }
    let metrics = try await startMetrics(runner)
    let status = FleetStatus(isQuiet: command.result.display.progress.quiet, duration: plan.duration)
    let notified: (@Sendable (DeviceNotification) -> Void)? = if let received { { received.add($0) } } else { nil }
    var result = try await runner.run({ status.show($0) }, notified: notified)
    status.end()
    result.environment = Apnscope.environment(CommandLine.arguments)
    result.labels = command.result.labels
    result.plan = settings.values
    let isComplete = received?.end() ?? true
    let document = try result.jsonDocument()
    file?.write(document)
    if command.result.shown == .json {
      output.say(document)
    } else {
      output.show(FleetSummary(result).text, command.result.display.colour)
    }
    await metrics?.stop()
    try output.check()
    try file?.check()
    if !isComplete { throw ExitStatus.inputOutput }
    if let status = Self.status(of: result) {
      for invariant in result.invariants where !invariant.holds {
        complain("does not hold: \(invariant.name) (\(invariant.detail))")
      }
      if status == ExitStatus.protocolError {
        complain("the gateway made errors: \(listed(result.faults))")
      }
      if status == ExitStatus.unavailable {
        complain("\(plan.gateway.host):\(plan.gateway.port): \(result.warnings.first ?? "")")
      }
      throw status
    }
  }

  /// The exit status, the most important first; `nil` for success.
  static func status(of result: FleetResult) -> ExitCode? {
    if result.invariants.contains(where: { !$0.holds }) { return ExitStatus.brokenBooks }
    if !result.faults.isEmpty { return ExitStatus.protocolError }
    if result.interrupted { return ExitStatus.interrupted }
    return result.devices.everOnline == 0 ? ExitStatus.unavailable : nil
  }

  private func requireDescriptors(_ plan: FleetPlan) throws {
    let endpoints = command.result.metrics == nil ? 0 : 1
    let most = Descriptors.connections(threads: plan.threads, endpoints: endpoints)
    guard most < plan.devices else { return }
    guard most > 0 else {
      complain(Descriptors.problem)
      throw ExitStatus.unavailable
    }
    complain(
      "\(grouped(plan.devices)) devices need as many connections, and this process may open \(grouped(Descriptors.limit)) files at a time (ulimit -n): at most \(grouped(most)) devices; --segment divides a fleet among processes"
    )
    throw ExitStatus.unavailable
  }

  private func make(_ plan: FleetPlan) throws -> FleetRunner {
    let tls = try command.target.context()
    do {
      return try FleetRunner(plan, tls: tls)
    } catch {
      throw ValidationError("\(error).")
    }
  }

  private func startMetrics(_ runner: FleetRunner) async throws -> MetricsEndpoint? {
    guard let address = command.result.metrics?.address else { return nil }
    do {
      let endpoint = try await MetricsEndpoint.start(
        host: address.host, port: address.port, group: MultiThreadedEventLoopGroup.singleton
      ) { runner.snapshot().metrics }
      complain("metrics at http://\(endpoint.address)/metrics")
      return endpoint
    } catch {
      complain("metrics: \(error)")
      throw ExitStatus.unavailable
    }
  }
}

/// The lines of `--received`.
final class ReceivedFile: Sendable {
  private let path: String
  private let hasPayloads: Bool
  private let lines: LineLog

  /// Empties the file, or makes it. Complains and throws an exit code when it cannot be opened.
  ///
  /// - Parameter limit: the most bytes of lines that wait to be written.
  init(_ path: String, hasPayloads: Bool, limit: Int) throws {
    (self.path, self.hasPayloads) = (path, hasPayloads)
    // Of an earlier run; a pipe, or what is not there, has no length.
    _ = unsafe truncate(path, 0)
    do {
      lines = try LineLog.open(path: path, limit: limit) { _ in [] }
    } catch {
      complain("\(path): \(SystemError.text(error.code))")
      throw ExitStatus.inputOutput
    }
  }

  func add(_ notification: DeviceNotification) {
    var output = ByteWriter(capacity: 512)
    notification.writeLine(to: &output, hasPayload: hasPayloads)
    lines.add(output.bytes)
  }

  /// Waits until the lines are written; complains and returns `false` when not all could be.
  func end() -> Bool {
    lines.end()
    if let failure = lines.failure { complain(failure) }
    if lines.dropped > 0 {
      complain("\(path): \(grouped(lines.dropped)) notifications could not be written; raise --max-unwritten")
    }
    return lines.failure == nil && lines.dropped == 0
  }
}

/// The progress of a fleet on a terminal, a line a second.
final class FleetStatus: Sendable {
  private let isShown: Bool
  private let duration: Duration?
  private let hasLine = Mutex(false)

  init(isQuiet: Bool, duration: Duration?) {
    isShown = !isQuiet && StandardError.isTerminal
    self.duration = duration
  }

  func show(_ progress: FleetRunner.Progress) {
    guard isShown else { return }
    func whole(_ value: Double) -> String { grouped(Int(nearest: value.rounded())) }
    var line = StatusLine()
    let all = duration.map { " of \(whole($0 / .seconds(1))) s" } ?? " s"
    line.add("\(whole(progress.elapsed))\(all)", rank: 0)
    line.add("online \(grouped(progress.online)) of \(grouped(progress.devices))", rank: 1)
    line.add("received \(whole(progress.receivedPerSecond))/s (\(grouped(progress.received)))", rank: 2)
    line.add("connecting \(grouped(progress.connecting)) (+\(whole(progress.openedPerSecond))/s)", rank: 3)
    line.add("failed \(grouped(progress.failed))", rank: 4)
    if progress.duplicates > 0 { line.add("duplicates \(grouped(progress.duplicates))", rank: 1) }
    hasLine.withLock {
      ProgressLine.show(line)
      $0 = true
    }
  }

  func end() {
    hasLine.withLock {
      if $0 { ProgressLine.remove() }
      $0 = false
    }
  }
}
