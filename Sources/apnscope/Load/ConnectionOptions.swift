import ArgumentParser
import LoadTest

struct ConnectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Connections at a time, as 8 or 1k; each takes a file descriptor (ulimit -n).", valueName: "count",
      default: Count(1)),
    transform: Count.parse)
  var connections = Count(1)

  @Option(
    help: ArgumentHelp(
      "Event loops they are spread over. Default: one per core, not more than connections.", valueName: "count"),
    transform: Count.parse)
  var threads: Count?

  @Option(
    help: ArgumentHelp(
      "Most plaintext of a write, as 4KiB; or, without a unit, most notifications of a write: 1 sends each alone. Default: 16KiB, one TLS record.",
      valueName: "size"), transform: BatchArgument.parse)
  var batch: BatchArgument?

  @Option(
    help: ArgumentHelp(
      "How long a batch waits to become full while something of ours is unsent.", valueName: "time",
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
    help: ArgumentHelp("SO_SNDBUF, instead of what --buffers says.", valueName: "bytes"), transform: ByteCount.parse)
  var sendBuffer: ByteCount?

  @Option(
    help: ArgumentHelp("TCP_NOTSENT_LOWAT, instead of what --buffers says.", valueName: "bytes"),
    transform: ByteCount.parse)
  var notSentLowWater: ByteCount?

  @Option(
    help: ArgumentHelp(
      "The starts of connections are spread over this time.", valueName: "time", default: TimeSpan(.milliseconds(100))),
    transform: TimeSpan.parse)
  var stagger = TimeSpan(.milliseconds(100))

  @Option(
    help: ArgumentHelp("End a connection in good order after this time, and make it again.", valueName: "time"),
    transform: TimeSpan.parse)
  var lifetime: TimeSpan?

  @Option(
    help: ArgumentHelp("End a connection after so many notifications, and make it again.", valueName: "count"),
    transform: Count.parse)
  var connectionCount: Count?

  @Option(
    help: ArgumentHelp(
      "A TCP connection has to be made in this time, or the attempt has failed.", valueName: "time",
      default: TimeSpan(LoadPlan().connections.connectTimeout)), transform: TimeSpan.parse)
  var connectTimeout = TimeSpan(LoadPlan().connections.connectTimeout)

  @Option(
    help: ArgumentHelp(
      "The TLS handshake has to be finished in this time, or the attempt has failed.", valueName: "time",
      default: TimeSpan(LoadPlan().connections.handshakeTimeout)), transform: TimeSpan.parse)
  var handshakeTimeout = TimeSpan(LoadPlan().connections.handshakeTimeout)

  @Option(
    help: ArgumentHelp(
      "Wait after a failed attempt to connect; it doubles with each further one.", valueName: "time",
      default: TimeSpan(.milliseconds(50))), transform: TimeSpan.parse)
  var backoff = TimeSpan(.milliseconds(50))

  @Option(
    help: ArgumentHelp("Longest such wait.", valueName: "time", default: TimeSpan(.seconds(5))),
    transform: TimeSpan.parse)
  var maxBackoff = TimeSpan(.seconds(5))

  @Option(
    help: ArgumentHelp(
      "End when no connection could be made, or was of use, for this time; after 3s at most when there never was one.",
      valueName: "time", default: TimeSpan(.seconds(10))),
    transform: TimeSpan.parse)
  var giveUp = TimeSpan(.seconds(10))

  @Option(
    help: ArgumentHelp(
      "End each connection's life with a marker, which proves what was accepted; off: nothing is proven.",
      valueName: "on|off")
  )
  var markers = Switch.on

  @Option(
    help: ArgumentHelp("How long a marker's answer is waited for.", valueName: "time", default: TimeSpan(.seconds(5))),
    transform: TimeSpan.parse)
  var markerTimeout = TimeSpan(.seconds(5))

  @Option(
    help: ArgumentHelp(
      "How often a notification may be written before it is given up.", valueName: "count", default: Count(100)),
    transform: Count.parse)
  var maxAttempts = Count(100)

  @Option(
    help: ArgumentHelp(
      "Memory for what all connections have written and nobody has answered; one whose share is full is ended in good order and made again.",
      valueName: "bytes", default: ByteCount(64 << 20)), transform: ByteCount.parse)
  var unsettledMemory = ByteCount(64 << 20)

  @Flag(help: "Do not send again what a connection's end left open; it counts as unknown.")
  var leaveUnknown = false

  enum Buffers: String, CaseIterable, ExpressibleByArgument { case small, system }

  func validate() throws {
    guard (1...100_000).contains(connections.value) else {
      throw ValidationError("--connections takes a number from 1 to 100k, not \(connections.value).")
    }
    if let threads, !(1...256).contains(threads.value) {
      throw ValidationError("--threads takes a number from 1 to 256, not \(threads.value).")
    }
    if let connectionCount, connectionCount.value < 1 {
      throw ValidationError("--connection-count takes a number from 1.")
    }
    for (name, time) in [("connect", connectTimeout), ("handshake", handshakeTimeout)] where time.duration <= .zero {
      throw ValidationError("--\(name)-timeout takes more than 0s.")
    }
    guard maxAttempts.value >= 1 else { throw ValidationError("--max-attempts takes a number from 1, not 0.") }
  }

  func apply(to plan: inout LoadPlan) {
    plan.connections.count = connections.value
    if let threads { plan.threads = threads.value }
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
