import ArgumentParser
import DeviceFleet

/// Which devices there are, and what they do with notifications.
struct FleetOptions: ParsableArguments {
  enum Environment: String, CaseIterable, ExpressibleByArgument { case production, development }

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Devices, e.g. 1000 or 18k; each takes a file descriptor (ulimit -n).", valueName: "count", default: Count(100)),
    transform: Count.parse)
  var count = Count(100)

  @Option(help: ArgumentHelp("Number of the first device in its population.", valueName: "number"))
  var first: UInt64 = 0

  @Option(
    help: ArgumentHelp(
      "Run only this part of the fleet: 2/4 is the second of four; auto takes it from Slurm, MPI or Kubernetes.",
      valueName: "part"), transform: SegmentArgument.parse)
  var segment: SegmentArgument?

  @Option(
    help: ArgumentHelp(
      "Seed of the population's tokens, which are checked, and of everything that chance decides. Default: 1, and no token is checked.",
      valueName: "number"))
  var seed: UInt64?

  @Option(
    help: ArgumentHelp(
      "Topic of an app that each device has; repeatable up to 64 times. Default: com.example.app.", valueName: "topic"))
  var topic: [String] = []

  @Option(help: "Environment whose tokens are asked for.")
  var environment = Environment.production

  @Option(help: ArgumentHelp("Language of the users, as a BCP 47 tag, e.g. de-AT.", valueName: "tag"))
  var language: String?

  @Option(
    help: ArgumentHelp(
      "From a notification to its acknowledgement, which is of all that came until then.", valueName: "time",
      default: TimeSpan(.zero)), transform: TimeSpan.parse)
  var acknowledgeDelay = TimeSpan(.zero)

  @Option(
    help: ArgumentHelp(
      "Share of devices that never acknowledge: what they have is known from their next connection on.",
      valueName: "share"), transform: Share.parse)
  var neverAcknowledge: Share?

  @Option(
    help: ArgumentHelp(
      "Share of devices that save power: background notifications wait for them.", valueName: "share"),
    transform: Share.parse)
  var lowPower: Share?

  func validate() throws {
    guard (1...10_000_000).contains(count.value) else {
      throw ValidationError("--count must be 1 to 10M (got \(count.value)).")
    }
    if let language, !(1...64).contains(language.utf8.count) {
      throw ValidationError("--language must have 1 to 64 bytes.")
    }
  }

  func apply(to plan: inout FleetPlan) throws {
    plan.count = count.value
    plan.first = first
    let found = try segment?.found() ?? EngineSegment(number: 1, count: 1, source: "")
    (plan.segment, plan.segments) = (found.number - 1, found.count)
    if let seed { (plan.seed, plan.tokenSeed) = (seed, seed) }
    if !topic.isEmpty { plan.topics = topic }
    plan.environment = environment == .production ? .production : .development
    plan.language = language ?? ""
    plan.acknowledging.delay = acknowledgeDelay.duration
    plan.acknowledging.neverShare = neverAcknowledge?.value ?? 0
    plan.presence.lowPowerShare = lowPower?.value ?? 0
  }
}
