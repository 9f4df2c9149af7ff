import ArgumentParser
import GatewaySimulator
import LoadTest

/// A feedback service and how often it is polled, as typed: localhost, localhost:2196 or localhost:2196,every=1m.
struct PollArgument: Quantity {
  static let notation =
    "HOST or HOST:PORT, and perhaps how often, e.g. localhost:2196,every=10s, with a time of at least 100ms"
  private static let usualPort = 2196
  private static let shortest = Duration.milliseconds(100)

  var address: SimulatorOptions.Address
  var every = TimeSpan(LoadPlan.Feedback().interval)

  var defaultValueDescription: String { "\(address),every=\(every.defaultValueDescription)" }

  init?(argument: String) {
    let parts = argument.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let host = parts.first, let gateway = GatewayArgument(argument: host, usualPort: Self.usualPort) else {
      return nil
    }
    address = gateway.address
    guard parts.count == 2 else { return }
    let pair = parts[1].split(separator: "=", maxSplits: 1).map(String.init)
    guard pair.count == 2, pair[0] == "every", let every = TimeSpan(argument: pair[1]), every.duration >= Self.shortest
    else { return nil }
    self.every = every
  }
}

struct FeedbackOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Poll the feedback service while the load runs, e.g. localhost:2196,every=1m, with the same TLS or --plain, and leave out notifications to tokens that it lists. Default port: 2196; default time: 10s.",
      valueName: "host:port[,every=time]"), transform: PollArgument.parse)
  var pollFeedback: PollArgument?

  @Flag(help: "Poll and count, but send to listed tokens as well, for comparison.")
  var noPrune = false

  @Option(
    help: ArgumentHelp(
      "Tokens of --poll-feedback to remember, in up to 64 bytes each; tuples with further ones are counted, and their tokens sent to.",
      valueName: "count", default: Count(LoadPlan.Feedback().maximumTokens)), transform: Count.parse)
  var maxPruned = Count(LoadPlan.Feedback().maximumTokens)

  @Option(
    help: ArgumentHelp(
      "Time limit of a poll, which is cut off and counts for nothing then.", valueName: "time",
      default: TimeSpan(LoadPlan.Feedback().timeout)), transform: TimeSpan.parse)
  var pollTimeout = TimeSpan(LoadPlan.Feedback().timeout)

  @Option(
    help: ArgumentHelp(
      "Tuples that a poll may bring; one with more is cut off and counts for nothing.", valueName: "count",
      default: Count(LoadPlan.Feedback().maximumTuples)), transform: Count.parse)
  var maxTuples = Count(LoadPlan.Feedback().maximumTuples)

  /// The names of the options, in the order of their declaration.
  static let names = ["poll-feedback", "no-prune", "max-pruned", "poll-timeout", "max-tuples"]

  func validate() throws {
    guard pollTimeout.duration > .zero else { throw ValidationError("--poll-timeout must be more than 0s.") }
    for (name, count) in [("max-pruned", maxPruned), ("max-tuples", maxTuples)] where count.value < 1 {
      throw ValidationError("--\(name) must be at least 1 (got 0).")
    }
    guard maxPruned.value <= Self.mostTokens else {
      throw ValidationError("--max-pruned must be at most 100M (got \(maxPruned.value)).")
    }
  }

  private static let mostTokens = 100_000_000

  func requirePolls() throws {
    if pollFeedback == nil, noPrune { throw ValidationError("--no-prune needs --poll-feedback.") }
  }

  func apply(to plan: inout LoadPlan, _ target: TargetOptions) throws {
    guard let poll = pollFeedback else { return }
    var feedback = LoadPlan.Feedback()
    (feedback.service.host, feedback.service.port) = (poll.address.host, poll.address.port)
    feedback.interval = poll.every.duration
    feedback.timeout = pollTimeout.duration
    feedback.maximumTuples = maxTuples.value
    feedback.maximumTokens = maxPruned.value
    feedback.prunes = !noPrune
    plan.feedback = feedback
    if let literal = GatewayAddresses(literal: poll.address.host, port: poll.address.port) {
      try target.judge(literal, named: poll.address.host)
    }
  }
}
