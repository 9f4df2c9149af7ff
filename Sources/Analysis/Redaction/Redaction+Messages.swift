import Bytes
import DeviceProtocol
import PushModel
import Records

/// Messages of the device channel and of local push: tokens, topics, users, texts and payloads become pseudonyms. Numbers
/// stay: of devices in their population, sequences, identifiers of requests, and times.
extension Redaction {
  package func record(_ record: MessageRecord) -> MessageRecord {
    switch record {
    case .device(var record):
      record.message = message(record.message)
      return .device(record)
    case .localPush(var record):
      record.message.content = record.message.content.map(content)
      return .localPush(record)
    }
  }

  private func message(_ message: DeviceMessage) -> DeviceMessage {
    switch message {
    case .register(var registration):
      registration.topic = providerTopic(registration.topic)
      registration.language = RedactedText.masked(registration.language)
      return .register(registration)
    case .registered(var registered):
      registered.token = token(registered.token.rawBytes)
      registered.topic = providerTopic(registered.topic)
      return .registered(registered)
    case .online(var online):
      online.apps = online.apps.map { app in
        DeviceMessage.Online.App(
          token: token(app.token.rawBytes), topic: providerTopic(app.topic), received: app.received)
      }
      return .online(online)
    case .deliver(var delivery):
      delivery.token = token(delivery.token.rawBytes)
      delivery.topic = providerTopic(delivery.topic)
      delivery.payload = payload(delivery.payload)
      delivery.pushType = delivery.pushType.map(Self.pushType)
      delivery.collapseID = delivery.collapseID.map(sameLength)
      return .deliver(delivery)
    case .acknowledge(let acknowledged, let topic, let sequence):
      return .acknowledge(
        token: token(acknowledged.rawBytes), topic: providerTopic(topic), sequence: sequence)
    case .tokenChanged(let change):
      return .tokenChanged(
        DeviceMessage.TokenChange(
          topic: providerTopic(change.topic), old: token(change.old.rawBytes), new: token(change.new.rawBytes)))
    case .offline(let reason): return .offline(reason: reason.map(RedactedText.masked))
    case .refused(let reason, let topic): return .refused(reason: reason, topic: topic.map(providerTopic))
    }
  }

  private func content(_ content: LocalPushMessage.Content) -> LocalPushMessage.Content {
    switch content {
    case .invite(let sender, let receiver): .invite(from: user(sender), to: user(receiver))
    case .user(let user): .user(self.user(user))
    case .callAction(let action, let receiver): .callAction(RedactedText.masked(action), of: user(receiver))
    case .text(let message, let sender, let receiver):
      .text(sameLength(message), from: user(sender), to: user(receiver))
    case .heartbeat: content
    case .directory(let users): .directory(users.map(user))
    case .other(let key, let bytes): .other(key: key, payload(bytes))
    }
  }

  private func user(_ user: LocalPushMessage.User) -> LocalPushMessage.User {
    LocalPushMessage.User(identifier: identifier(user.identifier), deviceName: sameLength(user.deviceName))
  }
}
