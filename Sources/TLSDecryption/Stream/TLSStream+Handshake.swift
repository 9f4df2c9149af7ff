import TLSFoundation

/// The handling of handshake messages and alerts.
extension TLSStream {
  func receive(_ message: HandshakeMessage, _ direction: TLSDirection) {
    let isClient = direction.side == .client
    switch message.kind {
    case .clientHello where isClient: receive(ClientHello(message.body), message, direction)
    case .serverHello where !isClient: receive(ServerHello(message.body), message, direction)
    case .certificate:
      keep(message, direction)
      receive(certificate: message, direction)
    case .serverHelloDone where !isClient:
      keep(message, direction)
      direction.negotiation.hasServerHelloDone = true
    case .clientKeyExchange where isClient:
      keep(message, direction)
      // Up to TLS 1.2 a certificate comes before it.
      if direction.negotiation.clientHello != nil, !direction.records.hadGap { hasReadClientHandshake = true }
      receive(keyExchange: message, direction)
    case .newSessionTicket where !isClient:
      let version: TLSVersion = direction.isModern ? .tls13 : .tls12
      let ticket = NewSessionTicket.ticket(message.body, version)
      if version >= .tls13 {
        if let ticket, clientCertificate != nil {
          secrets.remember(ticket, SessionMemory.Session(clientCertificate: clientCertificate))
        }
      } else {
        direction.negotiation.newTicket = ticket
        rememberSession(direction)
      }
    case .encryptedExtensions where !isClient && direction.negotiation.version == .tls13:
      let extensions = EncryptedExtensions.extensions(message.body)
      direction.negotiation.acceptsEarlyData = extensions.earlyData
      chosenProtocol = chosenProtocol ?? extensions.applicationProtocols.first
    case .endOfEarlyData where direction.keys.active?.stage == .early: direction.keys.leave(.early)
    case .finished where direction.keys.active?.stage == .handshake:
      if isClient, !direction.records.hadGap, let hello = direction.negotiation.serverHello,
        !hello.extensions.selectsPreSharedKey
      {
        hasReadClientHandshake = true
      }
      direction.keys.leave(.handshake)
    case .keyUpdate where direction.keys.active?.stage == .data && direction.isModern: updateKeys(direction)
    case .helloRetryRequest where !isClient: direction.negotiation.noteRetryRequest()
    case .helloRequest: break
    default: keep(message, direction)
    }
  }

  private func keep(_ message: HandshakeMessage, _ direction: TLSDirection) {
    guard !direction.isModern else { return }
    direction.negotiation.keep(
      message.bytes, fromClient: direction.side == .client, maximumLength: limits.maximumHandshakeLength)
  }

  private func receive(_ hello: ClientHello?, _ message: HandshakeMessage, _ direction: TLSDirection) {
    guard let hello else { return }
    renegotiateIfSealed(direction)
    direction.negotiation.clientHello = hello
    direction.negotiation.clientRandom = hello.random
    if offeredProtocols.isEmpty { offeredProtocols = hello.extensions.applicationProtocols }
    direction.negotiation.keep(message.bytes, fromClient: true, maximumLength: limits.maximumHandshakeLength)
    recallSubject(direction)
  }

  /// A hello in a sealed record begins another handshake.
  private func renegotiateIfSealed(_ direction: TLSDirection) {
    guard direction.keys.active != nil else { return }
    direction.negotiation = direction.negotiation.following()
    if abs(client.negotiation.number - server.negotiation.number) > 16 {
      fail(direction, "one side's handshakes run far ahead of the other's")
    }
  }

  private func receive(_ hello: ServerHello?, _ message: HandshakeMessage, _ direction: TLSDirection) {
    guard let hello else { return }
    if hello.isRetryRequest { return direction.negotiation.noteRetryRequest() }
    renegotiateIfSealed(direction)
    direction.negotiation.serverHello = hello
    firstServerHello = firstServerHello ?? hello
    keyExchange = keyExchange ?? direction.negotiation.keyExchange
    chosenProtocol = chosenProtocol ?? hello.extensions.applicationProtocols.first
    keep(message, direction)
    recallSubject(direction)
  }

  /// A resumed session's client presented its certificate when the session began.
  private func recallSubject(_ direction: TLSDirection) {
    guard clientCertificate == nil, let hello = direction.negotiation.serverHello else { return }
    // A ticket that is offered may be refused; up to TLS 1.2 that shows when keys are in use.
    let isTaken =
      hello.version >= .tls13
      || (!hello.sessionID.isEmpty && hello.sessionID == direction.negotiation.clientHello?.sessionID)
      || isResumed == true
    guard isTaken else { return }
    for identifier in sessionIdentifiers(hello, direction) where clientCertificate == nil {
      clientCertificate = secrets.session(identifier)?.clientCertificate
    }
  }

  private func receive(certificate message: HandshakeMessage, _ direction: TLSDirection) {
    guard let der = CertificateMessage.first(message.body, direction.isModern ? .tls13 : .tls12) else { return }
    if direction.side == .client {
      hasClientCertificate = true
      clientCertificate = Certificate(der: der).map(ClientCertificate.init) ?? clientCertificate
    } else {
      direction.negotiation.serverCertificate = der
    }
  }

  private func receive(keyExchange message: HandshakeMessage, _ direction: TLSDirection) {
    direction.negotiation.hasClientKeyExchange = true
    direction.negotiation.encryptedPremaster = ClientKeyExchange.encryptedPremaster(
      message.body, direction.negotiation.serverHello)
  }

  /// The identifiers of a resumed session.
  func sessionIdentifiers(_ hello: ServerHello, _ direction: TLSDirection) -> [[UInt8]] {
    guard let client = direction.negotiation.clientHello else { return [] }
    if hello.version >= .tls13 {
      return hello.extensions.selectsPreSharedKey ? client.extensions.preSharedKeys : []
    }
    var identifiers: [[UInt8]] = []
    if !hello.sessionID.isEmpty, hello.sessionID == client.sessionID { identifiers.append(hello.sessionID) }
    if let ticket = client.extensions.sessionTicket, !ticket.isEmpty { identifiers.append(ticket) }
    return identifiers
  }

  /// Keeps the secrets for a resumption of the session.
  func rememberSession(_ direction: TLSDirection) {
    guard let hello = direction.negotiation.serverHello, hello.version < .tls13 else { return }
    let session = SessionMemory.Session(
      master: direction.negotiation.provenMaster, clientCertificate: clientCertificate)
    guard session.master != nil || session.clientCertificate != nil else { return }
    secrets.remember(hello.sessionID, session)
    if let ticket = direction.negotiation.newTicket { secrets.remember(ticket, session) }
  }

  func noteResumption(_ direction: TLSDirection) {
    isResumed = isResumed ?? direction.negotiation.isResumed(isWhole: !client.records.hadGap && !server.records.hadGap)
    if isResumed == true { recallSubject(direction) }
  }

  // MARK: keys change

  /// After a ChangeCipherSpec, and up to TLS 1.2: the next record has the keys of the last handshake.
  func changeKeys(_ direction: TLSDirection) {
    // Keys change once per handshake, so this handshake's hello is missing.
    if direction.keyedHandshakes > direction.negotiation.number {
      direction.negotiation = direction.negotiation.following()
    }
    direction.keyedHandshakes = direction.negotiation.number + 1
    direction.keys.change()
    direction.handshake.reset()
    noteResumption(direction)
    // Even without secrets: the session's subject is not encrypted.
    rememberSession(direction)
  }

  private func updateKeys(_ direction: TLSDirection) {
    guard let next = direction.keys.active?.updated(draft: direction.draft) else { return }
    next.isProven = true
    direction.keys.update(to: next)
  }

  func note(_ alert: Alert?, _ direction: TLSDirection) {
    guard let alert, alert.description != Alert.closeNotify, self.alert == nil else { return }
    self.alert = "\(alert.name) from the \(direction.side.name)"
  }
}
