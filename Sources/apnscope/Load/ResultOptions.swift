import ArgumentParser
import CommandFiles
import Measurement

struct ThresholdArgument {
  var threshold: Threshold

  /// For `@Option(transform:)`, which reports the error: a condition on what has ended already, or is many runs.
  @Sendable static func parseFinal(_ text: String) throws -> ThresholdArgument {
    let argument = try parse(text)
    guard !argument.threshold.aborts else {
      throw ValidationError("'\(text)': ',abort' is for 'apnscope load', which it ends.")
    }
    return argument
  }

  /// For `@Option(transform:)`, which reports the error.
  @Sendable static func parse(_ text: String) throws -> ThresholdArgument {
    do {
      return ThresholdArgument(threshold: try Threshold(text))
    } catch {
      throw ValidationError(error.description)
    }
  }
}

struct LabelArgument {
  var label: RunLabel

  /// For `@Option(transform:)`, which reports the error.
  @Sendable static func parse(_ text: String) throws -> LabelArgument {
    do {
      return LabelArgument(label: try RunLabel(text))
    } catch {
      throw ValidationError("\(error.description).")
    }
  }
}

struct ResultOptions: ParsableArguments {
  enum Format: String, CaseIterable, ExpressibleByArgument { case text, json }

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the result to this file, as one JSON document; with - to standard output instead of the summary.",
      valueName: "file"), completion: .file())
  var output: String?

  @Option(help: "Format of standard output: text (a summary) or json (the result).")
  var format = Format.text

  @OptionGroup var screen: ScreenOption
  @OptionGroup var display: DisplayOptions

  @Option(
    help: ArgumentHelp(
      "Append the result to this history, an SQLite file; see 'apnscope history --help'.", valueName: "file"),
    completion: .file(extensions: ["sqlite"]))
  var history: String?

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Give the result this label, as branch=main, for 'history', 'compare' and metrics. Takes several arguments; repeatable.",
      valueName: "name=value"), transform: LabelArgument.parse)
  var label: [LabelArgument] = []

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Exit with 99 unless this holds, e.g. 'send_lag_p99<5ms', 'rejected_rate<0.1%' or 'accepted_per_s>100k'; an unknown name lists all metrics; times need a unit. With ',abort' behind it, judged every second from 2 s on, it ends the run when it does not hold. Takes several arguments; repeatable. With --segment, 'apnscope merge' evaluates it.",
      valueName: "condition"), completion: .words { Array(Threshold.names.keys) }, transform: ThresholdArgument.parse)
  var threshold: [ThresholdArgument] = []

  @Option(
    help: ArgumentHelp(
      "Write the books and the outcome of each --threshold to this file, as JUnit XML.", valueName: "file"),
    completion: .file(extensions: ["xml"]))
  var junit: String?

  @Option(
    help: ArgumentHelp(
      "Maximum number of connection spans (handshake, up, back-off) in the result; further ones are counted.",
      valueName: "count", default: Count(10_000)), transform: Count.parse)
  var timeline = Count(10_000)

  @Option(
    help: ArgumentHelp(
      "Serve the counts to Prometheus at http://HOST:PORT/metrics during the run; port 0 picks a free one.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var metrics: ListeningAddress?

  @Option(
    help: ArgumentHelp(
      "With --metrics: keep serving for this time after the end, so that the last counts are read too.",
      valueName: "time"), transform: TimeSpan.parse)
  var metricsLinger: TimeSpan?

  /// The labels by name, with the node's or pod's unless the user gives it; `nil` without any.
  var labels: [String: String]? {
    let places = EnginePlace.labels(in: EngineSegment.variable)
    let labels = (label.map(\.label) + places).map { ($0.name, $0.value) }
    return labels.isEmpty ? nil : Dictionary(labels) { first, _ in first }
  }
  /// The file of the result; `nil`: standard output.
  var file: String? { OutputFile.file(output) }
  /// The format of standard output.
  var shown: Format { output == OutputFile.standardOutput ? .json : format }

  func validate() throws {
    guard timeline.value <= 10_000_000 else {
      throw ValidationError("--timeline must be at most 10M (got \(timeline.value)).")
    }
    if metricsLinger != nil, metrics == nil { throw ValidationError("--metrics-linger needs --metrics.") }
    guard label.count <= RunLabel.most else {
      throw ValidationError("--label can be given \(RunLabel.most) times (got \(label.count)).")
    }
    if let name = Dictionary(grouping: label, by: \.label.name).filter({ $0.value.count > 1 }).keys.min() {
      throw ValidationError("--label \(name)=… is given more than once.")
    }
  }
}
