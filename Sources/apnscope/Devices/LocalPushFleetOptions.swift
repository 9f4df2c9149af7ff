import ArgumentParser
import CommandFiles
import DeviceFleet
import GatewaySimulator

/// Devices that receive over local push.
struct LocalPushFleetOptions: ParsableArguments {
  /// The port that examples use; no standard assigns one.
  private static let usualPort = 2199
  private static let usual = LocalPushPlan()

  @Option(
    help: ArgumentHelp(
      "Receive over local push instead of the device channel: the notification channel of 'simulate --local-push', or of another server that speaks the protocol of Documentation/local-push.md. Default port: 2199.",
      valueName: "host:port"), transform: LocalPushFleetOptions.parse)
  var localPush: GatewayArgument?

  @Option(
    help: ArgumentHelp(
      "A Wi-Fi network on which the extension runs, and the share of joinings that are of it (100% without); what is left joins other networks. With ,at=HOST:PORT its devices connect there instead. Repeatable. Default: every network.",
      valueName: "name,share=60%"), transform: NetworkArgument.parse)
  var network: [NetworkArgument] = []

  @Option("Time without a word of the server after which a device gives up.", valueName: "time")
  var silence = TimeSpan(usual.silence)

  @Option("How long a device's request waits for its acknowledgement.", valueName: "time")
  var requestTimeout = TimeSpan(usual.requestTimeout)

  @Option("A call that comes later after its sending is missed; an assumption.", valueName: "time")
  var callTime = TimeSpan(usual.callTime)

  @Sendable private static func parse(_ text: String) throws -> GatewayArgument {
    guard let address = server(text) else { return try GatewayArgument.parse(text) }
    return address
  }

  fileprivate static func server(_ text: String) -> GatewayArgument? {
    GatewayArgument(argument: text, usualPort: usualPort)
  }

  func validate() throws {
    if localPush == nil, !network.isEmpty { throw ValidationError("--network needs --local-push.") }
    for (name, time) in [("silence", silence), ("request-timeout", requestTimeout), ("call-time", callTime)]
    where time.duration < .milliseconds(1) {
      throw ValidationError("--\(name) must be at least 1ms.")
    }
  }

  func apply(to plan: inout FleetPlan) {
    guard let localPush else { return }
    plan.gateway = .init(host: localPush.address.host, port: localPush.address.port)
    var options = LocalPushPlan()
    options.networks = network.map(\.network)
    options.silence = silence.duration
    options.requestTimeout = requestTimeout.duration
    options.callTime = callTime.duration
    plan.localPush = options
  }
}

/// A network as typed: ship-crew, ship-crew,share=60% or ship-crew,share=60%,at=127.0.0.1:2199.
struct NetworkArgument: Quantity {
  static let notation =
    "a name, the share of joinings, and the address of its server, e.g. ship-crew,share=60% or ship-crew,at=127.0.0.1:2199"

  var network: LocalPushPlan.Network

  init?(argument: String) {
    // A name may have commas.
    var name = argument[...]
    var share: Share?
    var server: GatewayArgument?
    while let comma = name.lastIndex(of: ",") {
      let part = name[name.index(after: comma)...]
      if part.hasPrefix("share="), share == nil {
        guard let given = Share(argument: String(part.dropFirst(6))) else { return nil }
        share = given
      } else if part.hasPrefix("at="), server == nil {
        guard let given = LocalPushFleetOptions.server(String(part.dropFirst(3))) else { return nil }
        server = given
      } else {
        break
      }
      name = name[..<comma]
    }
    guard !name.isEmpty, LocalPushService.Network.isPossible(String(name)) else { return nil }
    network = .init(
      name: String(name), share: share?.value ?? 1,
      server: server.map { .init(host: $0.address.host, port: $0.address.port) })
  }
}
