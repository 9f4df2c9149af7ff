import Analysis
import ArgumentParser
import GatewayRecords
import GatewaySimulator

struct SimulatorLimitOptions: ParsableArguments {
  @Option("Timeout of TLS handshakes.", valueName: "time")
  var handshakeTimeout = TimeSpan(.seconds(10))

  @Option(
    "Time for the rest of a frame once it has begun; then the connection is closed.",
    valueName: "time")
  var frameTimeout = TimeSpan(.seconds(60))

  @Option(
    "How long data after an error response is read and counted before the connection is closed.",
    valueName: "time")
  var linger = TimeSpan(.seconds(5))

  @Option(
    "How long a feedback client may pause before its connection is closed; an unread list is kept.",
    valueName: "time")
  var feedbackTimeout = TimeSpan(.seconds(60))

  @Option("Longest command-2 frame; a longer one is malformed.", valueName: "bytes")
  var maxFrameLength = ByteCount(SimulatorOptions().rules.limits.maximumFrameLength)

  @Option(
    help: ArgumentHelp(
      "Connections at a time, to both services; further ones are closed at once. Default: 100000, or as many as the limit of open files (ulimit -n) allows; a higher number is lowered with a warning.",
      valueName: "count"))
  var maxConnections: Int?

  @Option(
    help: ArgumentHelp(
      "Memory for connections: each counts 48 KiB, with --plain 8 KiB. Further connections are closed at once. Default: 2GiB, or the memory of --max-connections if that is more.",
      valueName: "bytes"), transform: ByteCount.parse)
  var maxConnectionMemory: ByteCount?

  @Option(
    "Memory beside it for all frames that have begun and are not whole, from 4 KiB each; above, the connection with the oldest is closed. A feedback list in memory may take as much.",
    valueName: "bytes")
  var maxMemory = ByteCount(SimulatorOptions().maximumMemory)

  @Option(
    "Memory for what has arrived and is not in --records or the verdict yet; above, notifications are left out there and counted. Records of open connections may need as much again.",
    valueName: "bytes")
  var maxUnrecorded = ByteCount(GatewayRecorder.Options().maximumWaitingBytes)

  @Option(
    "Memory for the verdict; what exceeds it goes to unnamed files in TMPDIR.",
    valueName: "bytes")
  var maxVerdictMemory = ByteCount(StoryCollector.Options().memory)

  @Option(
    help: ArgumentHelp("Connections listed in the ledger; all are counted.", valueName: "count"))
  var maxListedConnections = SimulatorOptions().maximumListedConnections

  @Option(help: ArgumentHelp("Notifications stored for offline devices.", valueName: "count"))
  var maxStored = SimulatorOptions().offline.maximumNotifications

  @Option("Memory for these.", valueName: "bytes")
  var maxStoredBytes = ByteCount(SimulatorOptions().offline.maximumBytes)

  func validate() throws {
    let values = [
      ("max-frame-length", maxFrameLength.bytes), ("max-connections", maxConnections ?? 1),
      ("max-connection-memory", maxConnectionMemory?.bytes ?? 1), ("max-memory", maxMemory.bytes),
      ("max-unrecorded", maxUnrecorded.bytes), ("max-verdict-memory", maxVerdictMemory.bytes),
      ("max-listed-connections", maxListedConnections),
      ("max-stored", maxStored), ("max-stored-bytes", maxStoredBytes.bytes),
    ]
    for (name, value) in values where !(1...1 << 32).contains(value) {
      throw ValidationError("--\(name) must be 1 to 4294967296 (got \(value)).")
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
    options.maximumMemory = maxMemory.bytes
    options.maximumListedConnections = maxListedConnections
    options.offline = OfflineStore.Options(
      onlineAfter: options.offline.onlineAfter, maximumNotifications: maxStored, maximumBytes: maxStoredBytes.bytes)
  }
}
