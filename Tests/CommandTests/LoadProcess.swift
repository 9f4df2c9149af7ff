import Foundation
import Measurement
import Testing

/// `apnscope load`, running against a simulator.
enum LoadProcess {
  /// No timeout of a load ends before what it waits for, however busy the machine is.
  static let patience = [
    "--connect-timeout", "5m", "--handshake-timeout", "5m", "--marker-timeout", "5m", "--drain", "5m", "--give-up",
    "5m",
  ]

  /// Starts it with TLS, unless it is to be `--plain`; its result goes to `run.json`.
  static func start(
    _ simulator: SimulatorProcess, _ arguments: [String], output: String = "run.json", in command: Command
  ) throws -> RunningProcess {
    try RunningProcess(
      Command.path,
      ["load", "--gateway", "127.0.0.1:\(simulator.gateway)", "--output", output]
        + (arguments.contains("--plain") ? [] : ["--identity", "ids"]) + patience + arguments, in: command.folder)
  }

  static func result(_ name: String = "run.json", in command: Command) throws -> RunResult {
    try expectValid(file: name, .result, in: command)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(RunResult.self, from: Data(contentsOf: command.folder.appending(path: name)))
  }
}
