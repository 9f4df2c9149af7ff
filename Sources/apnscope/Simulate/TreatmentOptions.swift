import ArgumentParser
import GatewaySimulator

struct TreatmentOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Limit the read rate of each connection, in bytes per second, with bursts of at most 10 ms (with TLS, plus one record).",
      valueName: "bytes"),
    transform: ByteCount.parse)
  var readRate: ByteCount?

  @Option(
    help: ArgumentHelp("Stop reading a connection for --read-pause after this many bytes.", valueName: "bytes"),
    transform: ByteCount.parse)
  var readPauseEvery: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Length of the pauses of --read-pause-every.", valueName: "time", default: TimeSpan(.seconds(1))),
    transform: TimeSpan.parse)
  var readPause = TimeSpan(.seconds(1))

  @Option(
    help: ArgumentHelp(
      "Receive buffer of a connection (SO_RCVBUF; the kernel doubles it): a small one blocks a provider's writes sooner.",
      valueName: "bytes"),
    transform: ByteCount.parse)
  var receiveBuffer: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Close this share of connections right after the handshake.", valueName: "share"), transform: Share.parse)
  var acceptThenClose: Share?

  @Option(
    help: ArgumentHelp(
      "Close connections of this topic right after the handshake, like a certificate of the other environment. Repeatable.",
      valueName: "topic"))
  var wrongEnvironment: [String] = []

  @Option(
    help: ArgumentHelp("Answer this share of handshakes with an alert.", valueName: "share"), transform: Share.parse)
  var handshakeFailure: Share?

  @Option(help: ArgumentHelp("Open connections per topic; further ones are closed.", valueName: "count"))
  var connectionLimit: Int?

  @Option(
    help: ArgumentHelp(
      "Connections per second and topic; a topic that exceeds this is refused for --reconnect-refusal.",
      valueName: "count"))
  var reconnectLimit: Int?

  @Option(
    help: ArgumentHelp(
      "How long --reconnect-limit refuses a topic.", valueName: "time", default: TimeSpan(.seconds(10))),
    transform: TimeSpan.parse)
  var reconnectRefusal = TimeSpan(.seconds(10))

  @Option(
    help: ArgumentHelp("Close a connection that is idle for this long.", valueName: "time"),
    transform: TimeSpan.parse)
  var idleClose: TimeSpan?

  @Option(
    help: ArgumentHelp("Shut a connection down (status 10) after this time.", valueName: "time"),
    transform: TimeSpan.parse)
  var lifetime: TimeSpan?

  func validate() throws {
    for (name, value) in [("connection-limit", connectionLimit), ("reconnect-limit", reconnectLimit)] {
      if let value, value < 1 { throw ValidationError("--\(name) must be at least 1 (got \(value)).") }
    }
    for (name, value) in [
      ("read-rate", readRate), ("read-pause-every", readPauseEvery), ("receive-buffer", receiveBuffer),
    ] {
      if let value, value.bytes < 1 { throw ValidationError("--\(name) must be at least 1 byte.") }
    }
  }

  func apply(to options: inout SimulatorOptions) {
    options.behavior.reading.bytesPerSecond = readRate?.bytes
    options.behavior.reading.pauseEvery = readPauseEvery?.bytes
    options.behavior.reading.pause = readPause.duration
    options.behavior.reading.receiveBuffer = receiveBuffer?.bytes
    options.behavior.connection.acceptThenClose = acceptThenClose?.value ?? 0
    options.behavior.connection.wrongEnvironmentTopics = Set(wrongEnvironment)
    options.behavior.connection.handshakeFailure = handshakeFailure?.value ?? 0
    options.behavior.connection.limitPerTopic = connectionLimit
    options.behavior.connection.reconnectsPerSecond = reconnectLimit
    options.behavior.connection.refusal = reconnectRefusal.duration
    options.behavior.connection.idle = idleClose?.duration
    options.behavior.connection.lifetime = lifetime?.duration
  }
}
