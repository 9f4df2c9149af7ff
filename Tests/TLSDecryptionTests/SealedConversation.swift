import Bytes
import TestSupport

@testable import TLSDecryption

/// A connection whose bytes a test makes one by one: hellos in the clear, and records that it seals itself.
///
/// What comes out is kept, and checked for what always holds: offsets without holes, nothing after the end.
final class SealedConversation {
  static let clientRandom = [UInt8](repeating: 0xc1, count: 32)
  static let serverRandom = [UInt8](repeating: 0x5e, count: 32)
  static let master = [UInt8](repeating: 0x77, count: 48)
  static let clientTraffic = [UInt8](repeating: 0x34, count: 32)
  static let serverTraffic = [UInt8](repeating: 0x35, count: 32)

  /// What one direction gave out.
  struct Output {
    var bytes: [UInt8] = []
    var gaps: [Int] = []
    var offset = 0
    var ends = 0
    var isBroken = false
  }

  let stream: TLSStream
  var client = Output()
  var server = Output()
  private var packet = 0

  init(limits: TLSLimits = TLSLimits(), keyLog: [UInt8]? = nil) {
    let secrets = Secrets(limits: limits)
    secrets.add(KeyLog(keyLog ?? Self.keyLog, maximumLines: 1 << 20))
    stream = TLSStream(secrets: secrets, limits: limits)
  }

  static var keyLog: [UInt8] {
    [
      KeyLogLine(.clientRandom, key: clientRandom, secret: master),
      KeyLogLine(.clientTraffic, key: clientRandom, secret: clientTraffic),
      KeyLogLine(.serverTraffic, key: clientRandom, secret: serverTraffic),
    ].flatMap { Array($0.text.utf8) }
  }

  // MARK: events

  func send(_ bytes: [UInt8], from side: TLSSide, pieces: Int = .max) {
    var start = 0
    while start < bytes.count {
      let end = start + min(pieces, bytes.count - start)
      packet += 1
      stream.receive(
        bytes.rawBytes.extracting(start..<end), from: side, at: CapturePoint(time: Int64(packet), packet: packet)
      ) { take($0, $1, $2, $3) }
      start = end
    }
  }

  func lose(_ length: Int, from side: TLSSide) {
    packet += 1
    stream.gap(length: length, reason: .lost, from: side, at: CapturePoint(time: Int64(packet), packet: packet)) {
      take($0, $1, $2, $3)
    }
  }

  func finish() {
    packet += 1
    stream.finish(at: CapturePoint(time: Int64(packet), packet: packet)) { take($0, $1, $2, $3) }
  }

  private func take(_ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _ point: CapturePoint) {
    var output = side == .client ? client : server
    output.isBroken = output.isBroken || output.offset != offset || output.ends > 0
    switch event {
    case .bytes(let bytes):
      output.bytes += Array(copying: bytes)
      output.offset += bytes.byteCount
    case .gap(let length, _):
      output.gaps.append(length)
      output.offset += length
    case .end: output.ends += 1
    }
    if side == .client { client = output } else { server = output }
  }

  // MARK: the handshake

  static func record(_ type: UInt8, _ content: [UInt8], version: UInt16 = 0x0303) -> [UInt8] {
    RecordSealer.header(type, version, content.count) + content
  }

  static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
    [type, UInt8(body.count >> 16), UInt8(body.count >> 8 & 255), UInt8(body.count & 255)] + body
  }

  static func clientHello(_ extensions: [UInt8] = []) -> [UInt8] {
    message(1, [3, 3] + clientRandom + [0, 0, 2, 0x13, 0x01, 1, 0, 0, UInt8(extensions.count)] + extensions)
  }

  static func serverHello(_ suite: UInt16, _ extensions: [UInt8] = []) -> [UInt8] {
    message(
      2,
      [3, 3] + serverRandom + [0, UInt8(suite >> 8), UInt8(suite & 255), 0, 0, UInt8(extensions.count)] + extensions)
  }

  static let changeCipherSpec = record(20, [1])

  /// Both hellos of TLS 1.3 with AES-128-GCM.
  func beginModern() {
    send(Self.record(22, Self.clientHello()), from: .client)
    send(Self.record(22, Self.serverHello(0x1301, [0, 43, 0, 2, 3, 4])), from: .server)
  }

  /// Both hellos of TLS 1.2 and the change of keys.
  func begin12(suite: UInt16 = 0x009c) {
    send(Self.record(22, Self.clientHello()), from: .client)
    send(Self.record(22, Self.serverHello(suite)) + Self.changeCipherSpec, from: .server)
    send(Self.changeCipherSpec, from: .client)
  }

  /// Seals what a side sends after `beginModern`.
  static func modernSealer(_ side: TLSSide) -> RecordSealer {
    let keys = KeySchedule.keys(
      trafficSecret: side == .client ? clientTraffic : serverTraffic, CipherSuite(code: 0x1301))!
    return RecordSealer(.modern, mac: [], key: keys.key, vector: keys.vector)
  }

  /// Seals what a side sends after `begin12`.
  static func sealer12(_ side: TLSSide, suite: UInt16 = 0x009c) -> RecordSealer {
    let keys = KeySchedule.keys(
      master: master, CipherSuite(code: suite), .tls12, clientRandom: clientRandom, serverRandom: serverRandom)!
    let own = side == .client ? keys.client : keys.server
    return RecordSealer(
      suite == 0x009c ? .explicitNonce : .explicitVector, mac: own.mac, key: own.key, vector: own.vector)
  }
}
