import BinaryProtocol
import Bytes
import DeviceProtocol
import PacketCapture

/// Messages of the device channel and of local push that are read back.
extension RecordFields {
  /// - Parameters:
  ///   - type: of the record.
  ///   - payload: the bytes of its payload, if it has any.
  /// - Throws: if a field is missing, or has a value that it cannot have.
  func message(_ type: RecordType, payload: [UInt8]?) throws(RecordError) -> ObservedMessage {
    type == .device ? .device(try deviceMessage(payload)) : .localPush(try localPushMessage(payload))
  }

  // MARK: the device channel

  private func deviceMessage(_ payload: [UInt8]?) throws(RecordError) -> DeviceMessage {
    switch try word("kind") {
    case "register":
      guard let environment = DeviceMessage.Registration.Environment(rawValue: try word("environment")) else {
        throw RecordError("unknown 'environment'")
      }
      return .register(
        DeviceMessage.Registration(
          version: try signed("version") ?? DeviceMessage.version, device: try large("device"),
          topic: try word("topic"), environment: environment, language: text("language") ?? "",
          generation: try large("generation")))
    case "registered":
      return .registered(
        DeviceMessage.Registered(device: try large("device"), topic: try word("topic"), token: try bytes("token")))
    case "online": return .online(try online())
    case "deliver": return .deliver(try delivery(payload))
    case "acknowledge":
      return .acknowledge(token: try bytes("token"), topic: try word("topic"), sequence: try large("sequence"))
    case "token_changed":
      return .tokenChanged(
        DeviceMessage.TokenChange(topic: try word("topic"), old: try bytes("token"), new: try bytes("new_token")))
    case "offline": return .offline(reason: text("reason"))
    case "refused":
      guard let reason = DeviceMessage.Refusal(rawValue: try word("reason")) else {
        throw RecordError("unknown 'reason'")
      }
      return .refused(reason: reason, topic: text("topic"))
    default: throw RecordError("unknown 'kind'")
    }
  }

  private func online() throws(RecordError) -> DeviceMessage.Online {
    let (tokens, topics, received) = (list("tokens"), list("topics"), integers("sequences"))
    guard tokens.count == topics.count, tokens.count == received.count else {
      throw RecordError("'tokens', 'topics' and 'sequences' are not as many")
    }
    var apps: [DeviceMessage.Online.App] = []
    for place in tokens.indices {
      apps.append(
        DeviceMessage.Online.App(
          token: try Self.bytes(tokens[place], "tokens"), topic: topics[place],
          received: UInt64(max(0, received[place]))))
    }
    return DeviceMessage.Online(
      version: try signed("version") ?? DeviceMessage.version, apps: apps, hasLowPower: flag("low_power") ?? false)
  }

  private func delivery(_ payload: [UInt8]?) throws(RecordError) -> DeviceMessage.Delivery {
    let sent = try time("sent")
    return DeviceMessage.Delivery(
      token: try bytes("token"), topic: try word("topic"), sequence: try large("sequence"), payload: payload ?? [],
      priority: UInt8(clamping: try required("priority", most: 255)), pushType: text("push_type"),
      expiration: try number("expiration").map { UInt32(clamping: $0) }, collapseID: text("collapse_id"),
      sent: sent.nanoseconds, isStored: flag("stored") ?? false, isRepeated: flag("repeated") ?? false)
  }

  // MARK: local push

  private func localPushMessage(_ payload: [UInt8]?) throws(RecordError) -> LocalPushMessage {
    guard let command = LocalPushMessage.Command(rawValue: try word("command")) else {
      throw RecordError("unknown 'command'")
    }
    var message = LocalPushMessage(acknowledging: UInt32(clamping: try required("identifier")))
    (message.command, message.content) = (command, try content(payload))
    let sent = try time("sent")
    message.sent = sent.isKnown ? sent.nanoseconds : nil
    return message
  }

  private func content(_ payload: [UInt8]?) throws(RecordError) -> LocalPushMessage.Content? {
    guard let kind = text("kind") else { return nil }
    switch kind {
    case "invite": return .invite(from: try user("sender"), to: try user("receiver"))
    case "user": return .user(try user("user"))
    case "call_action": return .callAction(try word("action"), of: try user("receiver"))
    case "text": return .text(try word("message"), from: try user("sender"), to: try user("receiver"))
    case "heartbeat": return .heartbeat(count: try large("count"))
    case "directory":
      let (users, names) = (list("users"), list("device_names"))
      guard users.count == names.count else { throw RecordError("'users' and 'device_names' are not as many") }
      return .directory(zip(users, names).map { LocalPushMessage.User(identifier: $0, deviceName: $1) })
    case "other":
      return .other(key: UInt8(clamping: try required("coding_key", most: 255)), payload ?? [])
    default: throw RecordError("unknown 'kind'")
    }
  }

  private func user(_ name: String) throws(RecordError) -> LocalPushMessage.User {
    LocalPushMessage.User(identifier: try word(name + ".uuid"), deviceName: try word(name + ".device_name"))
  }

  // MARK: values

  private func word(_ name: String) throws(RecordError) -> String {
    guard let text = text(name) else { throw RecordError("missing field '\(name)'") }
    return text
  }

  private func large(_ name: String) throws(RecordError) -> UInt64 { UInt64(try required(name, most: .max)) }

  private func bytes(_ name: String) throws(RecordError) -> [UInt8] { try Self.bytes(try word(name), name) }

  private static func bytes(_ text: String, _ name: String) throws(RecordError) -> [UInt8] {
    var writer = ByteWriter(capacity: text.utf8.count / 2)
    guard writer.write(bytesOfHexadecimal: Array(text.utf8).rawBytes) else {
      throw RecordError("'\(name)' is not hexadecimal")
    }
    return Array(copying: writer.bytes)
  }
}
