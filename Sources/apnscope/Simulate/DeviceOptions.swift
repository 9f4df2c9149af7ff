import ArgumentParser
import GatewaySimulator

struct DeviceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Share of tokens whose device is offline: the latest notification for it is kept until its expiration.",
      valueName: "share"), transform: Share.parse)
  var devicesOffline: Share?

  @Option(
    help: ArgumentHelp(
      "Share of tokens whose app is gone: accepted, and put on the topic's feedback list.", valueName: "share"),
    transform: Share.parse)
  var devicesUninstalled: Share?

  @Option(
    help: ArgumentHelp("Share of tokens that are not this topic's: they get status 8.", valueName: "share"),
    transform: Share.parse)
  var devicesUnknown: Share?

  @Option(
    help: ArgumentHelp(
      "A list of all devices instead of shares: a token a line in hexadecimal, and behind it active (also if left out), offline, uninstalled or unknown. Tokens that are not listed are unknown.",
      valueName: "file"), completion: .file())
  var devicesFile: String?

  @Option(
    help: ArgumentHelp(
      "An offline device comes online for a moment so long after the first notification was kept for it. Default: only at SIGUSR2.",
      valueName: "time"), transform: TimeSpan.parse)
  var devicesOnlineAfter: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "Where the feedback list is kept (SQLite); it survives the process. Default: feedback.sqlite in the identity's directory, and with --plain only in memory.",
      valueName: "file"), completion: .file())
  var feedbackList: String?

  @Flag(help: "Send the feedback list in pieces of 1 to 7 bytes.")
  var feedbackRagged = false

  @Flag(
    help: "Leave the close of a feedback connection to the client, as some servers do; its list is cleared then.")
  var feedbackNeverCloses = false

  func validate() throws {
    let shares = [devicesOffline, devicesUninstalled, devicesUnknown].compactMap { $0?.value }
    if devicesFile != nil, !shares.isEmpty {
      throw ValidationError("--devices-file and shares of devices exclude each other.")
    }
    if shares.reduce(0, +) > 1 { throw ValidationError("The shares of devices are more than 1 together.") }
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
