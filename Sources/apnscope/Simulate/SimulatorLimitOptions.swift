import ArgumentParser
import GatewaySimulator

struct SimulatorLimitOptions: ParsableArguments {
  @Option("A TLS handshake has to be finished in this time.", valueName: "time")
  var handshakeTimeout = TimeSpan(.seconds(10))

  @Option(
    "A notification that has begun has to be complete in this time, or its connection is closed.",
    valueName: "time")
  var frameTimeout = TimeSpan(.seconds(60))

  @Option(
    "How long what comes after an error response is read and counted, before the connection is closed altogether.",
    valueName: "time")
  var linger = TimeSpan(.seconds(5))

  @Option(
    "How long a feedback client may pause before its connection is closed; a list that it has not read by then stays.",
    valueName: "time")
  var feedbackTimeout = TimeSpan(.seconds(60))

  @Option("Longest command-2 frame; a longer one is malformed.", valueName: "bytes")
  var maxFrameLength = ByteCount(SimulatorOptions().rules.limits.maximumFrameLength)

  @Option(
    help: ArgumentHelp(
      "Connections at a time, to both services; further ones are closed at once. Default: 100000, or what the limit of open files (ulimit -n) has room for; more than that is lowered with a warning.",
      valueName: "count"))
  var maxConnections: Int?

  @Option(
    help: ArgumentHelp(
      "Bytes that connections may hold: each counts 48 KiB, with --plain 8 KiB, and the buffer of a frame that is not complete when it is longer than 4 KiB. Further connections are closed at once, and one whose frame passes the limit is closed. Default: 2GiB, or what --max-connections count if that is more.",
      valueName: "bytes"), transform: ByteCount.parse)
  var maxConnectionMemory: ByteCount?

  @Option(
    help: ArgumentHelp("Connections that the ledger lists; all of them are counted.", valueName: "count"))
  var maxListedConnections = SimulatorOptions().maximumListedConnections

  @Option(help: ArgumentHelp("Notifications that wait for offline devices.", valueName: "count"))
  var maxStored = SimulatorOptions().offline.maximumNotifications

  @Option("Bytes that these may take.", valueName: "bytes")
  var maxStoredBytes = ByteCount(SimulatorOptions().offline.maximumBytes)

  func validate() throws {
    let values = [
      ("max-frame-length", maxFrameLength.bytes), ("max-connections", maxConnections ?? 1),
      ("max-connection-memory", maxConnectionMemory?.bytes ?? 1), ("max-listed-connections", maxListedConnections),
      ("max-stored", maxStored), ("max-stored-bytes", maxStoredBytes.bytes),
    ]
    for (name, value) in values where !(1...1 << 32).contains(value) {
      throw ValidationError("--\(name) takes a number from 1 to 4294967296, not \(value).")
    }
  }

  func apply(to options: inout SimulatorOptions) {
    options.handshakeTimeout = handshakeTimeout.duration
    options.frameTimeout = frameTimeout.duration
    options.linger = linger.duration
    options.feedbackTimeout = feedbackTimeout.duration
    options.rules.limits.maximumFrameLength = maxFrameLength.bytes
    if let maxConnections { options.maximumConnections = maxConnections }
    if let maxConnectionMemory { options.maximumConnectionMemory = maxConnectionMemory.bytes }
    options.maximumListedConnections = maxListedConnections
    options.offline = OfflineStore.Options(
      onlineAfter: options.offline.onlineAfter, maximumNotifications: maxStored, maximumBytes: maxStoredBytes.bytes)
  }
}
