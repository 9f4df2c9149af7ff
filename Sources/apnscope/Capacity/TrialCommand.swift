import Bytes
import CommandFiles
import Glibc
import LoadTest
import Measurement
import Reporting

/// Makes the trials of a search by a command, which starts the load wherever it likes, and leaves its result.
struct TrialCommand: Sendable {
  /// Why a trial of the command is none, as a sentence without a full stop.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The variables that tell the command what to run.
  static let variables = [
    ("NUMBER", "the trial's number, from 1"), ("PLAN", "a plan file of the trial, for load --plan"),
    ("OUTPUT", "where to leave the result, merged if there are several"),
    ("RATE", "notifications per second; empty: as fast as possible"), ("CONNECTIONS", "connections of all together"),
    ("FOR", "the measured phase, e.g. 10s"), ("WARM_UP", "the time before it"),
    ("BATCH", "notifications of a write; empty: any"), ("FAULTS", "faults as for load --faults; empty: none"),
  ]
  static let prefix = "APNSCOPE_TRIAL_"

  /// Statuses with which 'load' and 'merge' end and have written a result. Whether it is one is seen by itself.
  private static let statusesOfResults: Set<Int32> = [0, 69, 70, 99]
  /// The time that a trial which is ended has for its own end.
  private static let grace = Duration.seconds(10)

  /// For the shell.
  let command: String
  /// For plans and results.
  let folder: String
  /// The longest time that a trial may take.
  let timeout: Duration
  let stop: LoadStop
  /// The plan file of a trial.
  let plan: @Sendable (LoadPlan) throws -> String

  /// Runs the command, and reads the result that it has left.
  ///
  /// - Throws: a `Failure`; `CapacityRunner.Interruption` when the search was stopped meanwhile.
  func run(_ load: LoadPlan, number: Int) async throws -> RunResult {
    let output = Paths.path(of: "trial-\(number).json", in: folder)
    let planFile = Paths.path(of: "trial-\(number).toml", in: folder)
    // No result of an earlier search is taken for this trial's.
    _ = unsafe unlink(output)
    let file = try WholeDocument(planFile)
    file.write(try plan(load))
    try file.check()
    let status = try await runCommand(values(load, number: number, output: output, plan: planFile))
    if stop.isRequested { throw CapacityRunner.Interruption() }
    guard Self.statusesOfResults.contains(status) else {
      throw Failure(description: "trial \(number): '\(command)' ended with status \(status)")
    }
    guard Paths.exists(output) else {
      throw Failure(
        description: "trial \(number): '\(command)' ended with status \(status) and left no result in \(output)")
    }
    let result: RunResult
    do {
      result = try ResultDocument.read(output)
    } catch {
      throw Failure(description: "trial \(number): \(output): \(error.text)")
    }
    if let reason = Self.mismatch(result, load) { throw Failure(description: "trial \(number): \(output): \(reason)") }
    return result
  }

  private func values(_ load: LoadPlan, number: Int, output: String, plan: String) -> [String] {
    func time(_ time: Duration) -> String { TimeSpan(time).defaultValueDescription }
    let faults = load.workload.faults.sorted { $0.key.rawValue < $1.key.rawValue }
      .map { "\($0.key.rawValue)=\($0.value)" }.joined(separator: ",")
    let batch = load.batching.notifications
    let values = [
      "\(number)", plan, output, Self.rate(load).map { "\($0)" } ?? "", "\(load.connections.count)",
      time(load.duration), time(load.warmUp), batch == .max ? "" : "\(batch)", faults,
    ]
    return zip(Self.variables, values).map { "\(Self.prefix)\($0.0)=\($1)" }
  }

  static func rate(_ load: LoadPlan) -> Double? {
    guard case .scheduled(let schedule, _) = load.pace else { return nil }
    return schedule.rate(at: 0)
  }

  /// Why a result is not that of this trial; `nil` if it is.
  static func mismatch(_ result: RunResult, _ load: LoadPlan) -> String? {
    if let broken = result.verdict.invariants.first(where: { !$0.holds && !$0.isAboutProof }) {
      return "does not hold: \(broken.name) (\(broken.detail))"
    }
    if let interrupted = result.interrupted {
      return "the run was ended in the phase '\(interrupted.phase.rawValue)'"
    }
    var planned: Double?
    if case .text(let text)? = result.plan["rate"], text.hasSuffix("/s") { planned = Double(text.dropLast(2)) }
    switch (rate(load), planned) {
    case (nil, nil): break
    case (let asked?, let planned?) where abs(planned - asked) <= 1e-3 * asked: break
    case (let asked, let planned):
      func text(_ rate: Double?) -> String { rate.map { "\($0)/s" } ?? "no rate" }
      return "is of a load with \(text(planned)), and \(text(asked)) was asked for"
    }
    if let asked = result.connections.asked, asked != load.connections.count {
      return "is of \(asked) connections, and \(load.connections.count) were asked for"
    }
    let measured = result.phase(.measured)?.seconds ?? 0
    let length = load.duration / .seconds(1)
    guard result.verdict.outcome == .failed || abs(measured - length) <= max(0.5, 0.05 * length) else {
      return "measured \((measured * 10).rounded() / 10) s, and \((length * 10).rounded() / 10) s were asked for"
    }
    return nil
  }

  // MARK: the process

  /// Runs the command in a process group of its own, and returns its status. A stop ends the group.
  private func runCommand(_ variables: [String]) async throws -> Int32 {
    let arguments = ["env"] + variables + ["/bin/sh", "-c", command]
    // Standard output is for the search's result.
    let (process, code) = ChildProgram.spawn(
      arguments, output: STDERR_FILENO, errors: STDERR_FILENO, endingSignals: [SIGINT, SIGTERM, SIGHUP])
    guard code == 0 else { throw Failure(description: "'\(command)' cannot be started: \(SystemError.text(code))") }
    let end = ContinuousClock.now + timeout
    while true {
      if let status = ChildProgram.wait(for: process, atMost: .zero) { return status }
      if stop.isRequested {
        await endGroup(process)
        throw CapacityRunner.Interruption()
      }
      if ContinuousClock.now >= end {
        await endGroup(process)
        throw Failure(description: "'\(command)' took longer than --trial-timeout")
      }
      try? await Task.sleep(for: .milliseconds(20))
    }
  }

  /// Asks all processes of the group to end, as 'load' does with its books, and kills those that do not.
  private func endGroup(_ process: pid_t) async {
    kill(-process, SIGTERM)
    let end = ContinuousClock.now + Self.grace
    var hasEnded = false
    while ContinuousClock.now < end {
      if !hasEnded { hasEnded = ChildProgram.wait(for: process, atMost: .zero) != nil }
      // Others of the group may be there still.
      if hasEnded, kill(-process, 0) != 0 { return }
      try? await Task.sleep(for: .milliseconds(20))
    }
    kill(-process, SIGKILL)
    if !hasEnded { _ = ChildProgram.wait(for: process) }
  }
}
