import BinaryProtocol
import Bytes
import TestSupport

@testable import TLSDecryption

/// A provider's connection under TLS 1.2 in a capture that a test makes: the handshake in the clear, then records that it
/// seals itself.
struct SealedLine {
  private static let master = [UInt8](repeating: 0x77, count: 48)
  let line: Int
  private let clientRandom: [UInt8]
  private let sealer: RecordSealer

  /// Records the handshake, in which the client presents a certificate.
  init(_ capture: inout CaptureBuilder, from port: UInt16, certificate: [UInt8]) {
    line = capture.connect(from: port)
    clientRandom = [UInt8](repeating: UInt8(port & 255), count: 32)
    let serverRandom = [UInt8](repeating: 0x5e, count: 32)
    let keys = KeySchedule.keys(
      master: Self.master, CipherSuite(code: 0x009c), .tls12, clientRandom: clientRandom, serverRandom: serverRandom)
    guard let keys else { preconditionFailure("no keys") }
    sealer = RecordSealer(.explicitNonce, mac: keys.client.mac, key: keys.client.key, vector: keys.client.vector)
    let hello = Self.message(1, [3, 3] + clientRandom + [0, 0, 2, 0, 0x9c, 1, 0])
    let answer = Self.message(2, [3, 3] + serverRandom + [0, 0, 0x9c, 0])
    func length(_ count: Int) -> [UInt8] { [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)] }
    let presented = Self.message(11, length(certificate.count + 3) + length(certificate.count) + certificate)
    let change = Self.record(20, [1])
    capture.client(line, Self.record(22, hello))
    capture.server(line, Self.record(22, answer) + change)
    capture.client(line, Self.record(22, presented) + change)
  }

  /// The line of a key log that opens it.
  var keyLogLine: String { KeyLogLine(.clientRandom, key: clientRandom, secret: Self.master).text }

  func data(_ content: [UInt8]) -> [UInt8] { sealer.seal(type: 23, content) }
  /// A warning, which says nothing that ends anything.
  func alert() -> [UInt8] { sealer.seal(type: 21, [1, 90]) }

  private static func record(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
    RecordSealer.header(type, 0x0303, content.count) + content
  }

  private static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
    [type, UInt8(body.count >> 16), UInt8(body.count >> 8 & 255), UInt8(body.count & 255)] + body
  }
}
