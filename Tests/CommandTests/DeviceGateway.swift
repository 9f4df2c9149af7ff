import Bytes
import DeviceProtocol
import Foundation
import Measurement
import Synchronization

/// A device channel of the tests, with a thread for each connection: tokens of a seed, and two notifications for each app.
final class DeviceGateway: Sendable {
  static let notifications: UInt64 = 2

  let port: Int
  let seed: UInt64
  private let behind: Int64
  private let listener: Int32
  /// The last sequence that was acknowledged, by token and topic.
  let acknowledged = Mutex<[String: UInt64]>([:])
  /// Connections that are open, and how many there were.
  let connections = Mutex<(open: Int, all: Int)>((0, 0))

  /// - Parameter behind: how far its clock is behind, in nanoseconds.
  init(seed: UInt64, behind: Int64 = 0) throws {
    (self.seed, self.behind) = (seed, behind)
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    // Safe: all of these live through their calls.
    let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, length) == 0 && listen(listener, 128) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    port = Int(in_port_t(bigEndian: address.sin_port))
    guard isListening else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    Thread.detachNewThread { [self] in
      while true {
        let descriptor = unsafe accept(listener, nil, nil)
        guard descriptor >= 0 else { return }
        connections.withLock { $0 = ($0.open + 1, $0.all + 1) }
        Thread.detachNewThread { [self] in
          serve(descriptor)
          close(descriptor)
          connections.withLock { $0.open -= 1 }
        }
      }
    }
  }

  /// No further connection is accepted.
  func end() { shutdown(listener, Int32(SHUT_RDWR)) }

  private func serve(_ descriptor: Int32) {
    var (framing, reader) = (MessageFraming(order: .bigEndian), DeviceMessageReader())
    var pending: [UInt8] = []
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while true {
      // Safe: at most the array's length is written.
      let count = unsafe read(descriptor, &bytes, bytes.count)
      guard count > 0 else { return }
      pending += bytes[..<count]
      var output = ByteWriter(capacity: 4_096)
      while let body = try? framing.next(pending.rawBytes) {
        let message = try? reader.read(pending.rawBytes.extracting(body))
        pending.removeFirst(body.upperBound)
        if let message { answer(message, &output) }
      }
      let answers = Array(copying: output.bytes)
      // Safe: the array lives through the call. A device that has gone reads nothing.
      _ = unsafe send(descriptor, answers, answers.count, Int32(MSG_NOSIGNAL))
    }
  }

  private func answer(_ message: DeviceMessage, _ output: inout ByteWriter) {
    switch message {
    case .register(let registration):
      let token = MadeTokens(seed: seed, generation: registration.generation)[registration.device]
      DeviceMessage.registered(.init(device: registration.device, topic: registration.topic, token: token)).write(
        to: &output)
    case .online(let online):
      for app in online.apps where app.received < Self.notifications {
        for sequence in app.received + 1...Self.notifications {
          DeviceMessage.deliver(
            .init(
              token: app.token, topic: app.topic, sequence: sequence, payload: Array("{}".utf8), collapseID: "c",
              sent: WallClock.system.nanoseconds() - behind, isStored: sequence == 1)
          ).write(to: &output)
        }
      }
    case .acknowledge(let token, let topic, let sequence):
      acknowledged.withLock { $0["\(token) \(topic)"] = sequence }
    default: break
    }
  }
}
