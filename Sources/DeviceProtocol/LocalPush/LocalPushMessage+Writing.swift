import Bytes

extension LocalPushMessage {
  /// Writes the message with its length.
  ///
  /// - Parameter order: of the length; the sample writes that of its processor, which is little-endian in practice.
  public func write(_ order: MessageFraming.ByteOrder = .littleEndian, to output: inout ByteWriter) {
    output.write(framed: order) { writeBody(to: &$0) }
  }

  /// Writes the JSON object, which has no line ends.
  public func writeBody(to output: inout ByteWriter) {
    var object = ObjectWriter(&output)
    object.member("command", command.rawValue, &output)
    object.member("requestIdentifier", UInt64(identifier), &output)
    if let sent { object.member("sentNs", UInt64(max(0, sent)), &output) }
    if let content {
      object.key("payload", &output)
      var payload = ObjectWriter(&output)
      payload.member("codingKey", UInt64(content.codingKey), &output)
      payload.key("data", &output)
      var inner = ByteWriter(capacity: 256)
      content.write(to: &inner)
      output.write("\"")
      output.write(base64: inner.bytes)
      output.write("\"}")
    }
    output.write("}")
  }
}

extension LocalPushMessage.Content {
  /// Writes the inner JSON object.
  func write(to output: inout ByteWriter) {
    if case .other(_, let bytes) = self { return output.write(bytes.rawBytes) }
    var object = ObjectWriter(&output)
    switch self {
    case .invite(let sender, let receiver): object.routing(sender, receiver, &output)
    case .user(let user): object.members(of: user, &output)
    case .callAction(let action, let receiver):
      object.member("action", action, &output)
      object.member("receiver", receiver, &output)
    case .text(let message, let sender, let receiver):
      object.routing(sender, receiver, &output)
      object.member("message", message, &output)
    case .heartbeat(let count): object.member("count", count, &output)
    case .directory(let users):
      object.key("users", &output)
      output.write("[")
      for (place, user) in users.enumerated() {
        if place > 0 { output.write(",") }
        var element = ObjectWriter(&output)
        element.members(of: user, &output)
        output.write("}")
      }
      output.write("]")
    case .other: break
    }
    output.write("}")
  }
}

extension ObjectWriter {
  fileprivate mutating func members(of user: LocalPushMessage.User, _ output: inout ByteWriter) {
    member("uuid", user.identifier, &output)
    member("deviceName", user.deviceName, &output)
  }

  fileprivate mutating func member(_ key: StaticString, _ user: LocalPushMessage.User, _ output: inout ByteWriter) {
    self.key(key, &output)
    var object = ObjectWriter(&output)
    object.members(of: user, &output)
    output.write("}")
  }

  fileprivate mutating func routing(
    _ sender: LocalPushMessage.User, _ receiver: LocalPushMessage.User, _ output: inout ByteWriter
  ) {
    key("routing", &output)
    var object = ObjectWriter(&output)
    object.member("sender", sender, &output)
    object.member("receiver", receiver, &output)
    output.write("}")
  }
}
