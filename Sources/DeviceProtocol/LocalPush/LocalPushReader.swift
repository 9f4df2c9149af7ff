import Bytes

/// Reads messages of local push. Its memory is reused for the next one.
public struct LocalPushReader: Sendable {
  private var object = JSONObject()
  private var payload = JSONObject()
  private var content = JSONObject()

  public init() {}

  /// Reads the JSON object of a message. Members that are not known are ignored; content that is not that of its key is
  /// `.other`.
  ///
  /// - Parameter body: the bytes behind the length.
  /// - Throws: a `MessageError`.
  public mutating func read(_ body: RawSpan) throws(MessageError) -> LocalPushMessage {
    try object.readMessage(body)
    guard let command = object.string("command", body).flatMap(LocalPushMessage.Command.init) else {
      throw .member("command")
    }
    guard let identifier = object.integer("requestIdentifier", body).flatMap(UInt32.init(exactly:)) else {
      throw .member("requestIdentifier")
    }
    guard let range = object.range("payload", body), object.value("payload", body).map(object.tape.kind) != .null else {
      guard command == .acknowledge else { throw .member("payload") }
      return LocalPushMessage(command, identifier, nil)
    }
    var message = LocalPushMessage(command, identifier, try readPayload(body.extracting(range)))
    message.sent = object.integer("sentNs", body).flatMap { $0 < 0 ? nil : Int64(exactly: $0) }
    return message
  }

  private mutating func readPayload(_ text: RawSpan) throws(MessageError) -> LocalPushMessage.Content {
    guard payload.read(text) else { throw .member("payload") }
    guard let key = payload.integer("codingKey", text).flatMap(UInt8.init(exactly:)) else { throw .member("codingKey") }
    guard let data = payload.string("data", text) else { throw .member("data") }
    var inner = ByteWriter(capacity: data.utf8.count * 3 / 4)
    guard inner.write(bytesOfBase64: Array(data.utf8).rawBytes) else { throw .member("data") }
    return readContent(key, inner.bytes) ?? .other(key: key, Array(copying: inner.bytes))
  }

  private mutating func readContent(_ key: UInt8, _ text: RawSpan) -> LocalPushMessage.Content? {
    guard content.read(text) else { return nil }
    switch key {
    case 0: return routing(text).map { .invite(from: $0.sender, to: $0.receiver) }
    case 1: return Self.user(content, text).map { .user($0) }
    case 2:
      guard let action = content.string("action", text), let receiver = user("receiver", in: content, text) else {
        return nil
      }
      return .callAction(action, of: receiver)
    case 3:
      guard let routing = routing(text), let message = content.string("message", text) else { return nil }
      return .text(message, from: routing.sender, to: routing.receiver)
    case 4: return content.integer("count", text).flatMap(UInt64.init(exactly:)).map { .heartbeat(count: $0) }
    case 5: return directory(text)
    default: return nil
    }
  }

  private func routing(_ text: RawSpan) -> (sender: LocalPushMessage.User, receiver: LocalPushMessage.User)? {
    guard let range = content.range("routing", text) else { return nil }
    var routing = JSONObject()
    let inner = text.extracting(range)
    guard routing.read(inner), let sender = user("sender", in: routing, inner),
      let receiver = user("receiver", in: routing, inner)
    else { return nil }
    return (sender, receiver)
  }

  private func directory(_ text: RawSpan) -> LocalPushMessage.Content? {
    guard let list = content.value("users", text), content.tape.kind(list) == .array else { return nil }
    var elements: [Int] = []
    content.tape.forEachElement(ofArray: list) { elements.append($0) }
    var users: [LocalPushMessage.User] = []
    for element in elements {
      let inner = text.extracting(content.tape.range(element))
      var object = JSONObject()
      guard object.read(inner), let user = Self.user(object, inner) else { return nil }
      users.append(user)
    }
    return .directory(users)
  }

  private func user(_ key: String, in object: JSONObject, _ text: RawSpan) -> LocalPushMessage.User? {
    guard let range = object.range(key, text) else { return nil }
    var user = JSONObject()
    let inner = text.extracting(range)
    return user.read(inner) ? Self.user(user, inner) : nil
  }

  private static func user(_ object: JSONObject, _ text: RawSpan) -> LocalPushMessage.User? {
    guard let identifier = object.string("uuid", text), let name = object.string("deviceName", text) else { return nil }
    return LocalPushMessage.User(identifier: identifier, deviceName: name)
  }
}
