import Bytes
import DeviceProtocol
import PacketCapture

/// The fields of messages of the device channel and of local push, in the order of the table of fields.

extension DeviceRecord: WritableRecord {
  package static var type: RecordType { .device }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("device", place, direction)
    switch message {
    case .register(let registration):
      output.field("kind", message.kind)
      output.field("topic", registration.topic)
      output.field("version", registration.version)
      output.field("device", Int(clamping: registration.device))
      output.field("environment", registration.environment.rawValue)
      if !registration.language.isEmpty { output.field("language", registration.language) }
      output.field("generation", Int(clamping: registration.generation))
    case .registered(let registered):
      output.field("token", hex: registered.token.rawBytes)
      output.field("kind", message.kind)
      output.field("topic", registered.topic)
      output.field("device", Int(clamping: registered.device))
    case .online(let online):
      output.field("kind", message.kind)
      output.field("version", online.version)
      if online.hasLowPower { output.field("low_power", true) }
      output.field("tokens", online.apps.map { hexadecimal($0.token) })
      output.field("topics", online.apps.map(\.topic))
      output.field("sequences", integers: online.apps.map { Int(clamping: $0.received) })
    case .deliver(let delivery): write(delivery, to: &output)
    case .acknowledge(let token, let topic, let sequence):
      output.field("token", hex: token.rawBytes)
      output.field("kind", message.kind)
      output.field("topic", topic)
      output.field("sequence", Int(clamping: sequence))
    case .tokenChanged(let change):
      output.field("token", hex: change.old.rawBytes)
      output.field("kind", message.kind)
      output.field("topic", change.topic)
      output.field("new_token", hex: change.new.rawBytes)
    case .offline(let reason):
      output.field("kind", message.kind)
      output.field("reason", optional: reason)
    case .refused(let reason, let topic):
      output.field("kind", message.kind)
      output.field("reason", reason.rawValue)
      output.field("topic", optional: topic)
    }
    output.end()
  }

  private func write(_ delivery: DeviceMessage.Delivery, to output: inout some FieldWriter & ~Copyable) {
    output.field("expiration", optional: delivery.expiration.map(Int.init))
    output.field("priority", Int(delivery.priority))
    output.field("token", hex: delivery.token.rawBytes)
    output.write(payload: delivery.payload)
    output.field("kind", message.kind)
    output.field("topic", delivery.topic)
    output.field("push_type", optional: delivery.pushType)
    output.field("collapse_id", optional: delivery.collapseID)
    output.field("sequence", Int(clamping: delivery.sequence))
    output.field("sent", sent: delivery.sent)
    if delivery.isStored { output.field("stored", true) }
    if delivery.isRepeated { output.field("repeated", true) }
  }
}

extension LocalPushRecord: WritableRecord {
  package static var type: RecordType { .localPush }

  package func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("local_push", place, direction)
    output.field("command", message.command.rawValue)
    output.field("identifier", Int(message.identifier))
    if let content = message.content { write(content, to: &output) } else { writeSent(to: &output) }
    output.end()
  }

  private func writeSent(to output: inout some FieldWriter & ~Copyable) {
    if let sent = message.sent { output.field("sent", sent: sent) }
  }

  private func write(_ content: LocalPushMessage.Content, to output: inout some FieldWriter & ~Copyable) {
    if case .other(_, let bytes) = content { output.write(payload: bytes) }
    output.field("kind", content.name)
    if case .callAction(let action, _) = content { output.field("action", action) }
    writeSent(to: &output)
    output.field("coding_key", Int(content.codingKey))
    switch content {
    case .invite(let sender, let receiver):
      output.field("sender", sender)
      output.field("receiver", receiver)
    case .user(let user): output.field("user", user)
    case .callAction(_, let receiver): output.field("receiver", receiver)
    case .text(let message, let sender, let receiver):
      output.field("sender", sender)
      output.field("receiver", receiver)
      output.field("message", message)
    case .heartbeat(let count): output.field("count", Int(clamping: count))
    case .directory(let users):
      output.field("users", users.map(\.identifier))
      output.field("device_names", users.map(\.deviceName))
    case .other: break
    }
  }
}

/// UNIX nanoseconds that are read back: from 1970 to 2261.
private let writtenTimes: Range<Int64> = 0..<9_214_646_400_000_000_000

extension FieldWriter where Self: ~Copyable {
  /// A time that an end says; left out if no record can have it.
  fileprivate mutating func field(_ name: StaticString, sent nanoseconds: Int64) {
    if writtenTimes.contains(nanoseconds) { field(name, time: Timestamp(nanoseconds: nanoseconds)) }
  }

  /// Bytes that usually are JSON.
  fileprivate mutating func write(payload: [UInt8]) {
    field("payload_length", payload.count)
    if !payload.isEmpty { field("payload", payload: payload.rawBytes) }
  }

  fileprivate mutating func field(_ name: StaticString, _ user: LocalPushMessage.User) {
    beginObject(name)
    field("uuid", user.identifier)
    field("device_name", user.deviceName)
    endObject()
  }
}

private func hexadecimal(_ bytes: [UInt8]) -> String {
  var writer = ByteWriter(capacity: 2 * bytes.count)
  writer.write(hex: bytes.rawBytes)
  return String(decoding: Array(copying: writer.bytes), as: UTF8.self)
}
