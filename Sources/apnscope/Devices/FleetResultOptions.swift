import ArgumentParser
import CommandFiles

/// The outputs of a fleet.
struct FleetResultOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the result to this file, as one JSON document; with - to standard output instead of the summary.",
      valueName: "file"), completion: .file())
  var output: String?

  @Option(help: "Format of standard output: text (a summary) or json (the result).")
  var format = ResultOptions.Format.text

  @Option(
    help: ArgumentHelp(
      "Write each notification that is received to this file, as one JSON object a line; see 'apnscope schema received'. Not with --local-push.",
      valueName: "file"), completion: .file(extensions: ["jsonl"]))
  var received: String?

  @Flag(help: "Payloads in --received, in Base64, instead of their SHA-256.")
  var payloads = false

  @Option(
    help: ArgumentHelp(
      "Memory for lines of --received that wait to be written; further ones are counted as lost. Default: 64MiB.",
      valueName: "bytes"), transform: ByteCount.parse)
  var maxUnwritten: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Maximum number of samples over time in the result; when there are more, each is of twice the time.",
      valueName: "count", default: Count(10_000)), transform: Count.parse)
  var timeline = Count(10_000)

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Give the result this label, as branch=main. Takes several arguments; repeatable.", valueName: "name=value"),
    transform: LabelArgument.parse)
  var label: [LabelArgument] = []

  @Option(
    help: ArgumentHelp(
      "Serve the counts to Prometheus at http://HOST:PORT/metrics during the run; port 0 picks a free one.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var metrics: ListeningAddress?

  @OptionGroup var display: DisplayOptions

  /// The file of the result; `nil`: standard output.
  var file: String? { OutputFile.file(output) }
  /// The format of standard output.
  var shown: ResultOptions.Format { output == OutputFile.standardOutput ? .json : format }
  /// The labels by name; `nil` without any.
  var labels: [String: String]? {
    let labels = label.map { ($0.label.name, $0.label.value) }
    return labels.isEmpty ? nil : Dictionary(labels) { first, _ in first }
  }

  func validate() throws {
    guard (1...10_000_000).contains(timeline.value) else {
      throw ValidationError("--timeline must be 1 to 10M (got \(timeline.value)).")
    }
    if received == nil {
      if payloads { throw ValidationError("--payloads needs --received.") }
      if maxUnwritten != nil { throw ValidationError("--max-unwritten needs --received.") }
    }
    guard label.count <= 16, Set(label.map(\.label.name)).count == label.count else {
      throw ValidationError("--label takes up to 16 different names.")
    }
  }
}
