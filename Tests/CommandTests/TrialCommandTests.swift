import Foundation
import LoadTest
import Measurement
import Reporting
import TestSupport
import Testing

@testable import apnscope

/// `apnscope capacity --trial-command`: trials that others make.
@Suite("capacity: trials by a command", .waiting)
struct TrialCommandTests {
  private func document(_ command: Command) throws -> CapacityDocument {
    try expectValid(file: "out/capacity.json", .capacity, in: command)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(
      CapacityDocument.self, from: Data(contentsOf: command.folder.appending(path: "out/capacity.json")))
  }

  /// A search of few and short trials, each made by a script.
  private func start(_ script: String, _ arguments: [String] = [], in command: Command) throws -> RunningProcess {
    try Data("#!/bin/sh\n\(script)\n".utf8).write(to: command.folder.appending(path: "trial.sh"))
    return try RunningProcess(
      Command.path,
      [
        "capacity", "--trial-command", "sh ./trial.sh", "--output", "out", "--trial", "500ms", "--settle", "100ms",
        "--confirm", "500ms", "--lag-limit", "10m", "--max-trials", "2", "--connections", "4", "--payload", "100",
        "--connections-sweep", "none", "--batch-sweep", "8", "--error-sweep", "1e-2",
      ] + arguments, in: command.folder)
  }

  @Test("Two segments and a merge make each trial, with the plan of the whole that the search gave")
  func gang() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--read-rate", "100KB", "--no-feedback"], in: command)
      let patience = LoadProcess.patience.joined(separator: " ")
      let outcome = try start(
        """
        dir=out/trials/parts-$APNSCOPE_TRIAL_NUMBER; mkdir -p $dir
        env | grep '^APNSCOPE_TRIAL_' | sort > out/trials/environment-$APNSCOPE_TRIAL_NUMBER
        for rank in 0 1; do
          SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 '\(Command.path)' load \
            --plan "$APNSCOPE_TRIAL_PLAN" --segment auto --identity ids --gateway 127.0.0.1:\(simulator.gateway) \
            --quiet \(patience) --output $dir/$rank.json > /dev/null &
        done
        wait
        '\(Command.path)' merge $dir --allow-missing --output "$APNSCOPE_TRIAL_OUTPUT" > /dev/null
        """, in: command
      ).end()
      let ledger = try simulator.stop()
      // With so much patience every rate passes, unless the two did not run together.
      #expect([0, 99].contains(outcome.status), "\(outcome.errors)")
      let document = try document(command)
      #expect(document.settings.trialCommand == "sh ./trial.sh")
      let trials = document.trials
      #expect(trials.count >= 3 && trials.map(\.connections).allSatisfy { $0 == 4 })
      #expect(trials.map(\.sendings.accepted).reduce(0, +) == ledger.gateway.accepted)
      for trial in trials {
        #expect(trial.waitedShare == nil && trial.opening == nil && trial.limitedBy != nil)
        let environment = try command.read("out/trials/environment-\(trial.number)")
        let rate = trial.offeredPerS.map { "\($0)" } ?? ""
        for line in [
          "APNSCOPE_TRIAL_CONNECTIONS=4", "APNSCOPE_TRIAL_FOR=500ms", "APNSCOPE_TRIAL_RATE=\(rate)",
          "APNSCOPE_TRIAL_WARM_UP=100ms", "APNSCOPE_TRIAL_BATCH=\(trial.batch.map { "\($0)" } ?? "")",
          "APNSCOPE_TRIAL_NUMBER=\(trial.number)",
          "APNSCOPE_TRIAL_FAULTS=\(trial.faultShare > 0 ? "missing-token=0.01" : "")",
        ] { #expect(environment.split(separator: "\n").contains(Substring(line)), "\(line) in \(environment)") }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let result = try decoder.decode(
          RunResult.self,
          from: Data(contentsOf: command.folder.appending(path: "out/trials/trial-\(trial.number).json")))
        #expect(result.parts?.map(\.segment) == ["1/2", "2/2"] && result.connections.asked == 4)
        #expect(result.notifications == trial.notifications)
      }
      #expect(trials.contains { $0.batch == 8 } && trials.contains { $0.faultShare > 0 && $0.errors > 0 })
    }
  }

  @Test(
    "A command that fails, leaves nothing, or leaves something else ends the search with a sentence",
    arguments: [
      ("exit 3", "ended with status 3"), ("exit 0", "left no result"), ("nosuchprogram", "ended with status 127"),
      ("echo '{}' > $APNSCOPE_TRIAL_OUTPUT", "not a result"), ("echo nonsense > $APNSCOPE_TRIAL_OUTPUT", "JSON"),
    ])
  func failures(script: String, words: String) throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try start(script, in: command).end()
      #expect(outcome.status == 69 && outcome.errors.contains("trial 1: "), "\(outcome.errors)")
      #expect(outcome.errors.contains(words), "\(outcome.errors)")
    }
  }

  @Test("A trial that takes too long is ended, with all that it has started")
  func timeout() throws {
    try SimulatorProcess.inFolder { command in
      // The start of the shell counts, which may take longer than a short time.
      for seconds in [1, 10, 60] where !hasStarted(command) {
        _ = try command.shell("rm -rf out pid")
        let outcome = try start(
          "sleep 600 & echo $! > pid; wait", ["--trial-timeout", "\(seconds)s"], in: command
        ).end()
        #expect(outcome.status == 69 && outcome.errors.contains("longer than --trial-timeout"), "\(outcome.errors)")
      }
      try expectEnded(command)
    }
  }

  @Test("An interrupt ends the process group of the running trial", arguments: [SIGINT, SIGTERM])
  func interrupt(signal: Int32) throws {
    try SimulatorProcess.inFolder { command in
      let search = try start("sleep 600 & echo $! > pid; wait", in: command)
      #expect(waitUntil { hasStarted(command) || !search.isRunning })
      search.send(signal)
      let outcome = try search.end()
      #expect(outcome.status == 130, "\(outcome.errors)")
      try expectEnded(command)
    }
  }

  /// The script has started its process, and has said which one that is.
  private func hasStarted(_ command: Command) -> Bool { (try? command.read("pid").hasSuffix("\n")) == true }

  /// The process that the script has started is gone.
  private func expectEnded(_ command: Command) throws {
    let text = try command.read("pid").trimmingCharacters(in: .whitespacesAndNewlines)
    let process = try #require(pid_t(text))
    let isGone = waitUntil {
      // A zombie, which nobody has waited for, has ended as well.
      let stat = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
      return kill(process, 0) != 0 || stat.contains(") Z ")
    }
    #expect(isGone)
  }

  @Test("A result is that of its trial only if it says so")
  func mismatches() {
    var plan = LoadPlan()
    (plan.connections.count, plan.duration) = (4, .seconds(10))
    plan.pace = .scheduled(.constant(1_000), isPoisson: false)
    var result = RunResult()
    result.plan["rate"] = .text("1000.0/s")
    result.connections.asked = 4
    var measured = RunResult.Phase()
    (measured.name, measured.seconds) = (.measured, 10.01)
    result.phases = [measured]
    #expect(TrialCommand.mismatch(result, plan) == nil)
    func mismatch(_ change: (inout RunResult) -> Void) -> String? {
      var other = result
      change(&other)
      return TrialCommand.mismatch(other, plan)
    }
    #expect(mismatch { $0.plan["rate"] = .text("500.0/s") }?.contains("500.0/s, and 1000.0/s") == true)
    #expect(mismatch { $0.plan["rate"] = nil }?.contains("with no rate") == true)
    #expect(mismatch { $0.connections.asked = 2 }?.contains("2 connections") == true)
    #expect(mismatch { $0.phases[0].seconds = 5 }?.contains("measured 5.0 s") == true)
    #expect(mismatch { $0.interrupted = .init(phase: .measured, afterS: 1) }?.contains("was ended") == true)
    #expect(
      mismatch {
        $0.verdict.invariants = [.init("every segment is there, once", holds: false, detail: "2/2 is missing")]
      }?
      .contains("2/2 is missing") == true)
    // Of a gateway that was too slow, fates may be unknown: that is what the search judges.
    plan.pace = .unlimited
    #expect(TrialCommand.mismatch(result, plan)?.contains("no rate was asked for") == true)
  }
}
