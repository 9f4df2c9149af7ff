import DeviceProtocol
import PacketCapture

/// A message of a connection of the device channel or of local push.
public enum MessageRecord: Sendable, Equatable {
  case device(DeviceRecord)
  case localPush(LocalPushRecord)

  package init(_ message: ObservedMessage, at place: RecordPlace, _ direction: Direction) {
    switch message {
    case .device(let message): self = .device(DeviceRecord(message, at: place, direction))
    case .localPush(let message): self = .localPush(LocalPushRecord(message, at: place, direction))
    }
  }

  /// Where it is, with its length in four bytes.
  public var place: RecordPlace {
    switch self {
    case .device(let record): record.place
    case .localPush(let record): record.place
    }
  }

  /// The end that sent it: the client is the device.
  public var direction: Direction {
    switch self {
    case .device(let record): record.direction
    case .localPush(let record): record.direction
    }
  }

  /// Its type.
  public var type: RecordType {
    switch self {
    case .device: .device
    case .localPush: .localPush
    }
  }
}

/// A message of the device channel.
public struct DeviceRecord: Sendable, Equatable {
  public var place: RecordPlace
  public var direction: Direction
  public var message: DeviceMessage

  package init(_ message: DeviceMessage, at place: RecordPlace, _ direction: Direction) {
    (self.message, self.place, self.direction) = (message, place, direction)
  }
}

/// A message of local push.
public struct LocalPushRecord: Sendable, Equatable {
  public var place: RecordPlace
  public var direction: Direction
  public var message: LocalPushMessage

  package init(_ message: LocalPushMessage, at place: RecordPlace, _ direction: Direction) {
    (self.message, self.place, self.direction) = (message, place, direction)
  }
}

extension OtherProtocol {
  package init(_ kind: MessageProtocol) {
    self =
      switch kind {
      case .devices: .devices
      case .localPush: .localPush
      }
  }

  /// The protocol of messages; `nil` for protocols of another kind.
  package var messages: MessageProtocol? {
    switch self {
    case .devices: .devices
    case .localPush: .localPush
    case .http1, .http2, .ssh, .tls: nil
    }
  }
}

extension DeviceMessage {
  /// Its name, as in its member `message`.
  package var kind: String {
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

  /// The tokens that it names.
  package var tokens: [[UInt8]] {
    switch self {
    case .register, .offline, .refused: []
    case .registered(let registered): [registered.token]
    case .online(let online): online.apps.map(\.token)
    case .deliver(let delivery): [delivery.token]
    case .acknowledge(let token, _, _): [token]
    case .tokenChanged(let change): [change.old, change.new]
    }
  }

  /// The topics that it names.
  package var topics: [String] {
    switch self {
    case .register(let registration): [registration.topic]
    case .registered(let registered): [registered.topic]
    case .online(let online): online.apps.map(\.topic)
    case .deliver(let delivery): [delivery.topic]
    case .acknowledge(_, let topic, _): [topic]
    case .tokenChanged(let change): [change.topic]
    case .offline: []
    case .refused(_, let topic): topic.map { [$0] } ?? []
    }
  }
}
