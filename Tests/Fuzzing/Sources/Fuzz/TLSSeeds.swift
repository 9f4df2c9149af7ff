import Bytes

@testable import PacketCapture
@testable import TLSDecryption

/// Conversations of a capture as inputs of `tls`, each with the whole key log, and of `keylog`.
///
/// - Parameter keyLog: stands beside the capture, as `NAME.keys`.
func tlsSeeds(_ packets: [(linkType: LinkType, bytes: [UInt8])], keyLog: [UInt8]) -> [[UInt8]] {
  var conversations: [Int: [UInt8]] = [:]
  var clientIsHigh: [Int: Bool] = [:]
  var finished: [[UInt8]] = []
  func take(_ event: borrowing StreamEvent, _ position: StreamPosition) {
    let side: UInt8 = clientIsHigh[position.slot] == (position.direction == .reverse) ? 0 : 1
    switch event {
    case .connection(.opened(let flow)):
      clientIsHigh[position.slot] = flow.high.port > flow.low.port
      conversations[position.slot] = []
    case .connection(.closed):
      if let steps = conversations.removeValue(forKey: position.slot), !steps.isEmpty { finished.append(steps) }
    case .connection: break
    case .bytes(let bytes):
      conversations[position.slot]?.append(contentsOf: longStep(5 << 1 | side, Array(copying: bytes)))
    case .gap(let length, let reason):
      let count = min(65_535, length - 1)
      conversations[position.slot]?.append(contentsOf: [
        16 | side | (reason == .truncated ? 64 : 0), UInt8(count >> 8), UInt8(count & 255),
      ])
    case .end: conversations[position.slot]?.append(1 << 1 | side)
    }
  }
  var decoder = PacketDecoder(options: CaptureOptions())
  var reassembler = TCPReassembler(options: ReassemblyOptions())
  for (index, packetBytes) in packets.enumerated() {
    let packet = Packet(
      number: index + 1, time: Timestamp(nanoseconds: Int64(index)), linkType: packetBytes.linkType,
      originalLength: packetBytes.bytes.count, capturedLength: packetBytes.bytes.count)
    decoder.decode(packet, packetBytes.bytes.rawBytes) { segment, payload in
      reassembler.receive(segment, payload, time: packet.time, packet: packet.number) { take($0, $1) }
    }
  }
  reassembler.finish { take($0, $1) }
  let header = [UInt8(keyLog.count >> 8 & 255), UInt8(keyLog.count & 255)] + keyLog
  return finished.flatMap { steps in ([0, 1, 16] as [UInt8]).map { choice in [choice] + header + steps } }
}

/// A step with bytes and two bytes of length.
private func longStep(_ kind: UInt8, _ bytes: [UInt8]) -> [UInt8] {
  let length = kind >> 1 & 7 >= 5 ? bytes.count - 1 : bytes.count
  return [16 | kind, UInt8(length >> 8 & 255), UInt8(length & 255)] + bytes
}

/// Conversations whose records the target seals: of every protection, with renegotiation, new keys, early data, a
/// missing record, and a beginning that was not captured.
func sealedSeeds() -> [[UInt8]] {
  let text = Array("GET /3/device HTTP/1.1\r\n".utf8)
  func plain(_ side: UInt8, _ message: UInt8, _ body: [UInt8]) -> [UInt8] {
    longStep(4 << 1 | side, []).prefix(1) + [message, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
  }
  func sealed(_ side: UInt8, _ type: UInt8, stage: UInt8, _ content: [UInt8], choice: UInt8 = 0, skipped: UInt8? = nil)
    -> [UInt8]
  {
    [2 << 1 | side | (skipped == nil ? 0 : 32), (type - 20) | stage << 2 | choice] + (skipped.map { [0, $0] } ?? [])
      + [UInt8(content.count)] + content
  }
  func gap(_ side: UInt8, _ length: Int) -> [UInt8] { [16 | side, UInt8(length >> 8), UInt8(length & 255)] }
  func message(_ type: UInt8, _ body: [UInt8] = []) -> [UInt8] { TLSScript.message(type, body) }
  let changeCipherSpec: (UInt8) -> [UInt8] = { [3 << 1 | $0, 3 << 2, 1, 1] }
  var seeds: [[UInt8]] = []

  func modern(_ choice: UInt8, early: Bool = false, _ rest: [UInt8]) {
    let hello = plain(0, 1, clientHello(early ? [0, 42, 0, 0] : [])) + (early ? sealed(0, 23, stage: 0, text) : [])
    let answer = plain(1, 2, serverHello(0x1301, [0, 43, 0, 2, 3, 4] + [0, 51, 0, 2, 0, 29])) + changeCipherSpec(1)
    let extensions = early ? message(8, [0, 4, 0, 42, 0, 0]) : message(8, [0, 0])
    let server = sealed(1, 22, stage: 1, extensions) + sealed(1, 22, stage: 1, message(20, [1, 2, 3]))
    let client =
      (early ? sealed(0, 22, stage: 0, message(5)) : []) + changeCipherSpec(0)
      + sealed(0, 22, stage: 1, message(20, [1, 2, 3]))
    seeds.append([choice, 0, 0] + hello + answer + server + client + rest)
  }
  let data = sealed(0, 23, stage: 2, text) + sealed(1, 23, stage: 2, text)
  let update = sealed(0, 22, stage: 2, message(24, [0])) + sealed(0, 23, stage: 2, text, choice: 0x40)
  let ticket = sealed(1, 22, stage: 2, message(4, [0, 0, 0, 1, 0, 0, 0, 2, 1, 9, 0, 3, 7, 7, 7, 0, 0]))
  let close = sealed(0, 21, stage: 2, [1, 0]) + [2, 3]
  for choice: UInt8 in [0, 1] {
    modern(choice, ticket + data + close)
    modern(choice, update + data + close)
    modern(choice, early: true, data + close)
    modern(choice, data + gap(0, 300) + sealed(0, 23, stage: 2, text, skipped: 7) + data)
    modern(choice, data + gap(0, 30) + gap(1, 9) + sealed(0, 23, stage: 2, text, choice: 0x40) + data)
    seeds.append([choice, 0, 0] + sealed(0, 23, stage: 2, text, skipped: 3) + sealed(1, 23, stage: 2, text))
  }
  for protection: UInt8 in 1...3 {
    let suite: UInt16 = protection == 1 ? 0x009c : 0x002f
    let version: UInt8 = protection == 3 ? 1 : 3
    for choice: UInt8 in [0, 1, 32] {
      let handshake =
        plain(0, 1, clientHello([0, 35, 0, 0], version)) + plain(1, 2, serverHello(suite, [0, 35, 0, 0], version))
        + plain(1, 11, [0, 0, 0]) + plain(1, 14, []) + plain(0, 16, [0, 128] + [UInt8](repeating: 0x0f, count: 128))
      let change =
        changeCipherSpec(0) + sealed(0, 22, stage: 0, message(20, [9, 9, 9]), choice: 0x10)
        + plain(1, 4, [0, 0, 0, 1, 0, 3, 7, 7, 7]) + changeCipherSpec(1)
        + sealed(1, 22, stage: 0, message(20, [9, 9, 9]), choice: 0x10)
      let again =
        sealed(0, 22, stage: 0, message(1, clientHello([], version)))
        + sealed(1, 22, stage: 0, message(2, serverHello(suite, [], version)))
        + sealed(1, 20, stage: 0, [1]) + sealed(0, 20, stage: 0, [1])
        + sealed(0, 22, stage: 0, message(20), choice: 0x10)
      let start = [protection << 1 | choice, 0, 0] + handshake + change + data
      seeds.append(start + close)
      seeds.append(start + again + sealed(0, 23, stage: 0, text))
      seeds.append(start + gap(0, 200) + sealed(0, 23, stage: 0, text, skipped: 2) + data + close)
    }
  }
  // A hello in SSL 2.0's form: length, type, version, lengths of suites, session and challenge.
  let challenge = [UInt8](repeating: 0xc1, count: 32)
  let old: [UInt8] = [0x80, 44, 1, 3, 1, 0, 3, 0, 0, 0, 32, 0, 0, 0x2f] + challenge
  seeds.append(
    [6, 0, 0] + longStep(5 << 1, old) + plain(1, 2, serverHello(0x002f, [], 1)) + changeCipherSpec(0) + data)
  return seeds
}

private func clientHello(_ extensions: [UInt8], _ version: UInt8 = 3) -> [UInt8] {
  [3, version] + FixedSecrets.clientRandom + [0, 0, 2, 0x13, 0x01, 1, 0, 0, UInt8(extensions.count)] + extensions
}

private func serverHello(_ suite: UInt16, _ extensions: [UInt8], _ version: UInt8 = 3) -> [UInt8] {
  [3, version] + FixedSecrets.serverRandom + [0, UInt8(suite >> 8), UInt8(suite & 255), 0, 0, UInt8(extensions.count)]
    + extensions
}
