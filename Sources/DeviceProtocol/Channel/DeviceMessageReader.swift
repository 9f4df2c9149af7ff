import Bytes

/// Reads messages of the device channel. Its memory is reused for the next one.
public struct DeviceMessageReader: Sendable {
  private var object = JSONObject()

  public init() {}

  /// Reads the JSON object of a message. Members that are not known are ignored.
  ///
  /// - Parameter body: the bytes behind the length.
  /// - Throws: a `MessageError`.
  public mutating func read(_ body: RawSpan) throws(MessageError) -> DeviceMessage {
    try object.readMessage(body)
    let name = try string("message", body)
    switch name {
    case "register": return .register(try registration(body))
    case "registered":
      return .registered(
        DeviceMessage.Registered(
          device: try number("device", body), topic: try string("topic", body), token: try bytes("token", body)))
    case "online": return .online(try online(body))
    case "deliver": return .deliver(try delivery(body))
    case "acknowledge":
      return .acknowledge(
        token: try bytes("token", body), topic: try string("topic", body), sequence: try number("sequence", body))
    case "token_changed":
      return .tokenChanged(
        DeviceMessage.TokenChange(
          topic: try string("topic", body), old: try bytes("old", body), new: try bytes("new", body)))
    case "offline": return .offline(reason: try optional("reason", body))
    case "refused":
      guard let reason = DeviceMessage.Refusal(rawValue: try string("reason", body)) else { throw .member("reason") }
      return .refused(reason: reason, topic: try optional("topic", body))
    default: throw .unknown(name)
    }
  }

  // MARK: messages

  private func registration(_ body: RawSpan) throws(MessageError) -> DeviceMessage.Registration {
    guard
      let environment = DeviceMessage.Registration.Environment(
        rawValue: try optional("environment", body) ?? "production")
    else { throw .member("environment") }
    return DeviceMessage.Registration(
      version: try integer("version", body), device: try number("device", body), topic: try string("topic", body),
      environment: environment, language: try optional("language", body) ?? "",
      generation: has("generation", body) ? try number("generation", body) : 0)
  }

  private func online(_ body: RawSpan) throws(MessageError) -> DeviceMessage.Online {
    guard let list = object.value("tokens", body), object.tape.kind(list) == .array else { throw .member("tokens") }
    var apps: [DeviceMessage.Online.App] = []
    var elements: [Int] = []
    object.tape.forEachElement(ofArray: list) { elements.append($0) }
    var element = JSONObject()
    for place in elements {
      let text = body.extracting(object.tape.range(place))
      guard element.read(text), let token = element.bytes("token", text), let topic = element.string("topic", text)
      else {
        throw .member("tokens")
      }
      var received: UInt64 = 0
      if element.value("received", text) != nil {
        guard let sequence = element.integer("received", text), (0...DeviceMessage.highestReceived).contains(sequence)
        else {
          throw .member("received")
        }
        received = UInt64(sequence)
      }
      apps.append(DeviceMessage.Online.App(token: token, topic: topic, received: received))
    }
    return DeviceMessage.Online(
      version: try integer("version", body), apps: apps, hasLowPower: try flag("low_power", body))
  }

  private func delivery(_ body: RawSpan) throws(MessageError) -> DeviceMessage.Delivery {
    guard let priority = UInt8(exactly: try integer("priority", body)) else { throw .member("priority") }
    var expiration: UInt32?
    if has("expiration", body) {
      guard let time = UInt32(exactly: try integer("expiration", body)) else { throw .member("expiration") }
      expiration = time
    }
    guard let text = object.string("payload", body) else { throw .member("payload") }
    var payload = ByteWriter(capacity: text.utf8.count * 3 / 4)
    guard payload.write(bytesOfBase64: Array(text.utf8).rawBytes) else { throw .member("payload") }
    return DeviceMessage.Delivery(
      token: try bytes("token", body), topic: try string("topic", body), sequence: try number("sequence", body),
      payload: Array(copying: payload.bytes), priority: priority, pushType: try optional("push_type", body),
      expiration: expiration, collapseID: try optional("collapse_id", body), sent: Int64(try integer("sent_ns", body)),
      isStored: try flag("stored", body), isRepeated: try flag("repeated", body))
  }

  // MARK: members

  private func has(_ key: String, _ body: RawSpan) -> Bool { object.value(key, body) != nil }

  private func string(_ key: String, _ body: RawSpan) throws(MessageError) -> String {
    guard let value = object.string(key, body) else { throw .member(key) }
    return value
  }

  private func optional(_ key: String, _ body: RawSpan) throws(MessageError) -> String? {
    has(key, body) ? try string(key, body) : nil
  }

  private func integer(_ key: String, _ body: RawSpan) throws(MessageError) -> Int {
    guard let value = object.integer(key, body) else { throw .member(key) }
    return value
  }

  private func number(_ key: String, _ body: RawSpan) throws(MessageError) -> UInt64 {
    let value = try integer(key, body)
    guard value >= 0 else { throw .member(key) }
    return UInt64(value)
  }

  private func flag(_ key: String, _ body: RawSpan) throws(MessageError) -> Bool {
    guard let value = object.value(key, body) else { return false }
    switch object.tape.kind(value) {
    case .literalTrue: return true
    case .literalFalse: return false
    default: throw .member(key)
    }
  }

  private func bytes(_ key: String, _ body: RawSpan) throws(MessageError) -> [UInt8] {
    guard let value = object.bytes(key, body) else { throw .member(key) }
    return value
  }
}

extension JSONObject {
  mutating func readMessage(_ body: RawSpan) throws(MessageError) {
    if let offset = fault(reading: body) { throw .json(offset: offset) }
  }

  /// The bytes of a member that is a string of hexadecimal digits.
  func bytes(_ key: String, _ text: RawSpan) -> [UInt8]? {
    guard let digits = string(key, text) else { return nil }
    var bytes = ByteWriter(capacity: digits.utf8.count / 2)
    guard bytes.write(bytesOfHexadecimal: Array(digits.utf8).rawBytes) else { return nil }
    return Array(copying: bytes.bytes)
  }
}
