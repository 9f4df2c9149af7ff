import Bytes
import DeviceProtocol
import Testing

@testable import GatewaySimulator

/// A device in the hands of a test.
final class DeviceClient {
  let client: Client
  private var framing = MessageFraming(order: .bigEndian)
  private var reader = DeviceMessageReader()
  private var rest: [UInt8] = []

  init(_ simulation: Simulation, patience: Duration = Simulation.patience) throws {
    client = try simulation.deviceClient(patience: patience)
  }

  func send(_ messages: DeviceMessage...) throws {
    var output = ByteWriter(capacity: 256)
    for message in messages { message.write(to: &output) }
    try client.send(Array(copying: output.bytes))
  }

  /// The next message; `nil` at the end of the connection.
  func next() throws -> DeviceMessage? {
    while true {
      let bytes = rest
      let body = try framing.next(bytes.rawBytes)
      if let body {
        let message = try reader.read(bytes.rawBytes.extracting(body))
        rest.removeFirst(body.upperBound)
        return message
      }
      let more = try client.receive()
      guard !more.isEmpty else { return nil }
      rest += more
    }
  }

  /// Registers an app and is online with it.
  func begin(device: UInt64, topic: String, generation: UInt64 = 0, received: UInt64 = 0) throws -> [UInt8] {
    try send(.register(.init(device: device, topic: topic, generation: generation)))
    guard case .registered(let registered)? = try next() else {
      Issue.record("no token")
      return []
    }
    try send(.online(.init(apps: [.init(token: registered.token, topic: topic, received: received)])))
    return registered.token
  }

  func nextDelivery() throws -> DeviceMessage.Delivery? {
    let message = try next()
    guard case .deliver(let delivery)? = message else {
      Issue.record("\(String(describing: message)) instead of a notification")
      return nil
    }
    return delivery
  }
}
