import ArgumentParser

/// The log of a load, which is written while it runs.
struct LogOptions: ParsableArguments {
  static let usualRate = 1_000
  static let usualSize = 256 << 20

  @Option(
    help: ArgumentHelp(
      "Append what happens to this file while the load runs, as one JSON object a line: connections, errors, stages, stalls, thresholds; see 'apnscope schema load-log'.",
      valueName: "file"), completion: .file(extensions: ["jsonl"]))
  var log: String?

  @Option(
    help: ArgumentHelp(
      "Maximum number of lines a second in --log about connections, errors and stalls; further ones are counted. Default: 1k.",
      valueName: "count"), transform: Count.parse)
  var logRate: Count?

  @Option(
    help: ArgumentHelp(
      "Maximum size of what one run adds to --log; further lines are counted. Default: 256MiB.", valueName: "bytes"),
    transform: ByteCount.parse)
  var logSize: ByteCount?

  func validate() throws {
    if let logRate, !(1...1_000_000).contains(logRate.value) {
      throw ValidationError("--log-rate must be 1 to 1M (got \(logRate.value)).")
    }
    if let logSize, logSize.bytes < 1 << 12 {
      throw ValidationError("--log-size must be at least 4KiB (got \(logSize.bytes)).")
    }
  }

  /// Requirements of options that a plan file may meet instead of the command line.
  func requireLog() throws {
    guard log == nil else { return }
    if logRate != nil { throw ValidationError("--log-rate needs --log.") }
    if logSize != nil { throw ValidationError("--log-size needs --log.") }
  }

  /// `nil` without a log. Complains and throws an exit code when the file cannot be opened.
  func open() throws -> LoadLog? {
    try log.map {
      try LoadLog(path: $0, rate: logRate?.value ?? Self.usualRate, size: logSize?.bytes ?? Self.usualSize)
    }
  }
}
