/// What handshake messages and alerts say.
extension TLSStream {
  func receive(_ message: HandshakeMessage, _ half: TLSHalf) {
    let isClient = half.side == .client
    switch message.kind {
    case .clientHello where isClient: receive(ClientHello(message.body), message)
    case .serverHello where !isClient: receive(ServerHello(message.body), message)
    case .certificate:
      keep(message, isClient)
      receive(certificate: message, isClient)
    case .serverHelloDone where !isClient:
      keep(message, isClient)
      negotiation.hasServerHelloDone = true
    case .clientKeyExchange where isClient:
      keep(message, isClient)
      receive(keyExchange: message)
    case .newSessionTicket where !isClient:
      let version = negotiation.version ?? .tls12
      let ticket = NewSessionTicket.ticket(message.body, version)
      if version >= .tls13 {
        if let ticket, clientSubject != nil {
          secrets.remember(ticket, SessionMemory.Session(clientSubject: clientSubject))
        }
      } else {
        negotiation.newTicket = ticket
        rememberSession()
      }
    case .encryptedExtensions where !isClient && negotiation.version == .tls13:
      negotiation.acceptsEarlyData = EncryptedExtensions.acceptsEarlyData(message.body)
    case .endOfEarlyData where isClient: advance(half, from: .early)
    case .finished where (half.active?.decryptor.version ?? .tls12) >= .tls13: advance(half, from: .handshake)
    case .keyUpdate where half.active?.stage == .data: updateKeys(half)
    case .helloRequest: break
    default: keep(message, isClient)
    }
  }

  private func keep(_ message: HandshakeMessage, _ isClient: Bool) {
    guard negotiation.version ?? .tls12 < .tls13 else { return }
    negotiation.keep(message.bytes, fromClient: isClient, maximumLength: limits.maximumHandshakeLength)
  }

  private func receive(_ hello: ClientHello?, _ message: HandshakeMessage) {
    guard let hello else { return }
    // A hello after a finished handshake begins another one. A server's hello without a client's is this one's answer,
    // delivered before it.
    let hasClient = negotiation.clientRandom != nil || negotiation.provenMaster != nil
    if negotiation.serverHello != nil, hasClient { negotiation = Negotiation() }
    negotiation.clientHello = hello
    negotiation.clientRandom = hello.random
    negotiation.clientVersion = hello.version
    negotiation.keep(message.bytes, fromClient: true, maximumLength: limits.maximumHandshakeLength)
  }

  private func receive(_ hello: ServerHello?, _ message: HandshakeMessage) {
    guard let hello, !hello.isRetryRequest else { return }
    negotiation.serverHello = hello
    firstServerHello = firstServerHello ?? hello
    keyExchange = keyExchange ?? negotiation.keyExchange
    keep(message, false)
    for identifier in sessionIdentifiers(hello) where clientSubject == nil {
      clientSubject = secrets.session(identifier)?.clientSubject
    }
  }

  private func receive(certificate message: HandshakeMessage, _ isClient: Bool) {
    guard let der = CertificateMessage.first(message.body, negotiation.version ?? .tls12) else { return }
    if isClient {
      clientSubject = Certificate(der: der)?.subject ?? clientSubject
    } else {
      negotiation.serverCertificate = der
    }
  }

  private func receive(keyExchange message: HandshakeMessage) {
    negotiation.hasClientKeyExchange = true
    negotiation.encryptedPremaster = ClientKeyExchange.encryptedPremaster(message.body, negotiation.serverHello)
  }

  /// By what a resumed session may be known.
  func sessionIdentifiers(_ hello: ServerHello) -> [[UInt8]] {
    guard let client = negotiation.clientHello else { return [] }
    if hello.version >= .tls13 {
      return hello.extensions.selectsPreSharedKey ? client.extensions.preSharedKeys : []
    }
    var identifiers: [[UInt8]] = []
    if !hello.sessionID.isEmpty, hello.sessionID == client.sessionID { identifiers.append(hello.sessionID) }
    if let ticket = client.extensions.sessionTicket, !ticket.isEmpty { identifiers.append(ticket) }
    return identifiers
  }

  /// Keeps what is needed when the session is resumed.
  func rememberSession() {
    guard let hello = negotiation.serverHello, hello.version < .tls13 else { return }
    let session = SessionMemory.Session(master: negotiation.provenMaster, clientSubject: clientSubject)
    guard session.master != nil || session.clientSubject != nil else { return }
    secrets.remember(hello.sessionID, session)
    if let ticket = negotiation.newTicket { secrets.remember(ticket, session) }
  }

  // MARK: keys change

  /// After a ChangeCipherSpec, and up to TLS 1.2: the next record has the keys of the last handshake.
  func changeKeys(_ half: TLSHalf) {
    half.state = .sealed
    half.epochs = nil
    half.active = nil
    half.handshake.reset()
    if isResumed == nil, negotiation.serverHello != nil { isResumed = negotiation.isResumed }
    // Without secrets too: the session's subject is in the clear.
    rememberSession()
  }

  /// Leaves a stage of TLS 1.3.
  private func advance(_ half: TLSHalf, from stage: KeyEpoch.Stage) {
    half.epochs = half.epochs?.filter { $0.stage.rawValue > stage.rawValue }
    half.active = nil
  }

  private func updateKeys(_ half: TLSHalf) {
    guard let active = half.active, let next = nextKeys(after: active) else { return }
    next.isProven = true
    half.active = next
  }

  func note(_ alert: Alert?, _ half: TLSHalf) {
    guard let alert, alert.description != Alert.closeNotify, self.alert == nil else { return }
    self.alert = "\(alert.name) from the \(half.side.name)"
  }
}
