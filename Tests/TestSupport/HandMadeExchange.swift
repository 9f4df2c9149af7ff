/// Runs one hand-made conversation and writes down what is sent.
struct HandMadeExchange {
  private let conversation: HandMadeTLS
  private(set) var recorded = RecordedConversation()
  private var records: [RecordedConversation.Side: HandMadeRecords] = [:]
  /// What a side has written and not yet sent.
  private var unsent: [UInt8] = []
  /// The handshake messages so far, as the Finished messages prove them.
  private var messages: [UInt8] = []
  private var clientRandom: [UInt8]
  private let serverRandom: [UInt8]
  private let sessionID: [UInt8]
  private let premasterRandom: [UInt8]
  private var master: [UInt8] = []

  init(_ conversation: HandMadeTLS, seed: UInt64) {
    self.conversation = conversation
    var random = SeededGenerator(seed: seed)
    clientRandom = random.bytes(32)
    serverRandom = random.bytes(32)
    sessionID = random.bytes(32)
    premasterRandom = random.bytes(46)
    for side in RecordedConversation.Side.allCases {
      records[side] = HandMadeRecords(conversation, seed: random.next())
    }
    recorded.version = conversation.version.rawValue
    recorded.suite = conversation.suite.number
    recorded.suiteName = conversation.suite.name
  }

  private var offered: UInt16 { (conversation.offeredVersion ?? conversation.version).rawValue }

  // MARK: handshakes

  mutating func handshake() {
    let server = TLSIdentity.rsaServer
    if let challenge = conversation.ssl2Challenge { ssl2Hello(challenge) } else { clientHello(session: []) }
    flush(.client)

    serverHello(session: sessionID)
    certificate(server, .server)
    if conversation.givesClientCertificate {
      // A certificate type (RSA), in TLS 1.2 a signature algorithm (RSA with SHA-256), no names of authorities.
      let algorithms: [UInt8] = conversation.version == .tls12 ? [0, 2, 4, 1] : []
      message(13, [1, 1] + algorithms + [0, 0], .server)
    }
    message(14, [], .server)
    flush(.server)

    if conversation.givesClientCertificate { certificate(.rsaClient, .client) }
    let premaster = bigEndian(offered, 2) + premasterRandom
    let encrypted = server.encrypt(premaster)
    // SSL 3.0 has no length before the encrypted premaster.
    message(16, (conversation.version == .ssl30 ? [] : bigEndian(encrypted.count, 2)) + encrypted, .client)
    let keys = HandMadeKeys(
      version: conversation.version, premaster: premaster, clientRandom: clientRandom, serverRandom: serverRandom)
    master = keys.master
    if conversation.givesClientCertificate {
      let signature = TLSIdentity.rsaClient.sign(digest: keys.signedDigest(messages))
      let algorithm: [UInt8] = conversation.version == .tls12 ? [4, 1] : []
      message(15, algorithm + bigEndian(signature.count, 2) + signature, .client)
    }
    finish(.client, keys)
    finish(.server, keys)
    recorded.keyLog = ["RSA \(hex(encrypted[..<8])) \(hex(premaster[...]))", masterLine]
  }

  /// The short handshake with the session of `first`; the server finishes first.
  mutating func resume(_ first: HandMadeExchange) {
    master = first.master
    recorded.isResumed = true
    clientHello(session: first.sessionID)
    flush(.client)
    serverHello(session: first.sessionID)
    let keys = HandMadeKeys(
      version: conversation.version, master: master, clientRandom: clientRandom, serverRandom: serverRandom)
    finish(.server, keys)
    finish(.client, keys)
    recorded.keyLog = [masterLine]
  }

  private var masterLine: String { "CLIENT_RANDOM \(hex(clientRandom[...])) \(hex(master[...]))" }

  // MARK: messages

  /// Version, random, session id, suites, compression methods; no extensions.
  private mutating func clientHello(session: [UInt8]) {
    let suites = bigEndian(4, 2) + bigEndian(conversation.suite.number, 2) + [0x00, 0xff]
    let body = bigEndian(offered, 2) + clientRandom + [UInt8(session.count)] + session + suites + [1, 0]
    message(1, body, .client, version: min(offered, conversation.version.rawValue))
  }

  /// SSL 2.0's form:
  ///
  ///     | 0x8000 + length | 1 | version | suites' length | session id's length | challenge's length | suites | challenge |
  ///
  /// Suites have three bytes; the challenge with zeros in front is the client's random. The length is not proved.
  private mutating func ssl2Hello(_ challengeLength: Int) {
    let challenge = clientRandom.suffix(challengeLength)
    clientRandom = [UInt8](repeating: 0, count: 32 - challengeLength) + challenge
    let suites = [0] + bigEndian(conversation.suite.number, 2) + [0, 0, 0xff]
    let hello =
      [1] + bigEndian(offered, 2) + bigEndian(suites.count, 2) + [0, 0] + bigEndian(challengeLength, 2) + suites
      + challenge
    messages += hello
    unsent += bigEndian(0x8000 | hello.count, 2) + hello
  }

  private mutating func serverHello(session: [UInt8]) {
    let version = bigEndian(conversation.version.rawValue, 2)
    let suite = bigEndian(conversation.suite.number, 2)
    message(2, version + serverRandom + [UInt8(session.count)] + session + suite + [0], .server)
  }

  private mutating func certificate(_ identity: TLSIdentity, _ side: RecordedConversation.Side) {
    let certificate = identity.certificateDER
    message(11, bigEndian(certificate.count + 3, 3) + bigEndian(certificate.count, 3) + certificate, side)
  }

  /// ChangeCipherSpec and Finished.
  private mutating func finish(_ side: RecordedConversation.Side, _ keys: HandMadeKeys) {
    append(HandMadeRecords.changeCipherSpec, [1], side)
    let directions = keys.directions(conversation.suite)
    records[side]?.protect(conversation.suite, side == .client ? directions.client : directions.server)
    message(20, keys.verifyData(of: side, messages), side)
    flush(side)
  }

  private mutating func message(
    _ type: UInt8, _ body: [UInt8], _ side: RecordedConversation.Side, version: UInt16? = nil
  ) {
    let message = [type] + bigEndian(body.count, 3) + body
    messages += message
    append(HandMadeRecords.handshake, message, side, version: version)
  }

  private mutating func append(
    _ type: UInt8, _ content: [UInt8], _ side: RecordedConversation.Side, version: UInt16? = nil
  ) {
    unsent += records[side]?.records(type, content, version: version) ?? []
  }

  private mutating func flush(_ side: RecordedConversation.Side) {
    recorded.steps.append(RecordedConversation.Step(side: side, bytes: unsent))
    unsent = []
  }

  // MARK: data

  mutating func talk() {
    for action in conversation.script {
      switch action {
      case .write(let side, let bytes):
        if conversation.insertsEmptyFragments { append(HandMadeRecords.applicationData, [], side) }
        append(HandMadeRecords.applicationData, bytes, side)
        flush(side)
        if side == .client { recorded.clientPlaintext += bytes } else { recorded.serverPlaintext += bytes }
      case .close(let side):
        append(HandMadeRecords.alert, [1, 0], side)
        flush(side)
      }
    }
  }
}

private func hex(_ bytes: ArraySlice<UInt8>) -> String {
  let digits = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}
