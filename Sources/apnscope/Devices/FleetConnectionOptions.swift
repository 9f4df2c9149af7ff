import ArgumentParser
import DeviceFleet

/// How devices connect, and what bounds them.
struct FleetConnectionOptions: ParsableArguments {
  private static let usual = FleetPlan(gateway: .init(host: "", port: 0))

  @Option(
    help: ArgumentHelp(
      "New devices per second of the whole fleet at the beginning. Default: 1000/s.", valueName: "rate"),
    transform: Rate.parse)
  var connectRate: Rate?

  @Option(
    help: ArgumentHelp(
      "Attempts to connect at a time; further devices wait for their turn.", valueName: "count",
      default: Count(usual.connections.maximumConnecting)), transform: Count.parse)
  var maxConnecting = Count(usual.connections.maximumConnecting)

  @Option(
    help: ArgumentHelp(
      "Timeout of TCP connects.", valueName: "time", default: TimeSpan(usual.connections.connectTimeout)),
    transform: TimeSpan.parse)
  var connectTimeout = TimeSpan(usual.connections.connectTimeout)

  @Option(
    help: ArgumentHelp(
      "Timeout of TLS handshakes.", valueName: "time", default: TimeSpan(usual.connections.handshakeTimeout)),
    transform: TimeSpan.parse)
  var handshakeTimeout = TimeSpan(usual.connections.handshakeTimeout)

  @Option(
    help: ArgumentHelp(
      "Wait after a failed attempt, or when the gateway ends a connection; doubles with each further one.",
      valueName: "time", default: TimeSpan(usual.connections.backoff)), transform: TimeSpan.parse)
  var backoff = TimeSpan(usual.connections.backoff)

  @Option(
    help: ArgumentHelp(
      "Longest wait between attempts.", valueName: "time", default: TimeSpan(usual.connections.maximumBackoff)),
    transform: TimeSpan.parse)
  var maxBackoff = TimeSpan(usual.connections.maximumBackoff)

  @Option(
    help: ArgumentHelp(
      "End when from the start on no device could be online for this time.", valueName: "time",
      default: TimeSpan(usual.giveUp)), transform: TimeSpan.parse)
  var giveUp = TimeSpan(usual.giveUp)

  @Option(
    help: ArgumentHelp("Event loops.", valueName: "count", default: Count(1)), transform: Count.parse)
  var threads = Count(1)

  @Option(
    help: ArgumentHelp(
      "Longest message of the gateway; a longer one ends its connection.", valueName: "bytes",
      default: ByteCount(usual.limits.longestMessage)), transform: ByteCount.parse)
  var maxMessage = ByteCount(usual.limits.longestMessage)

  @Option(
    help: ArgumentHelp(
      "Memory for unfinished messages of all devices; a connection that exceeds it is ended.", valueName: "bytes",
      default: ByteCount(usual.limits.bufferedBytes)), transform: ByteCount.parse)
  var maxBuffered = ByteCount(usual.limits.bufferedBytes)

  func validate() throws {
    guard (1...256).contains(threads.value) else {
      throw ValidationError("--threads must be 1 to 256 (got \(threads.value)).")
    }
    guard (1...100_000).contains(maxConnecting.value) else {
      throw ValidationError("--max-connecting must be 1 to 100k (got \(maxConnecting.value)).")
    }
    if let connectRate, connectRate.perSecond <= 0 { throw ValidationError("--connect-rate must be more than 0.") }
    for (name, time) in [("connect", connectTimeout), ("handshake", handshakeTimeout)] where time.duration <= .zero {
      throw ValidationError("--\(name)-timeout must be more than 0s.")
    }
    guard (1_024...16 << 20).contains(maxMessage.bytes) else {
      throw ValidationError("--max-message must be 1KiB to 16MiB.")
    }
  }

  func apply(to plan: inout FleetPlan) {
    if let connectRate { plan.connections.rate = connectRate.perSecond }
    plan.connections.maximumConnecting = maxConnecting.value
    plan.connections.connectTimeout = connectTimeout.duration
    plan.connections.handshakeTimeout = handshakeTimeout.duration
    plan.connections.backoff = backoff.duration
    plan.connections.maximumBackoff = maxBackoff.duration
    plan.giveUp = giveUp.duration
    plan.threads = threads.value
    plan.limits.longestMessage = maxMessage.bytes
    plan.limits.bufferedBytes = maxBuffered.bytes
  }
}
