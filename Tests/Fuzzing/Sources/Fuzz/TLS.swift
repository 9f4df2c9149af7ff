import Bytes
import COpenSSL

@testable import TLSDecryption

// An input: choice u8 | key log length u16 | key log | steps
// A step: kind and side u8 | what the kind needs (see `TLSScript`).

/// A recorded TLS connection with its key log: pieces, gaps and ends of both directions, and records that the target
/// seals with secrets of its own, so that what stands in sealed records can be anything.
///
/// The same conversation is read twice, in the pieces of the script and byte by byte.
@Sendable func fuzzTLS(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let limits =
    choice & 1 != 0
    ? TLSLimits(
      maximumHandshakeLength: 600, maximumHeldBytes: 300, maximumCandidates: 2, maximumMissingRecords: 20,
      maximumAttempts: 300)
    : TLSLimits(maximumMissingRecords: 4_096, maximumAttempts: 1 << 13)
  let keyLog = Array(copying: script.take(script.word()))
  var steps = TLSScript(protection: TLSScript.Protection(rawValue: choice >> 1 & 3) ?? .tls13)
  steps.read(&script)
  func run(_ drips: Bool) -> TLSRun {
    var run = TLSRun(secrets(choice, keyLog, limits), limits)
    for event in steps.events { run.take(event, drips: drips) }
    run.finish()
    return run
  }
  let whole = run(false)
  let dripped = run(true)
  // While one direction waits for the other, it matters when the other moves on: at the end of its piece.
  guard !whole.hasWaited && !dripped.hasWaited else { return }
  law(whole.client.pieces == dripped.client.pieces, "client: \(whole.client.pieces) dripped \(dripped.client.pieces)")
  law(whole.server.pieces == dripped.server.pieces, "server: \(whole.server.pieces) dripped \(dripped.server.pieces)")
  law(whole.summary == dripped.summary, "\(whole.summary) dripped \(dripped.summary)")
}

private func secrets(_ choice: Int, _ keyLog: [UInt8], _ limits: TLSLimits) -> Secrets {
  let secrets = Secrets(limits: limits)
  if choice & 8 == 0 { secrets.add(KeyLog(FixedSecrets.keyLog, maximumLines: 100)) }
  if choice & 16 != 0 {
    secrets.late = { [KeyLog(keyLog, maximumLines: 100)] }
  } else {
    secrets.add(KeyLog(keyLog, maximumLines: 100))
  }
  if choice & 32 != 0, let key = FixedSecrets.serverKey { secrets.add(key) }
  secrets.onUse = { text in
    let line = KeyLogLine(parsing: Array(text.utf8.dropLast()).span)
    law(line?.text == text, "a secret that was used is no line: \(text)")
  }
  return secrets
}

/// What one direction gave out: neighbouring bytes and gaps are one.
struct PlaintextLog {
  enum Piece: Equatable {
    case bytes([UInt8])
    case gap(Int, PlaintextGapReason)
  }
  var pieces: [Piece] = []
  var offset = 0
  var byteCount = 0
  var wireBytes = 0
  var missing = 0
  var hasEnded = false
  var lastPacket = 0

  mutating func add(_ event: borrowing PlaintextEvent, _ offset: Int, _ point: CapturePoint, latest: Int) {
    law(!hasEnded, "something comes after the end")
    law(offset == self.offset, "offset \(offset) where \(self.offset) comes next")
    law(
      lastPacket <= point.packet && point.packet <= latest, "packet \(point.packet) after \(lastPacket), of \(latest)")
    lastPacket = point.packet
    switch event {
    case .bytes(let bytes):
      law(bytes.byteCount > 0, "no bytes")
      self.offset += bytes.byteCount
      byteCount += bytes.byteCount
      if case .bytes(let before)? = pieces.last {
        pieces[pieces.count - 1] = .bytes(before + Array(copying: bytes))
      } else {
        pieces.append(.bytes(Array(copying: bytes)))
      }
    case .gap(let length, let reason):
      law(length > 0, "a gap of \(length)")
      self.offset += length
      if case .gap(let before, reason)? = pieces.last {
        pieces[pieces.count - 1] = .gap(before + length, reason)
      } else {
        pieces.append(.gap(length, reason))
      }
    case .end: hasEnded = true
    }
    law(byteCount <= wireBytes, "\(byteCount) bytes of plaintext from \(wireBytes)")
    // A gap before a first block that is lost may be told too long by a block.
    law(self.offset <= wireBytes + missing, "\(self.offset) bytes and gaps from \(wireBytes) and \(missing) missing")
  }
}

/// A conversation that is being read.
struct TLSRun {
  private let stream: TLSStream
  private let limits: TLSLimits
  private var packet = 0
  private(set) var hasWaited = false
  var client = PlaintextLog()
  var server = PlaintextLog()
  var summary: TLSSummary { stream.summary }

  init(_ secrets: Secrets, _ limits: TLSLimits) {
    self.limits = limits
    stream = TLSStream(secrets: secrets, limits: limits)
  }

  mutating func take(_ event: TLSScript.Event, drips: Bool) {
    packet += 1
    let point = CapturePoint(time: Int64(packet), packet: packet)
    switch event {
    case .bytes(let bytes, let side):
      note(side, bytes.count, 0)
      if drips {
        for offset in bytes.indices {
          stream.receive(bytes.rawBytes.extracting(offset..<offset + 1), from: side, at: point) { add($0, $1, $2, $3) }
        }
      } else {
        stream.receive(bytes.rawBytes, from: side, at: point) { add($0, $1, $2, $3) }
      }
    case .gap(let length, let reason, let side):
      note(side, 0, length)
      stream.gap(length: length, reason: reason, from: side, at: point) { add($0, $1, $2, $3) }
    case .end(let side): stream.end(from: side, at: point) { add($0, $1, $2, $3) }
    }
    check()
  }

  mutating func finish() {
    packet += 1
    stream.finish(at: CapturePoint(time: Int64(packet), packet: packet)) { add($0, $1, $2, $3) }
    check()
    law(client.hasEnded && server.hasEnded, "a direction does not end")
    law(!stream.client.input.isWaiting && !stream.server.input.isWaiting, "something still waits")
    let summary = stream.summary
    law(summary.plaintextBytes == client.byteCount + server.byteCount, "the summary has other plaintext")
    law(summary.wireBytes == client.wireBytes + server.wireBytes, "the summary has other bytes")
    law(summary.isDecrypted || summary.problem != nil, "not decrypted, and no reason is given")
  }

  private mutating func note(_ side: TLSSide, _ bytes: Int, _ missing: Int) {
    if side == .client {
      client.wireBytes += bytes
      client.missing += missing
    } else {
      server.wireBytes += bytes
      server.missing += missing
    }
  }

  private mutating func add(
    _ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _ point: CapturePoint
  ) {
    if side == .client {
      client.add(event, offset, point, latest: packet)
    } else {
      server.add(event, offset, point, latest: packet)
    }
  }

  /// What the stream keeps is bounded.
  private mutating func check() {
    hasWaited = hasWaited || stream.client.input.isWaiting || stream.server.input.isWaiting
    for direction in [stream.client, stream.server] {
      let (input, records) = (direction.input, direction.records)
      law(input.isWaiting || input.heldPieces == 0, "something is held and nothing waited for")
      law(!input.isWaiting || input.heldBytes <= limits.maximumHeldBytes, "\(input.heldBytes) bytes held")
      if case .aligned(let partial) = records.state {
        law(partial.count < 1 << 15 + 2, "\(partial.count) bytes of a record kept")
      }
      if case .inside(_, let tail) = records.state { law(tail.bytes.count <= 64, "a tail of \(tail.bytes.count)") }
      // One record may try all keys once more.
      law(direction.keys.attempts <= limits.maximumAttempts + 1 << 14, "\(direction.keys.attempts) attempts")
    }
  }
}

/// Secrets that the target knows besides those of the input, and a client and a server that use them.
enum FixedSecrets {
  static let clientRandom = [UInt8](repeating: 0xc1, count: 32)
  static let serverRandom = [UInt8](repeating: 0x5e, count: 32)
  static let master = [UInt8](repeating: 0x77, count: 48)
  /// By stage and side: early, handshake, data.
  static func traffic(_ stage: Int, _ side: TLSSide) -> [UInt8] {
    [UInt8](repeating: UInt8(0x30 + stage * 2 + (side == .client ? 0 : 1)), count: 32)
  }

  static let keyLog: [UInt8] = {
    let lines = [
      KeyLogLine(.clientRandom, key: clientRandom, secret: master),
      KeyLogLine(.clientEarlyTraffic, key: clientRandom, secret: traffic(0, .client)),
      KeyLogLine(.clientHandshakeTraffic, key: clientRandom, secret: traffic(1, .client)),
      KeyLogLine(.serverHandshakeTraffic, key: clientRandom, secret: traffic(1, .server)),
      KeyLogLine(.clientTraffic, key: clientRandom, secret: traffic(2, .client)),
      KeyLogLine(.serverTraffic, key: clientRandom, secret: traffic(2, .server)),
    ]
    return lines.flatMap { Array($0.text.utf8) }
  }()

  /// Made anew by each process: no seed has anything encrypted to it.
  nonisolated(unsafe) static let serverKey: PrivateKey? = {
    guard let key = newKey(), let text = BIO_new(BIO_s_mem()) else { return nil }
    defer {
      BIO_free(text)
      EVP_PKEY_free(key)
    }
    PEM_write_bio_PrivateKey(text, key, nil, nil, 0, nil, nil)
    var start: UnsafeMutablePointer<CChar>?
    let length = apnscope_BIO_get_mem_data(text, &start)
    let pem = [UInt8](UnsafeRawBufferPointer(start: start, count: Int(length)))
    return try? PrivateKey(pem: pem, passPhrase: nil)
  }()

  private static func newKey() -> OpaquePointer? {
    guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, 1_024) == 1,
      EVP_PKEY_generate(context, &key) == 1
    else { return nil }
    return key
  }
}

/// The steps of an input and the events that they make.
struct TLSScript {
  /// What the target seals records with.
  enum Protection: Int {
    case tls13, gcm, cbc, tls10
  }

  enum Event {
    case bytes([UInt8], TLSSide)
    case gap(Int, PlaintextGapReason, TLSSide)
    case end(TLSSide)
  }

  private(set) var events: [Event] = []
  private var hasEnded = (client: false, server: false)
  private var client: Sealers
  private var server: Sealers

  init(protection: Protection) {
    client = Sealers(protection, .client)
    server = Sealers(protection, .server)
  }

  /// Bit 0 of a step is the side, the next three are the kind, bit 4 makes lengths two bytes long.
  mutating func read(_ script: inout Script) {
    while !script.isAtEnd {
      let step = script.byte()
      let side: TLSSide = step & 1 == 0 ? .client : .server
      func length(_ script: inout Script) -> Int { step & 16 != 0 ? script.word() : script.byte() }
      let kind = step >> 1 & 7
      let event: Event
      switch kind {
      case 0:
        let count = (1 + length(&script)) << (step & 32 != 0 ? 14 : 0)
        event = .gap(count, step & 64 != 0 ? .truncated : .lost, side)
      case 1: event = .end(side)
      case 2:
        // A sealed record: type and stage u8 | numbers left out, if bit 5 is set u16 | length | content
        let choice = script.byte()
        let skipped = step & 32 != 0 ? script.word() : 0
        let content = Array(copying: script.take(length(&script)).prefixOfRecord)
        event = .bytes(
          side == .client
            ? client.seal(choice, skipped, content) : server.seal(choice, skipped, content), side)
      case 3:
        // A record in the clear: type and version u8 | length | content
        let choice = script.byte()
        let content = Array(copying: script.take(length(&script)).prefixOfRecord)
        let version = UInt16(0x300 + (choice >> 2 & 7) % 5)
        event = .bytes(RecordSealer.header(UInt8(20 + choice & 3), version, content.count) + content, side)
      case 4:
        // A handshake message in a record of its own: type u8 | length | content
        let type = UInt8(script.byte())
        let content = Array(copying: script.take(length(&script)).prefixOfRecord)
        event = .bytes(TLSScript.handshake(type, content), side)
      default:
        let bytes = Array(copying: script.take(1 + length(&script)))
        guard !bytes.isEmpty else { continue }
        event = .bytes(bytes, side)
      }
      if side == .client ? hasEnded.client : hasEnded.server { continue }
      if case .end = event {
        if side == .client { hasEnded.client = true } else { hasEnded.server = true }
      }
      events.append(event)
    }
  }

  static func handshake(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
    RecordSealer.header(22, 0x303, body.count + 4) + message(type, body)
  }

  static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
    [type, UInt8(body.count >> 16), UInt8(body.count >> 8 & 255), UInt8(body.count & 255)] + body
  }

  /// One side's keys of all stages.
  private struct Sealers {
    private let side: TLSSide
    private var stages: [RecordSealer] = []
    private var latest: [UInt8]

    init(_ protection: Protection, _ side: TLSSide) {
      self.side = side
      latest = FixedSecrets.traffic(2, side)
      if protection == .tls13 {
        for stage in 0..<3 { add(FixedSecrets.traffic(stage, side)) }
        return
      }
      let suite = CipherSuite(code: protection == .gcm ? 0x009c : 0x002f)
      guard
        let keys = KeySchedule.keys(
          master: FixedSecrets.master, suite, protection == .tls10 ? .tls10 : .tls12,
          clientRandom: FixedSecrets.clientRandom, serverRandom: FixedSecrets.serverRandom)
      else { return }
      let own = side == .client ? keys.client : keys.server
      let method: RecordSealer.Method =
        switch protection {
        case .tls13: .modern
        case .gcm: .explicitNonce
        case .cbc: .explicitVector
        case .tls10: .chained
        }
      stages = [RecordSealer(method, mac: own.mac, key: own.key, vector: own.vector)]
    }

    private mutating func add(_ secret: [UInt8]) {
      guard let keys = KeySchedule.keys(trafficSecret: secret, CipherSuite(code: 0x1301)) else { return }
      stages.append(RecordSealer(.modern, mac: [], key: keys.key, vector: keys.vector))
    }

    mutating func seal(_ choice: Int, _ skipped: Int, _ content: [UInt8]) -> [UInt8] {
      // As after a KeyUpdate.
      if choice & 0x40 != 0, stages.count >= 3 {
        latest = KeySchedule.nextTrafficSecret(after: latest, CipherSuite(code: 0x1301))
        stages.removeLast()
        add(latest)
      }
      guard !stages.isEmpty else { return content }
      let sealer = stages[min(choice >> 2 & 3, stages.count - 1)]
      sealer.sequence &+= UInt64(skipped)
      // Numbers that no connection comes to.
      if choice & 0x20 != 0 { sealer.sequence &+= 1 << 62 }
      if choice & 0x10 != 0 { sealer.sequence = 0 }
      return sealer.seal(type: UInt8(20 + choice & 3), content)
    }
  }
}

extension RawSpan {
  /// What fits into a record.
  fileprivate var prefixOfRecord: RawSpan {
    @_lifetime(copy self) get { extracting(0..<min(byteCount, 16_000)) }
  }
}
