import Foundation
import Measurement
import TestSupport
import Testing

/// What a load says of each end and fault that `simulate` has: the verdict, the exit status, and the sentence.
@Suite("load: every fault of the gateway", .waiting)
struct LoadFaultTests {
  struct Fault: Sendable, CustomTestStringConvertible {
    /// Options of `simulate`.
    var gateway: [String]
    /// Options of `load`.
    var load: [String]
    var status: Int32
    var outcome: RunResult.Verdict.Outcome
    /// Expressions, each of which matches a reason; with a ! in front, a warning that is no reason.
    var says: [String]

    var testDescription: String { gateway.joined(separator: " ") + " | " + load.joined(separator: " ") }

    /// - Parameter load: ends when all is settled, however long it takes, unless it has a time.
    init(
      _ gateway: String, _ load: String = "--count 300", _ status: Int32 = 0,
      _ outcome: RunResult.Verdict.Outcome = .proven, _ says: String...
    ) {
      let isPlain = !gateway.contains("--wrong-environment") && !gateway.contains("--handshake-failure")
      func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
      self.gateway = words(gateway) + (isPlain ? ["--plain"] : [])
      self.load = words(load) + (isPlain ? ["--plain"] : ["--identity", "ids"])
      (self.status, self.outcome, self.says) = (status, outcome, says)
    }
  }

  // MARK: words

  private static let refused =
    #"!\d+ of \d+ connections were closed by the gateway before anything on them was proven accepted"#
  private static let repeated =
    #"!\d+ sendings of unknown fate were repeated: .* may have been accepted more than once"#

  /// The places of the gateway are taken at the start. As they become free when the load ends, a few connections more
  /// may come up that still have something to send, but not all.
  private static func up(of asked: Int) -> String {
    #"\d+ of \#(asked) connections came up: \d+ of \d+ were closed by the gateway before anything on them was proven accepted"#
  }

  private static let mute =
    #"nothing was proven accepted: \d+ of \d+ connections were closed by the gateway without an answer: does it speak TLS, or send no error responses\?"#

  /// A run that ends by itself, though nothing comes of it. The times are no measure: longer ones say the same.
  private static let brief = "--rate 500/s --for 1s --drain 6s --marker-timeout 6s"

  // MARK: the table

  static let faults: [Fault] = [
    // Nothing is wrong.
    Fault(""),
    Fault("--response-ending response --response-identifier right"),
    // Rejections: the books say which, and nothing is in doubt.
    Fault("--reject every=50"),
    Fault("--reject probability=0.02,status=1"),
    Fault("--reject prefix=00,status=7"),
    Fault(
      "--reject probability=1", "--count 20", 69, .failed, "nothing was accepted: all 20 were rejected"),
    // The form of responses.
    Fault("--reject every=50 --response-delay 20ms"),
    Fault("--reject every=50 --response-pieces 1,2,3 --response-piece-delay 1ms"),
    // An identifier of 0 is that of the marker, as long as nothing else is refused.
    Fault("--response-identifier zero"),
    Fault(
      "--response-identifier wrong", "--count 1 --give-up 1s --drain 3s --max-attempts 3", 69, .failed,
      #"nothing was proven accepted: none of \d+ error responses names a notification that was sent on its connection"#,
      refused, repeated),
    // Without error responses nothing can be proven; the gateway has accepted most of it.
    Fault("--response-ending fin", brief, 69, .failed, mute, repeated),
    Fault("--response-ending rst", brief, 69, .failed, mute, repeated),
    Fault("--response-ending fin --reject every=100", brief, 69, .failed, mute, repeated),
    Fault(
      "--response-ending fin", brief + " --markers off", 0, .unproven,
      #"written, not proven: without markers the fate of \d+ of \d+ notifications is unknown"#),
    // Ends of connections that the gateway has read.
    Fault("--shutdown-after 50"),
    Fault("--lifetime 3s", "--rate 500/s --for 5s"),
    Fault("--shutdown-after 0", brief + " --give-up 1s", 69, .failed, "nothing was proven accepted.*", refused),
    // Slow reading is waited for.
    Fault("--read-rate 200000"),
    Fault("--read-pause-every 20000 --read-pause 50ms"),
    Fault("--receive-buffer 4096"),
    // Connections that are not served: many for each place.
    Fault(
      "--max-connections 3", "--connections 12 --rate 500/s --for 3s --leave-unknown", 69, .failed, up(of: 12), refused
    ),
    Fault(
      "--connection-limit 2", "--connections 12 --rate 500/s --for 3s --leave-unknown", 69, .failed, up(of: 12),
      refused),
    Fault(
      "--reconnect-limit 2 --reconnect-refusal 10m", "--connections 12 --rate 500/s --for 3s --leave-unknown", 69,
      .failed,
      up(of: 12), refused),
    Fault(
      "--max-connection-memory 30000", "--connections 12 --rate 500/s --for 3s --leave-unknown", 69, .failed,
      up(of: 12), refused),
    Fault("--accept-then-close 0.5", "--connections 6 --rate 500/s --for 1s", 0, .proven, refused),
    Fault(
      "--accept-then-close 1", brief, 69, .failed,
      #"nothing was proven accepted: \d+ of \d+ connections were closed right after they were opened: does the gateway take connections from here\?"#,
      refused),
    Fault(
      "--wrong-environment com.example.app", brief, 69, .failed,
      #"nothing was proven accepted: \d+ of \d+ connections were closed right after the handshake: certificate of the other environment, or revoked\?"#,
      refused),
    Fault(
      "--handshake-failure 0.3", "--connections 6 --count 300", 0, .proven,
      #"!\d+ of \d+ attempts to connect failed: .*"#),
    // Devices: the gateway accepts what it cannot deliver.
    Fault("--devices-offline 50% --devices-uninstalled 10%"),
  ]

  @Test("The verdict, the exit status and the sentence are those of the fault", arguments: some(12, of: faults))
  func table(fault: Fault) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(fault.gateway + ["--no-feedback"], in: command)
      let (outcome, result) = try load(fault.load, simulator.gateway, in: command)
      _ = try simulator.stop()
      expect(fault, outcome, result)
    }
  }

  private func load(_ arguments: [String], _ port: Int, in command: Command) throws -> (Outcome, RunResult) {
    var all = ["load", "--gateway", "127.0.0.1:\(port)", "--output", "run.json"] + arguments
    for option in ["--connect-timeout", "--handshake-timeout", "--marker-timeout", "--drain", "--give-up"]
    where !arguments.contains(option) {
      all += [option, "5m"]
    }
    let outcome = try RunningProcess(Command.path, all, in: command.folder).end()
    return (outcome, try LoadProcess.result(in: command))
  }

  private func expect(_ fault: Fault, _ outcome: Outcome, _ result: RunResult) {
    let text = "\(outcome.output)\(outcome.errors)"
    #expect(outcome.status == fault.status, "\(text)")
    #expect(result.verdict.outcome == fault.outcome, "\(text)")
    let reasons = result.verdict.reasons ?? []
    for expression in fault.says {
      let isWarning = expression.hasPrefix("!")
      let among = isWarning ? result.warnings.filter { !reasons.contains($0) } : reasons
      guard let pattern = try? Regex(isWarning ? String(expression.dropFirst()) : expression) else {
        Issue.record("'\(expression)' is no expression")
        continue
      }
      #expect(among.contains { $0.wholeMatch(of: pattern) != nil }, "\(expression): \(reasons) \(result.warnings)")
    }
    // Green is what needs no word about connections and duplicates.
    if fault.says.isEmpty {
      #expect(reasons == [] && result.connections.refused == 0, "\(text)")
      #expect(result.connections.everUp == result.connections.asked)
      for word in ["closed by the gateway", "more than once", "attempts to connect failed"] {
        #expect(!result.warnings.contains { $0.contains(word) }, "\(text)")
      }
    }
    // Reasons that were given and were not the reason.
    if !fault.says.contains(where: { $0.contains("certificate") }) { #expect(!text.contains("certificate"), "\(text)") }
    if (result.connections.opened) > 0 { #expect(!text.contains("no connection could be established"), "\(text)") }
    if result.notifications.unproven > 0 { #expect(!text.contains("nothing was accepted"), "\(text)") }
  }

  // MARK: gateways that stand still, and a disk that is full

  @Test("A gateway that is stopped takes connections in the kernel, and nothing is proven", arguments: [true, false])
  func frozen(fromTheStart: Bool) throws {
    try SimulatorProcess.inFolder { command in
      var ended: Outcome?
      // A gateway that is stopped late has answered the marker before; then there has to be more time.
      for seconds in [1, 10, 60] {
        let simulator = try SimulatorProcess(["--plain", "--no-feedback"], in: command)
        if fromTheStart { simulator.send(SIGSTOP) }
        let load = try RunningProcess(
          Command.path,
          [
            "load", "--plain", "--gateway", "127.0.0.1:\(simulator.gateway)", "--rate", "200/s", "--for",
            "\(seconds)s", "--drain", "1s", "--marker-timeout", "500ms", "--output", "run.json",
          ], in: command.folder)
        if !fromTheStart {
          #expect(waitUntil { (try? simulator.count(of: "accepted")) ?? 0 > 0 || !load.isRunning })
          simulator.send(SIGSTOP)
        }
        ended = try load.end()
        simulator.send(SIGCONT)
        _ = try simulator.stop()
        if try fromTheStart || LoadProcess.result(in: command).notifications.accepted == 0 { break }
      }
      let outcome = try #require(ended)
      #expect(outcome.status == 69, "\(outcome.output)")
      #expect(outcome.output.contains("\n✗ nothing was proven accepted: none of "), "\(outcome.output)")
    }
  }

  /// The list of failures has a file-size limit for a full disk: the gateway closes connections and answers nothing.
  @Test("A gateway whose feedback disk is full is not said to take no connections")
  func fullDisk() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--devices-uninstalled", "100%", "--feedback-list", "list.sqlite"], in: command,
        preparation: ["bash", "-c", #"trap '' XFSZ; ulimit -f 64 && exec "$0" "$@""#])
      let (outcome, result) = try load(
        ["--plain", "--rate", "2k/s", "--for", "3s", "--give-up", "1s", "--drain", "2s"], simulator.gateway, in: command
      )
      simulator.send(SIGKILL)
      _ = try simulator.end()
      let text = "\(outcome.output)\(outcome.errors)"
      #expect(outcome.status == 69 || outcome.status == 70, "\(text)")
      #expect(result.connections.opened > 1 && !text.contains("no connection could be established"), "\(text)")
      #expect((result.connections.refused ?? 0) > 0 && result.verdict.outcome != .proven, "\(text)")
    }
  }
}
