import ArgumentParser
import GatewaySimulator

struct DeviceOptions: ParsableArguments {
  /// The name of a feedback list that is in no file.
  static let memory = "memory"

  @Option(
    help: ArgumentHelp(
      "Share of tokens whose device is offline: the latest notification is kept until it expires.",
      valueName: "share"), transform: Share.parse)
  var devicesOffline: Share?

  @Option(
    help: ArgumentHelp(
      "Share of tokens whose app is uninstalled: accepted, and put on the topic's feedback list.", valueName: "share"),
    transform: Share.parse)
  var devicesUninstalled: Share?

  @Option(
    help: ArgumentHelp("Share of tokens that are invalid for the topic: they get status 8.", valueName: "share"),
    transform: Share.parse)
  var devicesUnknown: Share?

  @Option(
    help: ArgumentHelp(
      "A list of all devices instead of shares: one token per line in hexadecimal, followed by active (the default), offline, uninstalled or unknown. Tokens that are not listed are unknown.",
      valueName: "file"), completion: .file())
  var devicesFile: String?

  @Option(
    help: ArgumentHelp(
      "How long after its first stored notification an offline device comes online for a moment. Default: only at SIGUSR2.",
      valueName: "time"), transform: TimeSpan.parse)
  var devicesOnlineAfter: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "SQLite file of the feedback list, which persists; or memory: it ends with the simulator. Default: feedback.sqlite in the identity's directory; with --plain in memory. With --no-feedback there is none unless it is named.",
      valueName: "file"), completion: .file())
  var feedbackList: String?

  @Flag(help: "Send the feedback list in pieces of 1 to 7 bytes.")
  var feedbackRagged = false

  @Flag(
    help: "Let the client close feedback connections, as some servers do; the list is cleared then.")
  var feedbackNeverCloses = false

  func validate() throws {
    let shares = [devicesOffline, devicesUninstalled, devicesUnknown].compactMap { $0?.value }
    if devicesFile != nil, !shares.isEmpty {
      throw ValidationError("--devices-file and shares of devices exclude each other.")
    }
    if shares.reduce(0, +) > 1 { throw ValidationError("The shares of devices add up to more than 1.") }
  }

  func apply(to options: inout SimulatorOptions) throws {
    do {
      if let devicesFile {
        options.devices = try DevicePopulation(contentsOf: devicesFile)
      } else {
        options.devices = try DevicePopulation(
          shares: .init(
            offline: devicesOffline?.value ?? 0, uninstalled: devicesUninstalled?.value ?? 0,
            unknown: devicesUnknown?.value ?? 0))
      }
    } catch {
      complain(error.description)
      throw ExitStatus.code(for: error)
    }
    options.offline.onlineAfter = devicesOnlineAfter.map { Int64($0.duration / .milliseconds(1)) }
    options.behavior.feedback.isRagged = feedbackRagged
    options.behavior.feedback.neverCloses = feedbackNeverCloses
  }
}
