import ArgumentParser
import LoadTest

struct ConnectionOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Connections at a time, e.g. 8 or 1k; each takes a file descriptor (ulimit -n). Default: 1, or one for each of several identities.",
      valueName: "count"),
    transform: Count.parse)
  var connections: Count?

  @Option(
    help: ArgumentHelp(
      "Event loops. Default: one per core, at most one per connection, and at least one for each identity.",
      valueName: "count"),
    transform: Count.parse)
  var threads: Count?

  @Option(
    help: ArgumentHelp(
      "Maximum plaintext of a write, e.g. 4KiB; or, without a unit, maximum notifications of a write: 1 disables batching. Default: 16KiB, one TLS record.",
      valueName: "size"), transform: BatchArgument.parse)
  var batch: BatchArgument?

  @Option(
    help: ArgumentHelp(
      "How long a batch waits to become full while earlier bytes are unsent.", valueName: "time",
      default: TimeSpan(.milliseconds(5))), transform: TimeSpan.parse)
  var linger = TimeSpan(.milliseconds(5))

  @Option(help: ArgumentHelp("The kernel's Nagle algorithm.", valueName: "on|off"))
  var nagle = Switch.off

  @Option(
    help:
      "Socket buffers: small (SO_SNDBUF 64 KiB, TCP_NOTSENT_LOWAT 16 KiB, so that little is lost after an error) or system (the kernel's)."
  )
  var buffers = Buffers.small

  @Option(
    help: ArgumentHelp("SO_SNDBUF; overrides --buffers.", valueName: "bytes"), transform: ByteCount.parse)
  var sendBuffer: ByteCount?

  @Option(
    help: ArgumentHelp("TCP_NOTSENT_LOWAT; overrides --buffers.", valueName: "bytes"),
    transform: ByteCount.parse)
  var notSentLowWater: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Spread the starts of connections over this time.", valueName: "time", default: TimeSpan(.milliseconds(100))),
    transform: TimeSpan.parse)
  var stagger = TimeSpan(.milliseconds(100))

  @Option(
    help: ArgumentHelp("Close a connection gracefully after this time, and reopen it.", valueName: "time"),
    transform: TimeSpan.parse)
  var lifetime: TimeSpan?

  @Option(
    help: ArgumentHelp("Close a connection after this many notifications, and reopen it.", valueName: "count"),
    transform: Count.parse)
  var connectionCount: Count?

  @Option(
    help: ArgumentHelp(
      "Timeout of TCP connects.", valueName: "time",
      default: TimeSpan(LoadPlan().connections.connectTimeout)), transform: TimeSpan.parse)
  var connectTimeout = TimeSpan(LoadPlan().connections.connectTimeout)

  @Option(
    help: ArgumentHelp(
      "Timeout of TLS handshakes.", valueName: "time",
      default: TimeSpan(LoadPlan().connections.handshakeTimeout)), transform: TimeSpan.parse)
  var handshakeTimeout = TimeSpan(LoadPlan().connections.handshakeTimeout)

  @Option(
    help: ArgumentHelp(
      "Wait after a failed attempt to connect; doubles with each further failure.", valueName: "time",
      default: TimeSpan(.milliseconds(50))), transform: TimeSpan.parse)
  var backoff = TimeSpan(.milliseconds(50))

  @Option(
    help: ArgumentHelp("Longest wait between attempts.", valueName: "time", default: TimeSpan(.seconds(5))),
    transform: TimeSpan.parse)
  var maxBackoff = TimeSpan(.seconds(5))

  @Option(
    help: ArgumentHelp(
      "End when no connection was established, or accepted anything, for this time; after at most 3s when there never was one.",
      valueName: "time", default: TimeSpan(.seconds(10))),
    transform: TimeSpan.parse)
  var giveUp = TimeSpan(.seconds(10))

  @Option(
    help: ArgumentHelp(
      "End each connection with a marker, which proves what was accepted; off: nothing is proven.",
      valueName: "on|off")
  )
  var markers = Switch.on

  @Option(
    help: ArgumentHelp(
      "How long to wait for the answer to a marker.", valueName: "time", default: TimeSpan(.seconds(5))),
    transform: TimeSpan.parse)
  var markerTimeout = TimeSpan(.seconds(5))

  @Option(
    help: ArgumentHelp(
      "How often a notification may be written before it is abandoned.", valueName: "count", default: Count(100)),
    transform: Count.parse)
  var maxAttempts = Count(100)

  @Option(
    help: ArgumentHelp(
      "Memory for unanswered notifications of all connections; a connection whose share is full is closed gracefully and reopened.",
      valueName: "bytes", default: ByteCount(64 << 20)), transform: ByteCount.parse)
  var unsettledMemory = ByteCount(64 << 20)

  @Flag(help: "Do not resend notifications whose fate the end of a connection left open; they count as unknown.")
  var leaveUnknown = false

  enum Buffers: String, CaseIterable, ExpressibleByArgument { case small, system }

  func validate() throws {
    if let connections, !(1...100_000).contains(connections.value) {
      throw ValidationError("--connections must be 1 to 100k (got \(connections.value)).")
    }
    if let threads, !(1...256).contains(threads.value) {
      throw ValidationError("--threads must be 1 to 256 (got \(threads.value)).")
    }
    if let connectionCount, connectionCount.value < 1 {
      throw ValidationError("--connection-count must be at least 1 (got 0).")
    }
    for (name, time) in [("connect", connectTimeout), ("handshake", handshakeTimeout)] where time.duration <= .zero {
      throw ValidationError("--\(name)-timeout must be more than 0s.")
    }
    guard maxAttempts.value >= 1 else { throw ValidationError("--max-attempts must be at least 1 (got 0).") }
  }

  /// The plan's topics must be known.
  func apply(to plan: inout LoadPlan) throws {
    plan.connections.count = connections?.value ?? max(1, plan.topics.count)
    if let threads { plan.threads = threads.value }
    for (name, given) in [("connections", connections), ("threads", threads)] {
      guard let given, given.value < plan.topics.count else { continue }
      throw ValidationError(
        "--\(name) \(given.value) is too few for \(plan.topics.count) identities: each has a connection, and a thread, of its own."
      )
    }
    if let bytes = batch?.bytes { plan.batching.bytes = bytes }
    if let notifications = batch?.notifications { plan.batching.notifications = notifications }
    plan.batching.linger = linger.duration
    if buffers == .system {
      plan.connections.socket.sendBuffer = nil
      plan.connections.socket.notSentLowWater = nil
    }
    if let sendBuffer { plan.connections.socket.sendBuffer = sendBuffer.bytes }
    if let notSentLowWater { plan.connections.socket.notSentLowWater = notSentLowWater.bytes }
    plan.connections.socket.noDelay = nagle == .off
    plan.connections.stagger = stagger.duration
    plan.connections.lifetime = lifetime?.duration
    plan.connections.notifications = connectionCount?.value
    plan.connections.connectTimeout = connectTimeout.duration
    plan.connections.handshakeTimeout = handshakeTimeout.duration
    plan.connections.backoff = backoff.duration
    plan.connections.maximumBackoff = maxBackoff.duration
    plan.connections.giveUp = giveUp.duration
    plan.usesMarkers = markers == .on
    plan.markerTimeout = markerTimeout.duration
    plan.maximumAttempts = maxAttempts.value
    plan.resendsUnknown = !leaveUnknown
    plan.unsettledMemory = unsettledMemory.bytes
  }
}
