import Bytes
import TLSFoundation

/// A recorded TLS connection: receives the bytes, gaps and ends of both directions, and emits their plaintext.
///
/// Each direction is read record by record. Until its keys change, the handshake is read; then each record is
/// decrypted, verified, and its content delivered. Records that cannot be decrypted become gaps; `summary` states the
/// reason.
///
/// Input of the two directions should be in the order of the capture. One direction may be held until the other
/// direction's hello arrives, or until a secret does, within `TLSLimits.maximumHeldBytes`.
public final class TLSStream {
  let secrets: Secrets
  let limits: TLSLimits
  let client: TLSDirection
  let server: TLSDirection
  var problem: String?
  /// Whom the client's certificate names, once it was read.
  package var clientSubject: String? { clientCertificate?.subject }
  var clientCertificate: ClientCertificate?
  /// A certificate was in the client's handshake, whether or not it can be read.
  var hasClientCertificate = false
  /// All of the client's handshake was read up to where a certificate would have been, in one that resumes no session.
  var hasReadClientHandshake = false
  /// Whether the client certainly presented no certificate.
  package var presentsNoCertificate: Bool { hasReadClientHandshake && !hasClientCertificate }
  package var isResumed: Bool?
  var alert: String?
  /// The ServerHello of the first handshake, in case a later one never gets keys.
  var firstServerHello: ServerHello?
  var keyExchange: String?
  /// The protocol over TLS, as the client offered it and the server chose.
  var offeredProtocols: [String] = []
  var chosenProtocol: String?

  /// Makes a connection of which nothing was read.
  ///
  /// - Parameters:
  ///   - secrets: the key material, shared with other connections of the same thread.
  ///   - limits: the limits on memory and attempts.
  public init(secrets: Secrets, limits: TLSLimits) {
    self.secrets = secrets
    self.limits = limits
    let negotiation = Negotiation()
    client = TLSDirection(.client, negotiation, limits)
    server = TLSDirection(.server, negotiation, limits)
  }

  deinit { secrets.heldBytes -= client.input.heldBytes + server.input.heldBytes }

  /// The summary so far; final after `finish(at:_:)`.
  public var summary: TLSSummary {
    var summary = TLSSummary()
    let hello = server.negotiation.serverHello ?? firstServerHello
    summary.version = hello?.version ?? client.keys.active?.decryptor.version ?? server.keys.active?.decryptor.version
    summary.suite = hello?.suite ?? client.keys.active?.suite ?? server.keys.active?.suite
    summary.keyExchange = keyExchange
    summary.isResumed = isResumed
    summary.plaintextBytes = client.tally.plaintextBytes + server.tally.plaintextBytes
    summary.wireBytes = client.tally.wireBytes + server.tally.wireBytes
    summary.problem = problem
    let isClosed = [client, server].contains {
      $0.tally.sealedRecords > 0 || $0.records.hasFailed || $0.tally.unread != nil
    }
    summary.isDecrypted = problem == nil || !isClosed || summary.plaintextBytes > 0
    summary.isWhole = problem == nil || !isClosed
    if let certificate = clientCertificate {
      summary.clientSubject = certificate.subject
      summary.certificateEnds = certificate.ends
      (summary.isForSandbox, summary.isForProduction) = (certificate.isForSandbox, certificate.isForProduction)
    }
    summary.alert = alert
    (summary.offeredProtocols, summary.chosenProtocol) = (offeredProtocols, chosenProtocol)
    return summary
  }

  /// Bytes of a direction in the capture, as sent.
  package func wireBytes(from side: TLSSide) -> Int { direction(side).tally.wireBytes }

  /// Bytes that are held until secrets arrive.
  package var bytesWaitingForSecrets: Int {
    [client, server].reduce(0) { sum, direction in
      if case .secrets? = direction.input.reason { sum + direction.input.heldBytes } else { sum }
    }
  }

  func direction(_ side: TLSSide) -> TLSDirection { side == .client ? client : server }

  // MARK: events

  /// Receives the next bytes of a direction.
  ///
  /// - Parameters:
  ///   - bytes: the bytes, borrowed for the call.
  ///   - side: the sender.
  ///   - point: the packet with the bytes.
  ///   - emit: receives the plaintext, also that of bytes that were held before.
  /// - Complexity: O(*n*), plus attempts with secrets and sequence numbers after gaps (`TLSLimits.maximumAttempts`).
  public func receive(_ bytes: RawSpan, from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver) {
    let direction = direction(side)
    direction.tally.wireBytes += bytes.byteCount
    if let decryptor = direction.straight {
      guard let rest = readFastPath(bytes, direction, decryptor, point, secrets.workspace, emit) else { return }
      read(bytes.extracting(rest..<bytes.byteCount), direction, point, emit)
    } else if direction.input.isWaiting {
      hold(bytes, direction, point)
    } else {
      read(bytes, direction, point, emit)
    }
    settle(emit)
    client.updateFastPath()
    server.updateFastPath()
  }

  /// Receives the next bytes of a direction as far as they are application data records that can be decrypted with
  /// proven keys, which needs nothing but this connection.
  ///
  /// - Returns: the number of bytes read; pass the rest to `receiveRest`. `nil`: nothing was done.
  package func receiveStraight(
    _ bytes: RawSpan, from side: TLSSide, at point: CapturePoint, _ workspace: TLSWorkspace, _ emit: PlaintextReceiver
  ) -> Int? {
    let direction = direction(side)
    guard let decryptor = direction.straight else { return nil }
    direction.tally.wireBytes += bytes.byteCount
    return readFastPath(bytes, direction, decryptor, point, workspace, emit) ?? bytes.byteCount
  }

  /// Receives the bytes that `receiveStraight` left.
  package func receiveRest(
    _ bytes: RawSpan, from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    read(bytes, direction(side), point, emit)
    settle(emit)
    client.updateFastPath()
    server.updateFastPath()
  }

  /// Receives a gap.
  ///
  /// - Parameters:
  ///   - length: the number of missing bytes.
  ///   - reason: the reason, passed on to the gap in the plaintext.
  ///   - side: the sender of the missing bytes.
  ///   - point: the packet at which the gap was noticed.
  ///   - emit: receives the plaintext and the gap in it.
  public func gap(
    length: Int, reason: PlaintextGapReason, from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let direction = direction(side)
    if direction.input.isWaiting {
      hold(.gap(length: length, reason, point), direction)
    } else {
      readGap(length, reason, direction, point, emit)
    }
    settle(emit)
    client.updateFastPath()
    server.updateFastPath()
  }

  /// Notes that a direction has ended: no more bytes follow.
  public func end(from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver) {
    let direction = direction(side)
    guard !direction.input.isOver else { return }
    direction.input.isOver = true
    if direction.input.isWaiting {
      hold(.end(point), direction)
    } else {
      readEnd(direction, point, emit)
    }
    settle(emit)
  }

  /// Ends the connection: held input is read with the known secrets, and directions without an end are ended.
  public func finish(at point: CapturePoint, _ emit: PlaintextReceiver) {
    for direction in [client, server] { direction.input.forbidWaiting() }
    for direction in [client, server] where direction.input.isWaiting { replay(direction, emit) }
    for direction in [client, server] where !direction.input.isOver { end(from: direction.side, at: point, emit) }
    concludeProblem()
  }

  /// Bytes of incomplete records and messages, and of handshakes whose keys are unknown. Bytes that wait for the other
  /// direction or for secrets are not included.
  package var heldBytes: Int {
    let negotiations =
      client.negotiation === server.negotiation ? [client.negotiation] : [client.negotiation, server.negotiation]
    return client.heldBytes + server.heldBytes + negotiations.reduce(0) { $0 + $1.heldBytes }
  }

  /// Frees memory that is kept for later records.
  package func freeSpare() {
    client.freeSpare()
    server.freeSpare()
  }

  /// Drops held bytes: they, and everything that waits for them, count as not decrypted.
  package func drop(at point: CapturePoint, _ emit: PlaintextReceiver) {
    for direction in [client, server] { direction.input.forbidWaiting() }
    settle(emit)
    for direction in [client, server] {
      direction.negotiation.forget()
      if direction.heldBytes > 0, !direction.input.isWaiting { readGap(0, .lost, direction, point, emit) }
    }
    settle(emit)
    client.updateFastPath()
    server.updateFastPath()
  }

  // MARK: waiting for the other direction

  func hold(_ bytes: RawSpan, _ direction: TLSDirection, _ point: CapturePoint) {
    hold(.bytes(Array(copying: bytes), point), direction)
  }

  func hold(_ piece: DirectionInput.Piece, _ direction: TLSDirection) {
    direction.input.hold(piece, limits, total: &secrets.heldBytes)
  }

  /// Begins to wait with `rest`.
  func wait(_ direction: TLSDirection, for reason: DirectionInput.Reason, _ rest: RawSpan, _ point: CapturePoint) {
    direction.input.wait(for: reason)
    hold(rest, direction, point)
  }

  /// Resumes directions whose waiting is over. Each reason to wait ends once per handshake, so held input is read only
  /// a few times.
  private func settle(_ emit: PlaintextReceiver) {
    var hasMoved = true
    while hasMoved {
      hasMoved = false
      for direction in [client, server] {
        guard let reason = direction.input.reason, !direction.input.mayWait || !mustWait(direction, for: reason) else {
          continue
        }
        if case .secrets = reason, direction.input.mayWait, secrets.mayGrow, case .failed = collect(direction) {
          // Others' secrets have come.
          direction.input.wait(for: .secrets(generation: secrets.generation))
          continue
        }
        replay(direction, emit)
        hasMoved = true
      }
    }
  }

  /// Tries again with secrets that have come since.
  package func retry(_ emit: PlaintextReceiver) {
    settle(emit)
    client.updateFastPath()
    server.updateFastPath()
  }

  private func replay(_ direction: TLSDirection, _ emit: PlaintextReceiver) {
    for piece in direction.input.release(total: &secrets.heldBytes) {
      guard !direction.input.isWaiting else {
        hold(piece, direction)
        continue
      }
      switch piece {
      case .bytes(let bytes, let point): read(bytes.rawBytes, direction, point, emit)
      case .gap(let length, let reason, let point): readGap(length, reason, direction, point, emit)
      case .end(let point): readEnd(direction, point, emit)
      }
    }
  }

  // MARK: failure

  /// Gives a direction up: its bytes are only counted from here on.
  func fail(_ direction: TLSDirection, _ reason: String) {
    direction.records.fail()
    direction.keys.drop()
    problem = problem ?? reason
  }

  /// States why records could not be opened.
  private func concludeProblem() {
    guard problem == nil else { return }
    if client.tally.sealedRecords + server.tally.sealedRecords == 0 {
      let isCut = client.records.hadGap || server.records.hadGap
      problem = isCut ? "the handshake is not whole in the capture" : "the handshake was not finished"
      return
    }
    for direction in [client, server] where !direction.tally.openedData {
      guard let unread = direction.tally.unread, unread.missing > 0, !unread.isBeforeCapture else { continue }
      // The missing bytes may be only the end of the handshake.
      guard direction.keys.hasFinished || !self.direction(direction.side.other).tally.openedData else { continue }
      let cause = unread.reason == .truncated ? "the snap length cut it" : "packets are missing"
      problem = "no data of the \(direction.side.name)'s is whole in the capture: \(cause)"
      return
    }
    for direction in [client, server]
    where direction.tally.sealedRecords > 0 && !direction.tally.openedData && direction.tally.failures > 0 {
      if direction.tally.failures >= direction.tally.sealedRecords {
        problem = Self.unfit
      } else if direction.negotiation.version ?? .tls12 >= .tls13, direction.keys.active?.stage != .data {
        problem = "the \(direction.side.name)'s traffic secret does not open its records, or is not in the key log"
      }
    }
  }
}
