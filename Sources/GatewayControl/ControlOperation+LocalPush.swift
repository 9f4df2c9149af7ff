import DeviceProtocol
import GatewaySimulator
import HTTPEndpoint
import OutputSchema

/// The server of local push: messages for its users, and its faults.
extension ControlOperation {
  static let localPush = [
    ControlOperation(
      method: "GET", path: "/local-push", name: "getLocalPush",
      summary:
        "The networks of local push: where their notification channels are, and how many users are there. The share of heartbeats that the server does not send.",
      answer: Answer(status: 200, text: "The server.", schema: "LocalPush"), problems: [409]
    ) { service, _ in
      let simulator = try simulator(service)
      return try .json(
        Places(
          networks: simulator.localPushStates.map(NetworkState.init),
          control: simulator.localPushControl.map { "\($0)" }, lostHeartbeats: simulator.lostLocalPushHeartbeats))
    },
    ControlOperation(
      method: "GET", path: "/local-push/users", name: "getLocalPushUsers",
      summary: "Users with a notification channel, and the network that each is on, by their identifiers.",
      parameters: [
        Parameter(
          name: "network", text: "Only those on the network of this name.",
          schema: ["type": "string", "maxLength": JSONValue.number("\(LocalPushService.longestName)")])
      ], answer: Answer(status: 200, text: "At most 1,000 of them.", schema: "LocalPushUsers"), problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      let network = call.query["network"]
      guard let (users, count) = simulator.localPushUsers(on: network, most: longestUserList) else {
        throw unknown(network ?? "")
      }
      return try .json(
        Users(
          users: users.map {
            UserState(user: $0.user.identifier, deviceName: $0.user.deviceName, network: $0.network)
          }, count: count))
    },
    ControlOperation(
      method: "POST", path: "/local-push/messages", name: "sendLocalPush",
      summary:
        "Sends a user, or everybody on a network at the moment, a text, an invitation to a call, or an action in a call. The answer says what became of it at once; whether a device has acknowledged it is in the counts. A message for a network with nobody on it is absent.",
      body: "LocalPushMessage",
      answer: Answer(status: 200, text: "The outcome, as far as it is known at once.", schema: "LocalPushOutcome"),
      problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      let message = try call.request.decoded(Message.self).offer
      let outcomes = simulator.offerLocalPush(message)
      switch message.receiver {
      case .user:
        guard let outcome = outcomes?.outcomes.keys.first else { throw missing }
        return try .json(Outcome(outcome: outcome))
      case .network(let name):
        guard let outcomes else { throw unknown(name) }
        return try .json(NetworkOutcome(outcomes))
      }
    },
    ControlOperation(
      method: "POST", path: "/local-push/heartbeats", name: "loseHeartbeats",
      summary: "The share of heartbeats of local push that are not sent from now on.", body: "LostHeartbeats",
      answer: Answer(status: 204, text: "They are not sent."), problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      simulator.loseLocalPushHeartbeats(try call.request.decoded(PartOfAll.self).share)
      return .done
    },
    ControlOperation(
      method: "POST", path: "/local-push/silence", name: "silenceLocalPush",
      summary:
        "The server falls silent on a share of its open connections: it neither reads nor writes them any more, and does not close them.",
      body: "LocalPushSilence", answer: Answer(status: 204, text: "It is silent."), problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      simulator.silenceLocalPush(try call.request.decoded(PartOfAll.self).share)
      return .done
    },
    ControlOperation(
      method: "POST", path: "/local-push/restart", name: "restartLocalPush",
      summary:
        "Ends all connections of local push, or those of a network, or lets them be silent; and listens again after a pause.",
      body: "LocalPushRestart",
      answer: Answer(status: 204, text: "Connections are ending. A restart that is under way goes on instead."),
      problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      let outage = try call.request.decoded(Restart.self).outage
      guard simulator.beginRestartOfLocalPush(outage) else { throw unknown(outage.network ?? "") }
      return .done
    },
  ]

  /// The longest pause of a restart in seconds.
  static let longestPause = 3_600.0
  /// The most characters of a text and of an action.
  static let longestMessage = 4_000
  /// The most users in an answer.
  private static let longestUserList = 1_000

  private static let missing = ControlProblem(409, "there is no server of local push: --local-push")

  private static func unknown(_ network: String) -> ControlProblem {
    ControlProblem(409, "no network of local push has the name '\(network)'")
  }

  private static func simulator(_ service: ControlService) throws(ControlProblem) -> Simulator {
    guard service.gateway.simulator.hasLocalPush else { throw missing }
    return service.gateway.simulator
  }

  private struct Places: Encodable {
    var networks: [NetworkState]
    var control: String?
    var lostHeartbeats: Double
  }

  private struct NetworkState: Encodable {
    var name: String
    var address: String
    var here: Int
    var listens: Bool

    init(_ state: Simulator.LocalPushNetworkState) {
      (name, address) = (state.network.name, "\(state.network.address)")
      (here, listens) = (state.here, state.listens)
    }
  }

  private struct Users: Encodable {
    var users: [UserState]
    /// Those who are not listed included.
    var count: Int
  }

  private struct UserState: Encodable {
    var user: String
    var deviceName: String
    var network: String
  }

  private struct Outcome: Encodable { var outcome: Simulator.LocalPushOutcome }

  private struct NetworkOutcome: Encodable {
    var receivers: Int
    var sent: Int
    var absent: Int
    var overloaded: Int
    var silenced: Int

    init(_ outcomes: Simulator.LocalPushOutcomes) {
      func count(_ outcome: Simulator.LocalPushOutcome) -> Int { outcomes.outcomes[outcome] ?? 0 }
      receivers = outcomes.receivers
      (sent, absent, overloaded, silenced) = (count(.sent), count(.absent), count(.overloaded), count(.silenced))
    }
  }

  private struct PartOfAll: Decodable {
    let share: Double

    private enum Key: String, CodingKey, CaseIterable { case share }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      share = try container.decode(Double.self, forKey: .share)
      guard (0...1).contains(share) else {
        throw DecodingError.dataCorruptedError(
          forKey: .share, in: container, debugDescription: "has to be a share from 0 to 1")
      }
    }
  }

  private struct Restart: Decodable {
    let outage: LocalPushFaults.Outage

    private enum Key: String, CodingKey, CaseIterable {
      case pauseS = "pause_s"
      case network, ending
    }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      let seconds = try container.decode(Double.self, forKey: .pauseS)
      guard (0...longestPause).contains(seconds) else {
        throw DecodingError.dataCorruptedError(
          forKey: .pauseS, in: container, debugDescription: "has to be seconds from 0 to 3600")
      }
      var outage = LocalPushFaults.Outage(pause: .seconds(seconds))
      if container.contains(.network) { outage.network = try networkName(.network, container) }
      if container.contains(.ending) {
        outage.ending = try container.choice(of: LocalPushFaults.Outage.Ending.self, forKey: .ending)
      }
      self.outage = outage
    }
  }

  private static func networkName<Key>(_ key: Key, _ container: KeyedDecodingContainer<Key>) throws -> String {
    let name = try container.decode(String.self, forKey: key)
    // A longer one in bytes is that of no network.
    guard name.unicodeScalars.count <= LocalPushService.longestName else {
      throw DecodingError.dataCorruptedError(
        forKey: key, in: container, debugDescription: "has to be at most \(LocalPushService.longestName) characters")
    }
    return name
  }

  /// A text, an invitation or an action in a call, for a user or for everybody on a network.
  private struct Message: Decodable {
    let offer: LocalPushOffer

    private enum Key: String, CodingKey, CaseIterable { case kind, to, network, from, text, action }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      let kind = try container.decode(String.self, forKey: .kind)
      let allowed: [Key]
      switch kind {
      case "text": allowed = [.kind, .to, .network, .from, .text]
      case "invite": allowed = [.kind, .to, .network, .from]
      case "call_action": allowed = [.kind, .to, .network, .action]
      default:
        throw DecodingError.dataCorruptedError(
          forKey: .kind, in: container, debugDescription: "has to be text, invite or call_action")
      }
      try decoder.requireKnown(allowed.map(\.rawValue))
      func text(_ key: Key) throws -> String? {
        guard allowed.contains(key) else { return nil }
        let text = try container.decode(String.self, forKey: key)
        guard text.unicodeScalars.count <= longestMessage else {
          throw DecodingError.dataCorruptedError(
            forKey: key, in: container, debugDescription: "has to be at most \(longestMessage) characters")
        }
        return text
      }
      guard container.contains(.to) != container.contains(.network) else {
        throw DecodingError.dataCorruptedError(
          forKey: .to, in: container, debugDescription: "or network has to be there, and not both")
      }
      let receiver: LocalPushOffer.Receiver =
        container.contains(.to)
        ? .user(try Self.user(.to, container)) : .network(try networkName(.network, container))
      let made = LocalPushOffer(
        kind: kind, text: try text(.text), action: try text(.action),
        from: container.contains(.from) ? try Self.user(.from, container) : nil, to: receiver)
      guard let made else {
        throw DecodingError.dataCorruptedError(
          forKey: .kind, in: container, debugDescription: "is of a message that cannot be sent")
      }
      offer = made
    }

    /// A user's identifier, or the number of a device.
    private static func user(_ key: Key, _ container: KeyedDecodingContainer<Key>) throws -> LocalPushMessage.User {
      if let device = try? container.decode(Int.self, forKey: key) {
        guard (0...Int(Int32.max)).contains(device) else {
          throw DecodingError.dataCorruptedError(
            forKey: key, in: container, debugDescription: "has to be a number from 0 to \(Int32.max)")
        }
        return LocalPushMessage.User(device: UInt64(device))
      }
      let identifier = try container.decode(String.self, forKey: key)
      guard (1...64).contains(identifier.utf8.count), identifier.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
        throw DecodingError.dataCorruptedError(
          forKey: key, in: container,
          debugDescription: "has to be the number of a device, or 1 to 64 printable characters of ASCII")
      }
      return LocalPushMessage.User(identifier: identifier, deviceName: "")
    }
  }
}
