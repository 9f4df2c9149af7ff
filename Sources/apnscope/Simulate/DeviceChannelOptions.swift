import ArgumentParser
import GatewaySimulator
import TLSTransport

/// Simulated devices that connect to the gateway.
struct DeviceChannelOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Let simulated devices connect to this address ('apnscope devices'): with the TLS of the gateway, which asks them for no certificate, or with --plain without. Tokens that they register are theirs; the options --devices-* hold for all others.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var deviceChannel: ListeningAddress?

  @Option(
    help: ArgumentHelp(
      "Keep tokens, and notifications that wait or are not acknowledged, in this SQLite file: they survive the end of the simulator, however it ends. Default: memory.",
      valueName: "file"), completion: .file())
  var deviceStore: String?

  @Option(
    "Deliver priority 5 to a device that is connected at the next multiple of this time (UTC), or with one of priority 10; 0s: at once. Apple has no number.",
    valueName: "time")
  var deviceWindow = TimeSpan(.zero)

  @Option(
    help: ArgumentHelp(
      "Background notifications that an app gets on a day (UTC); others wait. Default: any number. Apple has no number, and advises providers not to send more than two or three an hour.",
      valueName: "count"))
  var deviceBackgroundBudget: Int?

  @Option(
    help: ArgumentHelp(
      "Notifications of an app that are sent before the device acknowledges one; others wait.", valueName: "count"))
  var deviceUnacknowledged = 100

  @Option(
    help: ArgumentHelp(
      "Tokens that devices register, those that are no longer valid included; further ones are refused.",
      valueName: "count"))
  var maxDeviceTokens = 2_000_000

  func validate() throws {
    for (name, value) in [
      ("device-background-budget", deviceBackgroundBudget ?? 1), ("device-unacknowledged", deviceUnacknowledged),
      ("max-device-tokens", maxDeviceTokens),
    ] where value < (name == "device-background-budget" ? 0 : 1) || value > 1_000_000_000 {
      throw ValidationError("--\(name) is \(value), which is out of range.")
    }
  }

  /// Requirements of options that a file of settings may meet instead of the command line.
  func requireCompanions() throws {
    let needs = deviceStore != nil || deviceWindow.duration > .zero || deviceBackgroundBudget != nil
    guard deviceChannel == nil, needs else { return }
    throw ValidationError("--device-store, --device-window and --device-background-budget need --device-channel.")
  }

  /// - Parameters:
  ///   - options: with the limits of what is stored.
  ///   - context: makes the TLS context; `nil` without TLS.
  func apply(to options: inout SimulatorOptions, _ context: () throws -> TLSContext?) throws {
    guard let deviceChannel else { return }
    var channel = DeviceChannel(address: deviceChannel.address, limits: options.offline)
    channel.tls = try context()
    channel.file = deviceStore
    channel.delivery.window = deviceWindow.duration
    channel.delivery.backgroundBudget = deviceBackgroundBudget
    channel.maximumUnacknowledged = deviceUnacknowledged
    channel.maximumTokens = maxDeviceTokens
    options.deviceChannel = channel
  }
}
