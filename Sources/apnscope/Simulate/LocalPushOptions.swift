import ArgumentParser
import Bytes
import CommandFiles
import DeviceProtocol
import GatewaySimulator
import TLSTransport

/// The provider's own server for devices without internet.
struct LocalPushOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Run the provider's own server where there is no internet (local push connectivity): its notification channel, which extensions connect to ('apnscope devices --local-push'), or that of a Wi-Fi network, as NAME=HOST:PORT. Repeatable: each network has an address of its own. With the TLS of the gateway, or --plain. Documentation/local-push.md has the protocol.",
      valueName: "host:port"), transform: NetworkAddress.parse)
  var localPush: [NetworkAddress] = []

  @Option(
    help: ArgumentHelp("Its control channel, which apps connect to.", valueName: "host:port"),
    transform: ListeningAddress.parse)
  var localPushControl: ListeningAddress?

  @Option(
    help: ArgumentHelp(
      "Send messages to users by chance, from those who are here: this many a second.", valueName: "rate"),
    transform: Rate.parse)
  var localPushRate: Rate?

  @Option(
    help: ArgumentHelp(
      "Share of them that are invitations to a call; the others are texts. Default: 0%.", valueName: "share"),
    transform: Share.parse)
  var localPushCalls: Share?

  @Option(
    help: ArgumentHelp(
      "Send the messages of this JSON Lines file: at_s, kind (text, invite or call_action), to or network, from, text or action. A user is a UUID, or the number of a device of 'apnscope devices'.",
      valueName: "file"), completion: .file())
  var localPushMessages: String?

  @Option("Time between heartbeats.", valueName: "time")
  var localPushHeartbeat = TimeSpan(.seconds(10))

  @Option("How long a request waits for its acknowledgement.", valueName: "time")
  var localPushTimeout = TimeSpan(.seconds(10))

  @Option(
    help: ArgumentHelp("Share of heartbeats that are not sent: a fault.", valueName: "share"), transform: Share.parse)
  var localPushLostHeartbeats: Share?

  @Option(
    help: ArgumentHelp(
      "At this time the server falls silent on this share of the open connections, and leaves them open: a fault, e.g. 30s:50%. Repeatable.",
      valueName: "time:share"), transform: LocalPushMoment.parseSilence)
  var localPushSilence: [LocalPushFaults.Silence] = []

  @Option(
    help: ArgumentHelp(
      "At this time the server ends, and listens again this much later: a fault, e.g. 30s:5s. With ,network=NAME a network does; with ,silent connections stay open, and fall silent. Repeatable.",
      valueName: "time:time"), transform: LocalPushMoment.parseRestart)
  var localPushRestart: [LocalPushFaults.Restart] = []

  @Option(
    help: ArgumentHelp(
      "Requests on a connection that are not acknowledged; further messages are not sent.", valueName: "count"))
  var maxLocalPushUnacknowledged = 100

  @Option(
    help: ArgumentHelp("Users in a directory; those who came first are in it.", valueName: "count"))
  var maxLocalPushDirectory = 200

  func validate() throws {
    if localPush.count > LocalPushService.maximumNetworks {
      throw ValidationError("--local-push is at most \(LocalPushService.maximumNetworks) networks.")
    }
    if let twice = localPush.first(where: { address in localPush.count { $0.network.name == address.network.name } > 1 }
    ) {
      let name = twice.network.name
      throw ValidationError(
        name.isEmpty
          ? "--local-push is one address without a name at most." : "--local-push has the network '\(name)' twice.")
    }
    for (name, value) in [
      ("max-local-push-unacknowledged", maxLocalPushUnacknowledged),
      ("max-local-push-directory", maxLocalPushDirectory),
    ] where !(1...1_000_000).contains(value) {
      throw ValidationError("--\(name) must be 1 to 1M (got \(value)).")
    }
    for (name, time) in [("heartbeat", localPushHeartbeat), ("timeout", localPushTimeout)]
    where time.duration < .milliseconds(1) {
      throw ValidationError("--local-push-\(name) must be at least 1ms.")
    }
    if let localPushRate, localPushRate.perSecond > 1_000_000 {
      throw ValidationError("--local-push-rate must be at most 1M a second.")
    }
  }

  /// Requirements of options that a file of settings may meet instead of the command line.
  func requireCompanions() throws {
    let needs =
      localPushRate != nil || localPushMessages != nil || localPushLostHeartbeats != nil || !localPushSilence.isEmpty
      || !localPushRestart.isEmpty
    if localPush.isEmpty, localPushControl == nil, needs {
      throw ValidationError(
        "--local-push-rate, --local-push-messages and the faults of local push need --local-push or --local-push-control."
      )
    }
    if localPushRate == nil, localPushCalls != nil {
      throw ValidationError("--local-push-calls needs --local-push-rate.")
    }
    let names = localPush.map(\.network.name)
    for case let name? in localPushRestart.map(\.outage.network) where !names.contains(name) {
      throw ValidationError("--local-push-restart has the network '\(name)', which no --local-push has.")
    }
  }

  /// Reads the file of messages.
  ///
  /// - Parameter context: makes the TLS context; `nil` without TLS.
  func apply(to options: inout SimulatorOptions, _ context: () throws -> TLSContext?) throws {
    guard !localPush.isEmpty || localPushControl != nil else { return }
    var service = LocalPushService(networks: localPush.map(\.network), control: localPushControl?.address)
    service.tls = try context()
    service.heartbeat = localPushHeartbeat.duration
    service.requestTimeout = localPushTimeout.duration
    service.maximumUnacknowledged = maxLocalPushUnacknowledged
    service.maximumDirectoryUsers = maxLocalPushDirectory
    service.rate = localPushRate?.perSecond ?? 0
    service.callShare = localPushCalls?.value ?? 0
    service.planned =
      try localPushMessages.map { try LocalPushMessageFile.read($0, networks: localPush.map(\.network.name)) } ?? []
    service.faults.lostHeartbeats = localPushLostHeartbeats?.value ?? 0
    service.faults.silences = localPushSilence.sorted { $0.time < $1.time }
    service.faults.restarts = localPushRestart.sorted { $0.time < $1.time }
    options.localPush = service
  }
}

/// The address of a network as typed: 127.0.0.1:2199 or ship=127.0.0.1:2199.
struct NetworkAddress: Quantity {
  static let notation =
    "HOST:PORT or NAME=HOST:PORT, e.g. ship=127.0.0.1:2199, with a name of at most 32 bytes and a port from 0 to 65535"

  var network: LocalPushService.Network

  init?(argument: String) {
    // A name may have the sign, too; an address has none.
    let parts = argument.lastIndex(of: "=").map { (argument[..<$0], argument[argument.index(after: $0)...]) }
    let (name, place) = parts.map { (String($0.0), String($0.1)) } ?? ("", argument)
    guard let address = ListeningAddress(argument: place), parts == nil || !name.isEmpty,
      LocalPushService.Network.isPossible(name)
    else { return nil }
    network = .init(name: name, address: address.address)
  }
}

/// Moments of faults as typed: 30s:50% and 30s:5s.
enum LocalPushMoment {
  static let silence = "30s:50%"
  static let restart = "30s:5s"

  @Sendable static func parseSilence(_ text: String) throws -> LocalPushFaults.Silence {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let time = TimeSpan(argument: parts[0]), let share = Share(argument: parts[1]) else {
      throw ValidationError("'\(text)' is not a time and a share, e.g. \(silence).")
    }
    return .init(time: time.duration, share: share.value)
  }

  @Sendable static func parseRestart(_ text: String) throws -> LocalPushFaults.Restart {
    var (rest, network) = NetworkMark.split(text)
    let silent = ",silent"
    let isSilent = rest.hasSuffix(silent)
    if isSilent { rest.removeLast(silent.count) }
    let parts = rest.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let time = TimeSpan(argument: parts[0]), let pause = TimeSpan(argument: parts[1]) else {
      throw ValidationError(
        "'\(text)' is not a time and how long nobody listens, e.g. \(restart), \(restart),network=ship or \(restart),silent,network=ship."
      )
    }
    return .init(
      time: time.duration,
      outage: .init(pause: pause.duration, network: network, ending: isSilent ? .silent : .closed))
  }
}

/// The messages of `--local-push-messages`: a JSON object a line.
enum LocalPushMessageFile {
  /// The longest file in bytes.
  private static let maximumLength = 64 << 20

  /// The messages in the order of their times. Reports an error and throws an exit code if the file cannot be read, or a
  /// line is no message.
  ///
  /// - Parameter networks: their names.
  static func read(_ path: String, networks: [String]) throws -> [LocalPushService.Planned] {
    let bytes: [UInt8]
    do {
      bytes = try WholeFile.read(path, maximumLength: maximumLength)
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
    var planned: [LocalPushService.Planned] = []
    var object = JSONObject()
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (number, line) in lines.enumerated() where line.contains(where: { $0 > UInt8(ascii: " ") }) {
      guard let message = message(Array(line), &object) else {
        complain(
          "\(path):\(number + 1): expected an object with at_s, kind (text, invite or call_action), to or network, and text or action"
        )
        throw ExitStatus.damaged
      }
      if case .network(let name) = message.message.receiver, !networks.contains(name) {
        complain("\(path):\(number + 1): no --local-push has the network '\(name)'")
        throw ExitStatus.damaged
      }
      planned.append(message)
    }
    // Those of one time keep the order of their lines.
    return planned.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
  }

  private static func message(_ line: [UInt8], _ object: inout JSONObject) -> LocalPushService.Planned? {
    let text = line.rawBytes
    guard object.read(text), let value = object.value("at_s", text), object.tape.kind(value) == .number,
      let range = object.range("at_s", text),
      let seconds = Double(String(decoding: line[range], as: UTF8.self)), (0...1e9).contains(seconds),
      let receiver = receiver(object, text),
      let message = LocalPushOffer(
        kind: object.string("kind", text) ?? "", text: object.string("text", text),
        action: object.string("action", text), from: user("from", object, text), to: receiver)
    else { return nil }
    return .init(time: .seconds(seconds), message: message)
  }

  /// A user or a network, and not both.
  private static func receiver(_ object: JSONObject, _ text: RawSpan) -> LocalPushOffer.Receiver? {
    let network = object.value("network", text) == nil ? nil : object.string("network", text)
    guard object.value("network", text) != nil else { return user("to", object, text).map { .user($0) } }
    return object.value("to", text) == nil ? network.map { .network($0) } : nil
  }

  private static func user(_ key: String, _ object: JSONObject, _ text: RawSpan) -> LocalPushMessage.User? {
    if let device = object.integer(key, text) { return UInt64(exactly: device).map { .init(device: $0) } }
    return object.string(key, text).map { .init(identifier: $0, deviceName: "") }
  }
}
