import TLSFoundation

/// What handshake messages and alerts say.
extension TLSStream {
  func receive(_ message: HandshakeMessage, _ half: TLSHalf) {
    let isClient = half.side == .client
    switch message.kind {
    case .clientHello where isClient: receive(ClientHello(message.body), message, half)
    case .serverHello where !isClient: receive(ServerHello(message.body), message, half)
    case .certificate:
      keep(message, half)
      receive(certificate: message, half)
    case .serverHelloDone where !isClient:
      keep(message, half)
      half.negotiation.hasServerHelloDone = true
    case .clientKeyExchange where isClient:
      keep(message, half)
      receive(keyExchange: message, half)
    case .newSessionTicket where !isClient:
      let version: TLSVersion = isModern(half) ? .tls13 : .tls12
      let ticket = NewSessionTicket.ticket(message.body, version)
      if version >= .tls13 {
        if let ticket, clientSubject != nil {
          secrets.remember(ticket, SessionMemory.Session(clientSubject: clientSubject))
        }
      } else {
        half.negotiation.newTicket = ticket
        rememberSession(half)
      }
    case .encryptedExtensions where !isClient && half.negotiation.version == .tls13:
      half.negotiation.acceptsEarlyData = EncryptedExtensions.acceptsEarlyData(message.body)
    case .endOfEarlyData where half.active?.stage == .early: advance(half, from: .early)
    case .finished where half.active?.stage == .handshake: advance(half, from: .handshake)
    case .keyUpdate where half.active?.stage == .data && isModern(half): updateKeys(half)
    case .helloRetryRequest where !isClient: half.negotiation.noteRetryRequest()
    case .helloRequest: break
    default: keep(message, half)
    }
  }

  /// TLS 1.3 is spoken: the keys in use say so, or the server's hello.
  func isModern(_ half: TLSHalf) -> Bool {
    (half.active?.decryptor.version ?? half.negotiation.version ?? .tls12) >= .tls13
  }

  private func keep(_ message: HandshakeMessage, _ half: TLSHalf) {
    guard !isModern(half) else { return }
    half.negotiation.keep(message.bytes, fromClient: half.side == .client, maximumLength: limits.maximumHandshakeLength)
  }

  private func receive(_ hello: ClientHello?, _ message: HandshakeMessage, _ half: TLSHalf) {
    guard let hello else { return }
    renegotiateIfSealed(half)
    half.negotiation.clientHello = hello
    half.negotiation.clientRandom = hello.random
    half.negotiation.keep(message.bytes, fromClient: true, maximumLength: limits.maximumHandshakeLength)
    recallSubject(half)
  }

  /// A hello in a sealed record begins another handshake.
  private func renegotiateIfSealed(_ half: TLSHalf) {
    guard half.active != nil else { return }
    half.negotiation = half.negotiation.following()
    if abs(client.negotiation.number - server.negotiation.number) > 16 {
      fail(half, "one side's handshakes run far ahead of the other's")
    }
  }

  private func receive(_ hello: ServerHello?, _ message: HandshakeMessage, _ half: TLSHalf) {
    guard let hello else { return }
    if hello.isRetryRequest { return half.negotiation.noteRetryRequest() }
    renegotiateIfSealed(half)
    half.negotiation.serverHello = hello
    firstServerHello = firstServerHello ?? hello
    keyExchange = keyExchange ?? half.negotiation.keyExchange
    keep(message, half)
    recallSubject(half)
  }

  /// A resumed session's client presented its certificate when the session began.
  private func recallSubject(_ half: TLSHalf) {
    guard clientSubject == nil, let hello = half.negotiation.serverHello else { return }
    // A ticket that is offered may be refused; up to TLS 1.2 that shows when keys are in use.
    let isTaken =
      hello.version >= .tls13
      || (!hello.sessionID.isEmpty && hello.sessionID == half.negotiation.clientHello?.sessionID) || isResumed == true
    guard isTaken else { return }
    for identifier in sessionIdentifiers(hello, half) where clientSubject == nil {
      clientSubject = secrets.session(identifier)?.clientSubject
    }
  }

  private func receive(certificate message: HandshakeMessage, _ half: TLSHalf) {
    guard let der = CertificateMessage.first(message.body, isModern(half) ? .tls13 : .tls12) else { return }
    if half.side == .client {
      clientSubject = Certificate(der: der)?.subject ?? clientSubject
    } else {
      half.negotiation.serverCertificate = der
    }
  }

  private func receive(keyExchange message: HandshakeMessage, _ half: TLSHalf) {
    half.negotiation.hasClientKeyExchange = true
    half.negotiation.encryptedPremaster = ClientKeyExchange.encryptedPremaster(
      message.body, half.negotiation.serverHello)
  }

  /// By what a resumed session may be known.
  func sessionIdentifiers(_ hello: ServerHello, _ half: TLSHalf) -> [[UInt8]] {
    guard let client = half.negotiation.clientHello else { return [] }
    if hello.version >= .tls13 {
      return hello.extensions.selectsPreSharedKey ? client.extensions.preSharedKeys : []
    }
    var identifiers: [[UInt8]] = []
    if !hello.sessionID.isEmpty, hello.sessionID == client.sessionID { identifiers.append(hello.sessionID) }
    if let ticket = client.extensions.sessionTicket, !ticket.isEmpty { identifiers.append(ticket) }
    return identifiers
  }

  /// Keeps what is needed when the session is resumed.
  func rememberSession(_ half: TLSHalf) {
    guard let hello = half.negotiation.serverHello, hello.version < .tls13 else { return }
    let session = SessionMemory.Session(master: half.negotiation.provenMaster, clientSubject: clientSubject)
    guard session.master != nil || session.clientSubject != nil else { return }
    secrets.remember(hello.sessionID, session)
    if let ticket = half.negotiation.newTicket { secrets.remember(ticket, session) }
  }

  func noteResumption(_ half: TLSHalf) {
    isResumed = isResumed ?? half.negotiation.isResumed(isWhole: !client.hadGap && !server.hadGap)
    if isResumed == true { recallSubject(half) }
  }

  // MARK: keys change

  /// After a ChangeCipherSpec, and up to TLS 1.2: the next record has the keys of the last handshake.
  func changeKeys(_ half: TLSHalf) {
    half.state = .sealed
    // Keys change once in a handshake: the hello of this one is missing.
    if half.keyedHandshakes > half.negotiation.number { half.negotiation = half.negotiation.following() }
    half.keyedHandshakes = half.negotiation.number + 1
    half.epochs = nil
    half.active = nil
    half.hasFinished = false
    half.handshake.reset()
    noteResumption(half)
    // Without secrets too: the session's subject is in the clear.
    rememberSession(half)
  }

  /// Leaves a stage of TLS 1.3.
  private func advance(_ half: TLSHalf, from stage: KeyEpoch.Stage) {
    half.epochs = half.epochs?.filter { $0.stage.rawValue > stage.rawValue }
    half.active = nil
    if stage == .handshake { half.hasFinished = true }
  }

  private func updateKeys(_ half: TLSHalf) {
    guard let active = half.active, let next = nextKeys(after: active, half) else { return }
    next.isProven = true
    half.active = next
  }

  func note(_ alert: Alert?, _ half: TLSHalf) {
    guard let alert, alert.description != Alert.closeNotify, self.alert == nil else { return }
    self.alert = "\(alert.name) from the \(half.side.name)"
  }
}
