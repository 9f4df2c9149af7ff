import Bytes
import TLSFoundation

/// A recorded TLS connection: takes both directions' bytes, gaps and ends, and gives out their plaintext.
///
/// Each direction is read record by record. Until its keys change it reads the handshake; then it opens each record,
/// verifies it, and hands on the content. What cannot be opened becomes a gap; what stands in the way is said in words
/// by `summary`.
public final class TLSStream {
  let secrets: Secrets
  let limits: TLSLimits
  let client: TLSHalf
  let server: TLSHalf
  var problem: String?
  var clientSubject: String?
  var isResumed: Bool?
  var alert: String?
  /// Of the first handshake, should a later one never come to keys.
  var firstServerHello: ServerHello?
  var keyExchange: String?

  public init(secrets: Secrets, limits: TLSLimits) {
    self.secrets = secrets
    self.limits = limits
    let negotiation = Negotiation()
    client = TLSHalf(.client, negotiation)
    server = TLSHalf(.server, negotiation)
  }

  deinit { secrets.heldBytes -= client.heldBytes + server.heldBytes }

  /// What is known so far; final after `finish`.
  public var summary: TLSSummary {
    var summary = TLSSummary()
    let hello = server.negotiation.serverHello ?? firstServerHello
    summary.version = hello?.version ?? client.active?.decryptor.version ?? server.active?.decryptor.version
    summary.suite = hello?.suite ?? client.active?.suite ?? server.active?.suite
    summary.keyExchange = keyExchange
    summary.isResumed = isResumed
    summary.plaintextBytes = client.plaintextBytes + server.plaintextBytes
    summary.wireBytes = client.wireBytes + server.wireBytes
    summary.problem = problem
    let isClosed = [client, server].contains { $0.sealedRecords > 0 || $0.state == .failed || $0.unread != nil }
    summary.isDecrypted = problem == nil || !isClosed || summary.plaintextBytes > 0
    summary.isWhole = problem == nil || !isClosed
    summary.clientSubject = clientSubject
    summary.alert = alert
    return summary
  }

  /// Bytes of a direction in the capture, as sent.
  public func wireBytes(from side: TLSSide) -> Int { half(side).wireBytes }

  /// It holds bytes until secrets come; how many.
  public var bytesWaitingForSecrets: Int {
    [client, server].reduce(0) { sum, half in
      if case .secrets? = half.waiting { sum + half.heldBytes } else { sum }
    }
  }

  func half(_ side: TLSSide) -> TLSHalf { side == .client ? client : server }

  // MARK: events

  /// Takes the next bytes of a direction.
  public func receive(_ bytes: RawSpan, from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver) {
    let half = half(side)
    half.wireBytes += bytes.byteCount
    if let decryptor = half.straight {
      guard let rest = readStraight(bytes, half, decryptor, point, emit) else { return }
      read(bytes.extracting(rest..<bytes.byteCount), half, point, emit)
    } else if half.isWaiting {
      hold(bytes, half, point)
    } else {
      read(bytes, half, point, emit)
    }
    settle(emit)
    client.settleStraight()
    server.settleStraight()
  }

  /// Takes a gap of `length` bytes.
  public func gap(
    length: Int, reason: PlaintextGapReason, from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let half = half(side)
    if half.isWaiting {
      hold(.gap(length: length, reason, point), 0, half)
    } else {
      readGap(length, reason, half, point, emit)
    }
    settle(emit)
    client.settleStraight()
    server.settleStraight()
  }

  /// Notes that a direction has ended.
  public func end(from side: TLSSide, at point: CapturePoint, _ emit: PlaintextReceiver) {
    let half = half(side)
    guard !half.isOver else { return }
    half.isOver = true
    if half.isWaiting {
      hold(.end(point), 0, half)
    } else {
      readEnd(half, point, emit)
    }
    settle(emit)
  }

  /// Ends the connection: what waited is read with what is known.
  public func finish(at point: CapturePoint, _ emit: PlaintextReceiver) {
    for half in [client, server] { half.mayWait = false }
    for half in [client, server] where half.isWaiting { replay(half, emit) }
    for half in [client, server] where !half.isOver { end(from: half.side, at: point, emit) }
    concludeProblem()
  }

  // MARK: waiting for the other direction

  func hold(_ bytes: RawSpan, _ half: TLSHalf, _ point: CapturePoint) {
    hold(.bytes(Array(copying: bytes), point), bytes.byteCount, half)
  }

  func hold(_ piece: TLSHalf.Held, _ count: Int, _ half: TLSHalf) {
    half.held.append(piece)
    // A small piece takes more memory than its bytes.
    let cost = max(count, 128)
    half.heldBytes += cost
    secrets.heldBytes += cost
    if half.heldBytes > limits.maximumHeldBytes || secrets.heldBytes > limits.maximumTotalHeldBytes {
      half.mayWait = false
    }
  }

  /// Begins to wait with `rest`.
  func wait(_ half: TLSHalf, for reason: TLSHalf.Waiting, _ rest: RawSpan, _ point: CapturePoint) {
    half.waiting = reason
    hold(rest, half, point)
  }

  /// Reads on where waiting is over. Each reason to wait ends once in a handshake, so that what is held is read few times.
  private func settle(_ emit: PlaintextReceiver) {
    var hasMoved = true
    while hasMoved {
      hasMoved = false
      for half in [client, server] {
        guard let reason = half.waiting, !half.mayWait || !mustWait(half, for: reason) else { continue }
        if case .secrets = reason, half.mayWait, secrets.mayGrow, case .failed = collect(half) {
          // Others' secrets have come.
          half.waiting = .secrets(generation: secrets.generation)
          continue
        }
        replay(half, emit)
        hasMoved = true
      }
    }
  }

  /// Tries again with secrets that have come since.
  public func retry(_ emit: PlaintextReceiver) {
    settle(emit)
    client.settleStraight()
    server.settleStraight()
  }

  private func replay(_ half: TLSHalf, _ emit: PlaintextReceiver) {
    let held = half.held
    half.held = []
    secrets.heldBytes -= half.heldBytes
    half.heldBytes = 0
    half.waiting = nil
    for piece in held {
      switch piece {
      case .bytes(let bytes, let point):
        if half.isWaiting { hold(bytes.rawBytes, half, point) } else { read(bytes.rawBytes, half, point, emit) }
      case .gap(let length, let reason, let point):
        if half.isWaiting { hold(piece, 0, half) } else { readGap(length, reason, half, point, emit) }
      case .end(let point):
        if half.isWaiting { hold(piece, 0, half) } else { readEnd(half, point, emit) }
      }
    }
  }

  // MARK: failure

  /// Gives a direction up: its bytes are only counted from here on.
  func fail(_ half: TLSHalf, _ reason: String) {
    half.state = .failed
    half.epochs = nil
    half.active = nil
    problem = problem ?? reason
  }

  /// Says what was wrong when records could not be opened one by one.
  private func concludeProblem() {
    guard problem == nil else { return }
    if client.sealedRecords + server.sealedRecords == 0 {
      let isCut = client.hadGap || server.hadGap
      problem = isCut ? "the handshake is not whole in the capture" : "the handshake was not finished"
      return
    }
    for half in [client, server] where !half.openedData {
      guard let unread = half.unread, unread.missing > 0, !unread.isBeforeCapture else { continue }
      // What is missing may be no more than the end of its handshake.
      guard half.hasFinished || !self.half(half.side.other).openedData else { continue }
      let cause = unread.reason == .truncated ? "the snap length cut it" : "packets are missing"
      problem = "no data of the \(half.side.name)'s is whole in the capture: \(cause)"
      return
    }
    for half in [client, server] where half.sealedRecords > 0 && !half.openedData && half.failures > 0 {
      if half.failures >= half.sealedRecords {
        problem = Self.unfit
      } else if half.negotiation.version ?? .tls12 >= .tls13, half.active?.stage != .data {
        problem = "the \(half.side.name)'s traffic secret does not open its records, or is not in the key log"
      }
    }
  }
}
