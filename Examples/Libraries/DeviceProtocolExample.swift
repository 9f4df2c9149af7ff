import Bytes
import DeviceProtocol
import Testing

extension LibraryExamples {
  @Test("DeviceProtocol: a notification is acknowledged")
  func deviceProtocol() throws {
    let received = Self.receivedDelivery()
    var output = ByteWriter()

    var framing = MessageFraming(order: .bigEndian)
    var reader = DeviceMessageReader()
    var start = 0
    while let body = try framing.next(received.rawBytes.extracting(start..<received.count)) {
      let message = try reader.read(received.rawBytes.extracting(start + body.lowerBound..<start + body.upperBound))
      if case .deliver(let delivery) = message {
        DeviceMessage.acknowledge(token: delivery.token, topic: delivery.topic, sequence: delivery.sequence).write(
          to: &output)
      }
      start += body.upperBound
    }

    #expect(start == received.count)
    let answer = String(decoding: Array(copying: output.bytes).dropFirst(MessageFraming.headerLength), as: UTF8.self)
    #expect(answer == #"{"message":"acknowledge","token":"0102","topic":"com.example.app","sequence":4}"#)
  }

  /// Bytes of a gateway for a device that has one app.
  private static func receivedDelivery() -> [UInt8] {
    var gateway = ByteWriter()
    DeviceMessage.registered(.init(device: 0, topic: "com.example.app", token: [1, 2])).write(to: &gateway)
    DeviceMessage.deliver(
      .init(token: [1, 2], topic: "com.example.app", sequence: 4, payload: Array("{}".utf8), sent: 0)
    ).write(to: &gateway)
    return Array(copying: gateway.bytes)
  }
}
