import Bytes
import Testing

@testable import TLSDecryption

/// The traces of RFC 8448, key by key, record by record, and whole.
@Suite struct RFC8448Tests {
  private let suite = CipherSuite(code: 0x1301)

  @Test("Keys follow from traffic secrets", arguments: RFC8448.all) func keysFollowFromTrafficSecrets(
    trace: RFC8448.Trace
  ) {
    for secret in trace.secrets {
      let keys = KeySchedule.keys(trafficSecret: secret.secret, suite)
      #expect(keys == DirectionKeys(key: secret.key, vector: secret.vector), "\(secret.label)")
    }
  }

  /// The RFC has no KeyUpdate; the values are HKDF-Expand-Label(secret, "traffic upd", "", 32) by Python's hmac module.
  @Test("Each generation follows from the one before") func eachGenerationFollowsFromTheOneBefore() throws {
    let client = RFC8448.simple.secret("CLIENT_TRAFFIC_SECRET_0")
    let server = RFC8448.simple.secret("SERVER_TRAFFIC_SECRET_0")
    #expect(
      text(KeySchedule.nextTrafficSecret(after: client, suite))
        == "fcdfcc72725aaee48bf64e4fd8b749cdbdbab39d90da0b26e2245ca6ea167207")
    #expect(
      text(KeySchedule.nextTrafficSecret(after: server, suite))
        == "51921b8aa3001976eb401d0a4319a8516416a6c56001a357e5d162031e84f916")
  }

  @Test("Records open with their key and number only", arguments: RFC8448.all)
  func recordsOpenWithTheirKeyAndNumberOnly(trace: RFC8448.Trace) throws {
    var output = [UInt8](repeating: 0, count: 1 << 15)
    var next: [String: UInt64] = [:]
    for record in trace.records where record.bytes[0] == 23 {
      let label = record.secretLabel
      let sequence = next[label, default: 0]
      next[label] = sequence + 1
      let keys = try #require(KeySchedule.keys(trafficSecret: trace.secret(label), suite))
      let decryptor = try #require(RecordDecryptor(keys, suite, .tls13))
      let opened = decryptor.open(record.bytes, sequence: sequence, into: &output)
      #expect(opened?.type == record.contentType, "\(record.what)")
      if let content = record.content { #expect(opened.map { Array(output[..<$0.length]) } == content) }
      #expect(decryptor.open(record.bytes, sequence: sequence + 1, into: &output) == nil)
      // The header is authenticated too, and so is the last byte of the tag.
      for place in [0, 1, 2, 5, record.bytes.count - 1] {
        var damaged = record.bytes
        damaged[place] ^= 1
        #expect(decryptor.open(damaged, sequence: sequence, into: &output) == nil, "\(record.what), byte \(place)")
      }
      var shorter = record.bytes
      shorter.removeLast()
      #expect(decryptor.open(shorter, sequence: sequence, into: &output) == nil)
    }
  }

  @Test("Connections open in whatever order their directions come", arguments: RFC8448.all, RFC8448.Order.allCases)
  func connectionsOpenInWhateverOrderTheir(trace: RFC8448.Trace, order: RFC8448.Order) {
    for pieceLength in [Int.max, 7, 1] {
      let run = TraceRun(trace, order, trace.secrets, pieceLength: pieceLength)
      #expect(run.plaintext(of: .client) == trace.data(from: .client))
      #expect(run.plaintext(of: .server) == trace.data(from: .server))
      #expect(run.missing == [:])
      #expect(run.ends == [.client, .server])
      #expect(run.summary.problem == nil && run.summary.isDecrypted)
      #expect(run.summary.version == .tls13 && run.summary.suite == suite)
      #expect(run.summary.keyExchange == trace.keyExchange)
      #expect(run.summary.isResumed == (trace.section == RFC8448.resumed.section))
      #expect(run.summary.alert == nil)
      #expect(run.summary.wireBytes == trace.records.reduce(0) { $0 + $1.bytes.count })
      // Every secret that opened something is handed on as a line that could stand in a key log.
      #expect(Set(run.used) == Set(trace.secrets.map { $0.line(trace.clientRandom) }))
      #expect(run.used.count == trace.secrets.count)
    }
  }

  @Test("Early data whose secret is missing leave a gap of their length")
  func earlyDataWhoseSecretIsMissingLeaveAGapOf() {
    let trace = RFC8448.resumed
    for order in RFC8448.Order.allCases {
      let run = TraceRun(trace, order, trace.secrets.filter { $0.label != "CLIENT_EARLY_TRAFFIC_SECRET" })
      #expect(run.plaintext(of: .client) == RFC8448.data)
      #expect(run.plaintext(of: .server) == RFC8448.data)
      #expect(run.missing == [.client: RFC8448.earlyData.count], "\(order)")
    }
  }

  @Test("One direction's secrets open that direction") func oneDirectionSecretsOpenThatDirection() {
    let trace = RFC8448.simple
    for order in RFC8448.Order.allCases {
      let run = TraceRun(trace, order, trace.secrets.filter { $0.label.hasPrefix("CLIENT") })
      #expect(run.plaintext(of: .client) == RFC8448.data)
      #expect(run.plaintext(of: .server).isEmpty)
      #expect(run.summary.problem != nil, "\(order)")
    }
  }

  @Test("Traffic secrets are enough without those of the handshake") func trafficSecretsAreEnoughWithoutThoseOfThe() {
    let trace = RFC8448.simple
    for order in RFC8448.Order.allCases {
      let run = TraceRun(trace, order, trace.secrets.filter { $0.label.hasSuffix("TRAFFIC_SECRET_0") })
      #expect(run.plaintext(of: .client) == RFC8448.data, "\(order)")
      #expect(run.plaintext(of: .server) == RFC8448.data, "\(order)")
    }
  }

  @Test("Secrets of another connection open nothing, and the problem names the client random")
  func secretsOfAnotherConnectionOpenNothingAndThe() {
    let other = RFC8448.compatible
    let line = other.secrets[0].line(other.clientRandom)
    let run = TraceRun(RFC8448.simple, .conversation, keyLog: line)
    #expect(run.plaintext(of: .client).isEmpty && run.plaintext(of: .server).isEmpty)
    #expect(!run.summary.isDecrypted)
    #expect(run.summary.problem == "client random cb34ecb1… is not in the key log (1 line)")
  }

  @Test("Wrong secrets under the right client random open nothing") func wrongSecretsUnderTheRightClientRandomOpen() {
    let trace = RFC8448.simple
    let wrong = trace.secrets.map { secret in
      var wrong = secret
      wrong.secret[31] ^= 1
      return wrong
    }
    for order in RFC8448.Order.allCases {
      let run = TraceRun(trace, order, wrong)
      #expect(run.plaintext(of: .client).isEmpty && run.plaintext(of: .server).isEmpty)
      #expect(run.used.isEmpty)
      #expect(run.summary.problem == "the secrets for this connection do not open its records")
    }
  }

  @Test("The right secret is found among wrong ones") func theRightSecretIsFoundAmongWrongOnes() {
    let trace = RFC8448.simple
    var wrong = trace.secrets
    for index in wrong.indices { wrong[index].secret[0] ^= 1 }
    for secrets in [wrong + trace.secrets, trace.secrets + wrong] {
      let run = TraceRun(trace, .conversation, secrets)
      #expect(run.plaintext(of: .client) == RFC8448.data)
      #expect(run.plaintext(of: .server) == RFC8448.data)
    }
  }
}

/// A trace read by a decryptor.
private struct TraceRun {
  private var events: [(side: TLSSide, bytes: [UInt8])] = []
  private(set) var missing: [TLSSide: Int] = [:]
  private(set) var ends: Set<TLSSide> = []
  private(set) var summary = TLSSummary()
  private(set) var used: [String] = []

  init(_ trace: RFC8448.Trace, _ order: RFC8448.Order, _ secrets: [RFC8448.TrafficSecret], pieceLength: Int = .max) {
    self.init(trace, order, keyLog: secrets.map { $0.line(trace.clientRandom) }.joined(), pieceLength: pieceLength)
  }

  init(_ trace: RFC8448.Trace, _ order: RFC8448.Order, keyLog: String, pieceLength: Int = .max) {
    let secrets = Secrets()
    secrets.add(KeyLog(Array(keyLog.utf8), maximumLines: 100))
    var used: [String] = []
    secrets.onUse = { used.append($0) }
    let stream = TLSStream(secrets: secrets, limits: TLSLimits())
    let point = CapturePoint(time: 0, packet: 1)
    for record in order.sorted(trace.records) {
      for start in stride(from: 0, to: record.bytes.count, by: min(pieceLength, record.bytes.count)) {
        let end = pieceLength == .max ? record.bytes.count : min(start + pieceLength, record.bytes.count)
        stream.receive(record.bytes.rawBytes.extracting(start..<end), from: record.side, at: point) {
          note($0, $1, $2, $3)
        }
      }
    }
    stream.end(from: .client, at: point) { note($0, $1, $2, $3) }
    stream.end(from: .server, at: point) { note($0, $1, $2, $3) }
    stream.finish(at: point) { note($0, $1, $2, $3) }
    summary = stream.summary
    self.used = used
  }

  private mutating func note(_ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _: CapturePoint) {
    switch event {
    case .bytes(let bytes): events.append((side, Array(copying: bytes)))
    case .gap(let length, _): missing[side, default: 0] += length
    case .end: ends.insert(side)
    }
  }

  func plaintext(of side: TLSSide) -> [UInt8] { events.filter { $0.side == side }.flatMap(\.bytes) }
}

extension RFC8448 {
  /// In which order a capture brings the records.
  enum Order: CaseIterable, Sendable {
    /// As sent.
    case conversation
    /// One direction whole, then the other.
    case clientFirst, serverFirst

    func sorted(_ records: [Record]) -> [Record] {
      let (client, server) = (records.filter { $0.side == .client }, records.filter { $0.side == .server })
      return switch self {
      case .conversation: records
      case .clientFirst: client + server
      case .serverFirst: server + client
      }
    }
  }
}

extension RFC8448.Trace {
  func secret(_ label: String) -> [UInt8] { secrets.first { $0.label == label }?.secret ?? [] }

  /// What the applications sent.
  func data(from side: TLSSide) -> [UInt8] {
    records.filter { $0.side == side && $0.contentType == .applicationData }.flatMap { $0.content ?? [] }
  }

  var keyExchange: String {
    switch section {
    case RFC8448.resumed.section: "PSK, x25519"
    case RFC8448.retried.section: "secp256r1"
    default: "x25519"
    }
  }
}

extension RFC8448.TrafficSecret {
  func line(_ clientRandom: [UInt8]) -> String { "\(label) \(text(clientRandom)) \(text(secret))\n" }
}

extension RFC8448.Record {
  /// What seals it.
  var secretLabel: String {
    switch what {
    case "early data", "EndOfEarlyData": "CLIENT_EARLY_TRAFFIC_SECRET"
    case "Finished": "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
    case "EncryptedExtensions to Finished": "SERVER_HANDSHAKE_TRAFFIC_SECRET"
    default: side == .client ? "CLIENT_TRAFFIC_SECRET_0" : "SERVER_TRAFFIC_SECRET_0"
    }
  }

  var contentType: ContentType {
    switch what {
    case "early data", "application data": .applicationData
    case "close_notify": .alert
    default: .handshake
    }
  }

  /// As far as the RFC's applications and alerts go.
  var content: [UInt8]? {
    switch what {
    case "early data": RFC8448.earlyData
    case "application data": RFC8448.data
    case "close_notify": [1, 0]
    case "EndOfEarlyData": [5, 0, 0, 0]
    default: nil
    }
  }
}

extension RecordDecryptor {
  /// Opens a record that stands with its header in `bytes`.
  func open(_ bytes: [UInt8], sequence: UInt64, into output: inout [UInt8]) -> Opened? {
    open(
      RecordHeader(bytes.rawBytes, at: 0), bytes.rawBytes.extracting(5..<bytes.count), sequence: sequence, into: &output
    )
  }
}
