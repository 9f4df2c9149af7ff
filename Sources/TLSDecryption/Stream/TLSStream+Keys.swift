import TLSFoundation

/// Derives keys that may fit from the handshake and the secrets.
extension TLSStream {
  enum Preparation {
    case ready
    case wait(DirectionInput.Reason)
    case failed(String)
  }

  /// Collects the keys that may open a direction's records.
  func prepare(_ direction: TLSDirection) -> Preparation {
    for reason in [DirectionInput.Reason.hello, .answer]
    where direction.input.mayWait && mustWait(direction, for: reason) {
      return .wait(reason)
    }
    var preparation = collect(direction)
    if case .failed = preparation, secrets.readLate() { preparation = collect(direction) }
    guard case .failed = preparation, direction.input.mayWait else { return preparation }
    for reason in [DirectionInput.Reason.keyExchange, .secrets(generation: secrets.generation)]
    where mustWait(direction, for: reason) { return .wait(reason) }
    return preparation
  }

  /// Whether the awaited message may still come.
  func mustWait(_ direction: TLSDirection, for reason: DirectionInput.Reason) -> Bool {
    let other = self.direction(direction.side.other)
    let negotiation = direction.negotiation
    switch reason {
    case .hello:
      let isMissing =
        direction.side == .client
        ? negotiation.serverHello == nil && negotiation.clientRandom != nil
        : negotiation.clientRandom == nil && negotiation.serverHello != nil
      return isMissing && other.mayBring(negotiation)
    case .answer: return waitsForAnswerToEarlyData(direction, other)
    case .keyExchange:
      return direction.side == .server && needsClientKeyExchange(direction) && other.mayBring(negotiation)
    case .secrets(let generation): return secrets.mayGrow && secrets.generation == generation
    }
  }

  /// Whether to wait until the server's first encrypted record shows if it accepts early data.
  private func waitsForAnswerToEarlyData(_ direction: TLSDirection, _ other: TLSDirection) -> Bool {
    guard direction.side == .client, direction.negotiation.clientHello?.extensions.earlyData == true,
      direction.negotiation.acceptsEarlyData == nil, let clientRandom = direction.negotiation.clientRandom,
      other.tally.sealedRecords == 0, !other.input.isOver, !other.records.hadGap, !other.records.hasFailed
    else { return false }
    return !secrets.find(.serverHandshakeTraffic, clientRandom).isEmpty
  }

  private func needsClientKeyExchange(_ direction: TLSDirection) -> Bool {
    !secrets.serverKeys.isEmpty && direction.negotiation.suite?.usesRSAKeyExchange == true
      && !direction.negotiation.hasClientKeyExchange
  }

  func collect(_ direction: TLSDirection) -> Preparation {
    direction.keys.generation = secrets.generation
    guard let hello = direction.negotiation.serverHello else { return collectWithoutServerHello(direction) }
    guard hello.version >= .ssl3, hello.version <= .tls13 else { return .failed("\(hello.version) is not supported") }
    guard hello.suite.protection != nil else { return .failed("cipher suite not supported: \(hello.suite.name)") }
    if hello.compression != 0 {
      return .failed(
        "TLS compression (\(hello.compression == 1 ? "DEFLATE" : "method \(hello.compression)")) is not supported")
    }
    if case .rc4? = hello.suite.protection, !LegacyProvider.isInstalled {
      return .failed("cipher suite not supported: \(hello.suite.name) needs OpenSSL's legacy provider")
    }
    if let cipher = hello.suite.protection?.cipher, !OpenSSL.hasCipher(cipher) {
      return .failed("cipher suite not supported: \(hello.suite.name) needs \(cipher), which OpenSSL lacks here")
    }
    let candidates: [KeyEpoch]
    if hello.version >= .tls13 {
      candidates = modernEpochs(direction, hello)
    } else {
      candidates = [KeyEpoch(stage: .data, candidates: masterCandidates(direction, hello))]
    }
    guard candidates.contains(where: { !$0.candidates.isEmpty }) else {
      return .failed(missingSecret(hello, direction))
    }
    direction.keys.collect(candidates)
    return .ready
  }

  // MARK: TLS 1.3

  /// The secrets of a direction in the order in which they are used.
  private static func labels(_ side: TLSSide) -> [(KeyEpoch.Stage, KeyLogLabel)] {
    side == .client
      ? [(.early, .clientEarlyTraffic), (.handshake, .clientHandshakeTraffic), (.data, .clientTraffic)]
      : [(.handshake, .serverHandshakeTraffic), (.data, .serverTraffic)]
  }

  private func modernEpochs(_ direction: TLSDirection, _ hello: ServerHello) -> [KeyEpoch] {
    let length = hello.suite.derivationHash(.tls13).length
    return Self.labels(direction.side).map { stage, label in
      if stage == .early && direction.negotiation.clientHello?.extensions.earlyData != true {
        return KeyEpoch(stage: stage, candidates: [])
      }
      let lines: [KeyLogLine]
      if let random = direction.negotiation.clientRandom {
        lines = secrets.find(label, random).map { KeyLogLine(label, key: random, secret: $0) }
      } else {
        // The ClientHello is missing; the key log may know it.
        let all = secrets.all(label)
        lines = mayGuess(direction, all) ? all : []
      }
      return KeyEpoch(
        stage: stage,
        candidates: lines.filter { $0.secret.count == length }.compactMap {
          modernCandidate($0, stage, hello.suite, draft: hello.draft)
        })
    }
  }

  private func modernCandidate(_ line: KeyLogLine, _ stage: KeyEpoch.Stage, _ suite: CipherSuite, draft: Int)
    -> KeyCandidate?
  {
    guard let keys = KeySchedule.keys(trafficSecret: line.secret, suite, draft: draft),
      let decryptor = RecordDecryptor(keys, suite, .tls13, draft: draft)
    else { return nil }
    return KeyCandidate(decryptor, stage, suite, line: line, secret: line.secret)
  }

  /// Without the ServerHello only TLS 1.3 can be decrypted, by trial: the length of the secret determines the hash.
  private func collectWithoutServerHello(_ direction: TLSDirection) -> Preparation {
    guard let random = direction.negotiation.clientRandom else { return guess(direction) }
    let epochs = Self.labels(direction.side).map { stage, label in
      KeyEpoch(
        stage: stage,
        candidates: secrets.find(label, random).flatMap {
          candidates(KeyLogLine(label, key: random, secret: $0), stage)
        })
    }
    guard epochs.contains(where: { !$0.candidates.isEmpty }) else {
      return .failed(secrets.isEmpty ? Self.noSecrets : "no ServerHello in the capture")
    }
    direction.keys.collect(epochs)
    return .ready
  }

  /// Without either hello, any traffic secret of the key log may be the connection's.
  private func guess(_ direction: TLSDirection) -> Preparation {
    guard !secrets.isEmpty else { return .failed(Self.noSecrets) }
    let label = direction.side == .client ? KeyLogLabel.clientTraffic : .serverTraffic
    let lines = secrets.all(label)
    guard !lines.isEmpty, mayGuess(direction, lines) else { return .failed(noTrafficSecret(lines.count)) }
    direction.keys.collect([KeyEpoch(stage: .data, candidates: lines.flatMap { candidates($0, .data) })])
    return .ready
  }

  /// The keys of a secret for every suite whose secrets have its length.
  private func candidates(_ line: KeyLogLine, _ stage: KeyEpoch.Stage) -> [KeyCandidate] {
    CipherSuite.modern(secretLength: line.secret.count).compactMap { modernCandidate(line, stage, $0, draft: 0) }
  }

  /// Whether keys may be derived from all of these lines, to be tried with one record. Only few records of a direction
  /// are tried in this way.
  private func mayGuess(_ direction: TLSDirection, _ lines: [KeyLogLine]) -> Bool {
    direction.keys.isGuessing = true
    let maximumRecords = 32
    // Deriving keys takes as long as this many attempts to decrypt a short record; there are up to four suites.
    let cost = 256
    return direction.tally.failures < maximumRecords && secrets.mayGuess(costing: cost * lines.count)
  }

  private func noTrafficSecret(_ count: Int) -> String {
    "no ServerHello in the capture; TLS 1.2 and older need it, and "
      + (count == 0 ? "the key log has no traffic secret of TLS 1.3" : "none of \(count) traffic secrets fits")
  }

  // MARK: up to TLS 1.2

  private func masterCandidates(_ direction: TLSDirection, _ hello: ServerHello) -> [KeyCandidate] {
    guard let clientRandom = direction.negotiation.clientRandom else {
      // The ClientHello is missing; the key log may know it.
      let lines = secrets.all(.clientRandom)
      guard mayGuess(direction, lines) else { return [] }
      return lines.compactMap { masterCandidate($0.secret, clientRandom: $0.key, direction, hello) }
    }
    return masters(clientRandom, direction, hello).compactMap {
      masterCandidate($0, clientRandom: clientRandom, direction, hello)
    }
  }

  /// The master secrets that may be this connection's, the likeliest first.
  private func masters(_ clientRandom: [UInt8], _ direction: TLSDirection, _ hello: ServerHello) -> [[UInt8]] {
    if let proven = direction.negotiation.provenMaster { return [proven] }
    var masters = secrets.find(.clientRandom, clientRandom)
    var premasters = secrets.find(.premaster, clientRandom)
    if let encrypted = direction.negotiation.encryptedPremaster {
      premasters += secrets.find(.rsa, Array(encrypted.prefix(8)))
      if masters.isEmpty && premasters.isEmpty { premasters += openedPremasters(encrypted, direction) }
    }
    if !premasters.isEmpty {
      let usesSessionHash =
        hello.extensions.extendedMasterSecret
        && direction.negotiation.clientHello?.extensions.extendedMasterSecret == true
      let hash = usesSessionHash ? direction.negotiation.sessionHash(hello.suite.derivationHash(hello.version)) : nil
      if !usesSessionHash || hash != nil {
        masters += premasters.map {
          KeySchedule.master(
            premaster: $0, hello.suite, hello.version, clientRandom: clientRandom, serverRandom: hello.random,
            sessionHash: hash)
        }
      }
    }
    if !hello.sessionID.isEmpty { masters += secrets.find(.sessionID, hello.sessionID) }
    for identifier in sessionIdentifiers(hello, direction) {
      if let master = secrets.session(identifier)?.master { masters.append(master) }
    }
    if masters.isEmpty { masters = secrets.masters }
    return Array(masters.prefix(limits.maximumCandidates))
  }

  /// The secret that the server's private keys decrypt from the ClientKeyExchange.
  private func openedPremasters(_ encrypted: [UInt8], _ direction: TLSDirection) -> [[UInt8]] {
    guard direction.negotiation.suite?.usesRSAKeyExchange == true else { return [] }
    let certificate = direction.negotiation.serverCertificate.flatMap(Certificate.init(der:))
    return secrets.serverKeys.filter { key in certificate.flatMap { key.matches($0) } ?? true }
      .compactMap { $0.decrypt(encrypted) }
  }

  private func masterCandidate(
    _ master: [UInt8], clientRandom: [UInt8], _ direction: TLSDirection, _ hello: ServerHello
  ) -> KeyCandidate? {
    guard
      let keys = KeySchedule.keys(
        master: master, hello.suite, hello.version, clientRandom: clientRandom, serverRandom: hello.random),
      let decryptor = RecordDecryptor(
        direction.side == .client ? keys.client : keys.server, hello.suite, hello.version,
        encryptThenMAC: hello.extensions.encryptThenMAC)
    else { return nil }
    return KeyCandidate(
      decryptor, .data, hello.suite, line: KeyLogLine(.clientRandom, key: clientRandom, secret: master), secret: master)
  }

  // MARK: reasons

  /// The problem of a connection for which there was nothing to open it with.
  package static let noSecrets = "no key log or server key was given"

  /// Why no secret was found, in words.
  private func missingSecret(_ hello: ServerHello, _ direction: TLSDirection) -> String {
    if secrets.isEmpty { return Self.noSecrets }
    guard let clientRandom = direction.negotiation.clientRandom else { return "no ClientHello in the capture" }
    var reasons: [String] = []
    if secrets.hasKeyLog {
      let hex = clientRandom.prefix(4).map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined()
      let lines = secrets.keyLogLines
      reasons.append("client random \(hex)… is not in the key log (\(lines) \(lines == 1 ? "line" : "lines"))")
    }
    if !secrets.serverKeys.isEmpty { reasons.append(uselessServerKey(hello, direction)) }
    return reasons.joined(separator: "; ")
  }

  private func uselessServerKey(_ hello: ServerHello, _ direction: TLSDirection) -> String {
    if hello.version >= .tls13 { return "a server key opens no TLS 1.3; a key log does" }
    if !hello.suite.usesRSAKeyExchange {
      let exchange = hello.suite.keyExchange ?? "its"
      return "a server key does not open \(exchange) key exchange; a key log does"
    }
    if !direction.negotiation.hasClientKeyExchange {
      return direction.negotiation.isResumed(isWhole: true) == true
        ? "the session was resumed, and where it began is not in the capture"
        : "no ClientKeyExchange in the capture"
    }
    if let certificate = direction.negotiation.serverCertificate.flatMap(Certificate.init(der:)),
      !secrets.serverKeys.contains(where: { $0.matches(certificate) ?? true })
    {
      return "wrong server key: it is not that of the server's certificate"
    }
    if hello.extensions.extendedMasterSecret {
      return "wrong server key, or messages of the handshake are missing that the extended master secret needs"
    }
    return "wrong server key: it does not open the premaster secret"
  }
}
