import ArgumentParser
import LoadTest
import Measurement

/// Whole numbers as typed: 1,2,4,8; or none.
struct CountList: Quantity {
  static let notation = "distinct whole numbers from 1 to 100k, e.g. 1,2,4,8; or none"

  var values: [Int]

  init(_ values: [Int]) { self.values = values }

  init?(argument: String) {
    guard argument != "none" else {
      values = []
      return
    }
    values = []
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      guard let value = Count(argument: String(part))?.value, (1...100_000).contains(value), !values.contains(value)
      else { return nil }
      values.append(value)
    }
  }

  var defaultValueDescription: String { values.map { "\($0)" }.joined(separator: ",") }
}

/// Shares as typed: 1e-4,0.1%; or none.
struct ShareList: Quantity {
  static let notation = "shares up to 50%, e.g. 1e-3,0.03%; or none"

  var values: [Double]

  init(_ values: [Double]) { self.values = values }

  init?(argument: String) {
    guard argument != "none" else {
      values = []
      return
    }
    values = []
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      guard let share = Share(argument: String(part))?.value, share > 0, share <= 0.5 else { return nil }
      values.append(share)
    }
  }

  var defaultValueDescription: String { values.map { "\($0)" }.joined(separator: ",") }
}

/// The parameters of the search.
struct TrialOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Maximum distance between the rate found and one that fails.", valueName: "share", default: Share(0.03)),
    transform: Share.parse)
  var precision = Share(0.03)

  @Option(
    help: ArgumentHelp("Length of a trial's measured phase.", valueName: "time", default: TimeSpan(.seconds(10))),
    transform: TimeSpan.parse)
  var trial = TimeSpan(.seconds(10))

  @Option(
    help: ArgumentHelp(
      "Length of the trials that confirm the rate, and the failure one step above.", valueName: "time",
      default: TimeSpan(.seconds(30))), transform: TimeSpan.parse)
  var confirm = TimeSpan(.seconds(30))

  @Option(
    help: ArgumentHelp(
      "Unmeasured time before each measured phase.", valueName: "time", default: TimeSpan(.seconds(2))),
    transform: TimeSpan.parse)
  var settle = TimeSpan(.seconds(2))

  @Option(
    help: ArgumentHelp(
      "Make each trial with this command of the shell, as 'srun …', instead of from this process; see above.",
      valueName: "command"))
  var trialCommand: String?

  @Option(
    help: ArgumentHelp(
      "With --trial-command: the longest time of a trial, queueing included.", valueName: "time",
      default: TimeSpan(.seconds(1_800))), transform: TimeSpan.parse)
  var trialTimeout = TimeSpan(.seconds(1_800))

  @Option(
    help: ArgumentHelp("Maximum number of trials of the search.", valueName: "count", default: Count(40)),
    transform: Count.parse)
  var maxTrials = Count(40)

  @Option(
    help: ArgumentHelp(
      "Numbers of connections for trials as fast as possible, e.g. 1,2,4,8; or none.", valueName: "counts",
      default: CountList([1, 2, 4, 8])), transform: CountList.parse)
  var connectionsSweep = CountList([1, 2, 4, 8])

  @Option(
    help: ArgumentHelp(
      "Notifications per write for trials as fast as possible, e.g. 1,4,16,64; or none.", valueName: "counts",
      default: CountList([1, 4, 16, 64])), transform: CountList.parse)
  var batchSweep = CountList([1, 4, 16, 64])

  @Option(
    help: ArgumentHelp(
      "Shares of intentionally bad notifications (missing-token) to measure the cost of an error, e.g. 1e-3,3e-4; or none. The first fits the goodput law, the last checks it.",
      valueName: "shares", default: ShareList([1e-3, 3e-4])), transform: ShareList.parse)
  var errorSweep = ShareList([1e-3, 3e-4])

  @Option(
    help: ArgumentHelp(
      "Time limit for the end of a trial: last answers, and the resends they cause.", valueName: "time",
      default: TimeSpan(.seconds(10))),
    transform: TimeSpan.parse)
  var drain = TimeSpan(.seconds(10))
}

/// The limits that a trial must keep to pass.
struct PassOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Highest send lag (99th percentile).", valueName: "time", default: TimeSpan(.milliseconds(50))),
    transform: TimeSpan.parse)
  var lagLimit = TimeSpan(.milliseconds(50))

  @Option(
    help: ArgumentHelp("Largest share of notifications that may be refused.", valueName: "share", default: Share(0.01)),
    transform: Share.parse)
  var errorLimit = Share(0.01)

  @Option(
    help: ArgumentHelp("Largest share of sendings that may be resends.", valueName: "share", default: Share(0.1)),
    transform: Share.parse)
  var resentLimit = Share(0.1)

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Another condition on every trial, e.g. 'loss_window_p99<500'; see 'apnscope load --help'. Takes several arguments; repeatable.",
      valueName: "condition"), completion: .words { Array(Threshold.names.keys) },
    transform: ThresholdArgument.parseFinal)
  var threshold: [ThresholdArgument] = []
}

extension Share {
  init(_ value: Double) { self.value = value }

  var defaultValueDescription: String {
    let percent = (value * 1e6).rounded() / 1e4
    return percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%"
  }
}
