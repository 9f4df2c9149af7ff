import Bytes

extension DeviceMessage {
  /// Writes the message with its length.
  public func write(to output: inout ByteWriter) {
    output.write(framed: .bigEndian) { writeBody(to: &$0) }
  }

  /// Writes the JSON object, which has no line ends.
  public func writeBody(to output: inout ByteWriter) {
    var object = ObjectWriter(&output, name: name)
    switch self {
    case .register(let registration):
      object.member("version", registration.version, &output)
      object.member("device", UInt64(registration.device), &output)
      object.member("topic", registration.topic, &output)
      object.member("environment", registration.environment.rawValue, &output)
      if !registration.language.isEmpty { object.member("language", registration.language, &output) }
      object.member("generation", registration.generation, &output)
    case .registered(let registered):
      object.member("device", registered.device, &output)
      object.member("topic", registered.topic, &output)
      object.member("token", hex: registered.token, &output)
    case .online(let online):
      object.member("version", online.version, &output)
      object.key("tokens", &output)
      output.write("[")
      for (place, app) in online.apps.enumerated() {
        if place > 0 { output.write(",") }
        var element = ObjectWriter(&output)
        element.member("token", hex: app.token, &output)
        element.member("topic", app.topic, &output)
        if app.received > 0 { element.member("received", app.received, &output) }
        output.write("}")
      }
      output.write("]")
      if online.hasLowPower { object.member("low_power", true, &output) }
    case .deliver(let delivery): object.members(of: delivery, &output)
    case .acknowledge(let token, let topic, let sequence):
      object.member("token", hex: token, &output)
      object.member("topic", topic, &output)
      object.member("sequence", sequence, &output)
    case .tokenChanged(let change):
      object.member("topic", change.topic, &output)
      object.member("old", hex: change.old, &output)
      object.member("new", hex: change.new, &output)
    case .offline(let reason):
      if let reason { object.member("reason", reason, &output) }
    case .refused(let reason, let topic):
      object.member("reason", reason.rawValue, &output)
      if let topic { object.member("topic", topic, &output) }
    }
    output.write("}")
  }

  /// The name of the message in its JSON object.
  public var name: String {
    switch self {
    case .register: "register"
    case .registered: "registered"
    case .online: "online"
    case .deliver: "deliver"
    case .acknowledge: "acknowledge"
    case .tokenChanged: "token_changed"
    case .offline: "offline"
    case .refused: "refused"
    }
  }
}

extension ObjectWriter {
  fileprivate mutating func members(of delivery: DeviceMessage.Delivery, _ output: inout ByteWriter) {
    member("token", hex: delivery.token, &output)
    member("topic", delivery.topic, &output)
    member("sequence", delivery.sequence, &output)
    member("priority", Int(delivery.priority), &output)
    if let pushType = delivery.pushType { member("push_type", pushType, &output) }
    if let expiration = delivery.expiration { member("expiration", UInt64(expiration), &output) }
    if let collapseID = delivery.collapseID { member("collapse_id", collapseID, &output) }
    member("sent_ns", Int(delivery.sent), &output)
    member("stored", delivery.isStored, &output)
    if delivery.isRepeated { member("repeated", true, &output) }
    key("payload", &output)
    output.write("\"")
    output.write(base64: delivery.payload.rawBytes)
    output.write("\"")
  }
}

/// Writes the members of a JSON object, of which the caller writes the end.
struct ObjectWriter {
  private var hasMembers = false

  init(_ output: inout ByteWriter) { output.write("{") }

  /// An object whose first member names the message.
  init(_ output: inout ByteWriter, name: String) {
    self.init(&output)
    member("message", name, &output)
  }

  mutating func key(_ key: StaticString, _ output: inout ByteWriter) {
    if hasMembers { output.write(",") }
    hasMembers = true
    output.write("\"")
    output.write(key)
    output.write("\":")
  }

  mutating func member(_ key: StaticString, _ value: String, _ output: inout ByteWriter) {
    self.key(key, &output)
    output.write(jsonString: value, onlyRequired: true)
  }

  mutating func member(_ key: StaticString, hex value: [UInt8], _ output: inout ByteWriter) {
    self.key(key, &output)
    output.write("\"")
    output.write(hex: value.rawBytes)
    output.write("\"")
  }

  mutating func member(_ key: StaticString, _ value: Int, _ output: inout ByteWriter) {
    self.key(key, &output)
    output.write(decimal: value)
  }

  mutating func member(_ key: StaticString, _ value: UInt64, _ output: inout ByteWriter) {
    self.key(key, &output)
    output.write(decimal: value)
  }

  mutating func member(_ key: StaticString, _ value: Bool, _ output: inout ByteWriter) {
    self.key(key, &output)
    output.write(value ? "true" : "false")
  }
}
