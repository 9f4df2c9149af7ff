import DeviceProtocol
import GatewaySimulator
import HTTPEndpoint
import OutputSchema

/// The server of local push: messages for its users, and its faults.
extension ControlOperation {
  static let localPush = [
    ControlOperation(
      method: "GET", path: "/local-push", name: "getLocalPush",
      summary: "Where the server of local push listens, and the share of heartbeats that it does not send.",
      answer: Answer(status: 200, text: "The server.", schema: "LocalPush"), problems: [409]
    ) { service, _ in
      let simulator = try simulator(service)
      return try .json(
        Places(
          notification: simulator.localPush.map { "\($0)" }, control: simulator.localPushControl.map { "\($0)" },
          lostHeartbeats: simulator.lostLocalPushHeartbeats))
    },
    ControlOperation(
      method: "POST", path: "/local-push/messages", name: "sendLocalPush",
      summary:
        "Sends a user a text, an invitation to a call, or an action in a call. The answer says what became of it at once; whether the device has acknowledged it is in the counts.",
      body: "LocalPushMessage",
      answer: Answer(status: 200, text: "The outcome, as far as it is known at once.", schema: "LocalPushOutcome"),
      problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      let message = try call.request.decoded(Message.self)
      guard let outcome = simulator.offerLocalPush(message.content) else { throw missing }
      return try .json(Outcome(outcome: outcome))
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
      summary: "Ends all connections of local push, and listens again after a pause.", body: "LocalPushRestart",
      answer: Answer(status: 204, text: "Connections are ending. A restart that is under way goes on instead."),
      problems: [409]
    ) { service, call in
      let simulator = try simulator(service)
      simulator.beginRestartOfLocalPush(pause: .seconds(try call.request.decoded(Pause.self).seconds))
      return .done
    },
  ]

  /// The longest pause of a restart in seconds.
  static let longestPause = 3_600.0
  /// The most characters of a text and of an action.
  static let longestMessage = 4_000

  private static let missing = ControlProblem(409, "there is no server of local push: --local-push")

  private static func simulator(_ service: ControlService) throws(ControlProblem) -> Simulator {
    guard service.gateway.simulator.hasLocalPush else { throw missing }
    return service.gateway.simulator
  }

  private struct Places: Encodable {
    var notification: String?
    var control: String?
    var lostHeartbeats: Double
  }

  private struct Outcome: Encodable { var outcome: Simulator.LocalPushOutcome }

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

  private struct Pause: Decodable {
    let seconds: Double

    private enum Key: String, CodingKey, CaseIterable { case pauseS = "pause_s" }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      seconds = try container.decode(Double.self, forKey: .pauseS)
      guard (0...longestPause).contains(seconds) else {
        throw DecodingError.dataCorruptedError(
          forKey: .pauseS, in: container, debugDescription: "has to be seconds from 0 to 3600")
      }
    }
  }

  /// A text, an invitation or an action in a call.
  private struct Message: Decodable {
    let content: LocalPushMessage.Content

    private enum Key: String, CodingKey, CaseIterable { case kind, to, from, text, action }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      let kind = try container.decode(String.self, forKey: .kind)
      let allowed: [Key]
      switch kind {
      case "text": allowed = [.kind, .to, .from, .text]
      case "invite": allowed = [.kind, .to, .from]
      case "call_action": allowed = [.kind, .to, .action]
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
      let made = LocalPushMessage.Content(
        kind: kind, text: try text(.text), action: try text(.action),
        from: container.contains(.from) ? try Self.user(.from, container) : nil, to: try Self.user(.to, container))
      guard let made else {
        throw DecodingError.dataCorruptedError(
          forKey: .kind, in: container, debugDescription: "is of a message that cannot be sent")
      }
      content = made
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
