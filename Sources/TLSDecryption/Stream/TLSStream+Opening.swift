import Bytes
import TLSFoundation

/// Opens sealed records, trying keys and numbers where they are not certain.
extension TLSStream {
  enum Attempt {
    case opened, refused
    case wait(TLSHalf.Waiting)
  }

  /// Opens a record that follows the last one.
  func open(
    _ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) -> Step {
    if let active = half.active, half.region == nil {
      // The usual case.
      let decryptor = active.decryptor
      let sequence = decryptor.sequence
      if let opened = decryptor.open(header, fragment, sequence: sequence, into: &secrets.workspace.output) {
        decryptor.accept(fragment, sequence: sequence)
        half.sealedRecords += 1
        deliver(opened, active, half, point, emit)
        return .done
      }
    }
    // Compatibility messages of TLS 1.3 mean nothing; a second hello follows a retry request in the clear.
    if header.type == .changeCipherSpec, half.active == nil || isModern(half) { return .done }
    if header.type == .handshake, half.active == nil, half.negotiation.serverHello == nil, isClearHello(fragment) {
      half.handshake.add(fragment, maximumLength: limits.maximumHandshakeLength) { receive($0, half) }
      return .done
    }
    switch tryOpen(header, fragment, half, point, emit) {
    case .opened: return .done
    case .wait(let reason): return .wait(reason)
    case .refused: break
    }
    refuse(header, fragment, half)
    return .done
  }

  private func isClearHello(_ fragment: RawSpan) -> Bool {
    fragment.byteCount >= 40 && 1...2 ~= fragment.byte(at: 0) && fragment.byte(at: 4) == 3
      && HandshakeMessage.length(fragment) <= limits.maximumHandshakeLength
  }

  /// Counts a record that no keys open.
  private func refuse(_ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf) {
    half.sealedRecords += 1
    half.failures += 1
    guard half.state != .failed else {
      half.region?.captured += header.recordLength
      return
    }
    if half.active == nil && half.failures > Self.patience && half.failures == half.sealedRecords {
      // Nothing is missing, and nothing fits.
      fail(half, Self.unfit)
    }
    var region = half.region ?? SkippedRegion(isBeforeData: !half.openedData && !hasUnopenedEarlyData(half))
    region.captured += header.recordLength
    region.lowest += 1
    region.highest += 1
    half.region = region
    half.noteEnd(fragment)
  }

  /// Sealed records from the first on that may stay closed before a direction is given up: a handshake has fewer.
  private static let patience = 256
  static let unfit = "the secrets for this connection do not open its records"

  /// Early data is being sent for which there is no secret.
  private func hasUnopenedEarlyData(_ half: TLSHalf) -> Bool {
    half.side == .client && half.negotiation.clientHello?.extensions.earlyData == true
      && half.negotiation.acceptsEarlyData != false && half.active == nil
  }

  // MARK: trying

  /// Opens a record with whatever keys and number fit.
  func tryOpen(
    _ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) -> Attempt {
    if half.epochs == nil && half.active == nil {
      switch prepare(half) {
      case .ready: break
      case .wait(let reason): return .wait(reason)
      case .failed(let reason):
        fail(half, reason)
        return .refused
      }
    }
    if let match = match(header, fragment, half) {
      accept(match, fragment, half, point, emit)
      deliver(match.opened, match.candidate, half, point, emit)
      return .opened
    }
    if let match = matchRenegotiated(header, fragment, half) {
      accept(match, fragment, half, point, emit)
      deliver(match.opened, match.candidate, half, point, emit)
      return .opened
    }
    if half.isGuessing && half.active == nil {
      half.epochs = nil
      half.isGuessing = false
    } else if lacksKeys(half) {
      // The secrets of this stage may come later than those of the one before.
      if half.generation != secrets.generation || secrets.readLate() {
        half.epochs = nil
        return tryOpen(header, fragment, half, point, emit)
      }
      if half.mayWait && secrets.mayGrow { return .wait(.secrets(generation: secrets.generation)) }
    }
    if let active = half.active, active.decryptor.needsVector, half.region != nil,
      let opened = active.decryptor.openWithoutVector(header, fragment, into: &secrets.workspace.output)
    {
      acceptWithoutVector(opened, active, header, fragment, half, point, emit)
      return .opened
    }
    if half.attempts > limits.maximumAttempts {
      fail(half, "no record could be opened after a gap or damage in \(limits.maximumAttempts) attempts")
    }
    return .refused
  }

  func nextKeys(after candidate: KeyCandidate, _ half: TLSHalf) -> KeyCandidate? {
    let draft = half.negotiation.serverHello?.draft ?? 0
    let secret = KeySchedule.nextTrafficSecret(after: candidate.secret, candidate.suite, draft: draft)
    guard let keys = KeySchedule.keys(trafficSecret: secret, candidate.suite, draft: draft),
      let decryptor = RecordDecryptor(keys, candidate.suite, .tls13, draft: draft)
    else { return nil }
    return KeyCandidate(decryptor, .data, candidate.suite, line: nil, secret: secret)
  }

  // MARK: success

  /// The keys of a handshake inside the connection, when the message that brings them into use is missing.
  private func matchRenegotiated(_ header: RecordHeader, _ fragment: RawSpan, _ half: TLSHalf) -> KeyMatch? {
    guard let active = half.active, half.region?.missing ?? 0 > 0, active.decryptor.version < .tls13 else { return nil }
    // The hello before may be missing too; then the other direction knows of the handshake.
    let known = (half.negotiation, half.keyedHandshakes)
    if half.keyedHandshakes > half.negotiation.number { half.negotiation = half.negotiation.following() }
    if half.negotiation.serverHello != nil, case .ready = collect(half) {
      half.active = nil
      if let match = match(header, fragment, half) {
        half.keyedHandshakes = half.negotiation.number + 1
        return match
      }
      half.active = active
    }
    (half.negotiation, half.keyedHandshakes) = known
    half.epochs = []
    return nil
  }

  /// Whether there is no key for the data to come.
  private func lacksKeys(_ half: TLSHalf) -> Bool {
    half.active == nil && half.epochs?.contains { $0.stage == .data && !$0.candidates.isEmpty } == false
  }

  /// Takes keys and number as proven, and gives out what is missing before the record.
  private func accept(
    _ match: KeyMatch, _ fragment: RawSpan, _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let candidate = match.candidate
    half.sealedRecords += 1
    // A record that opens forgives the attempts that few losses cost, so that the work stays in proportion to the records.
    half.attempts = max(0, half.attempts - 256)
    half.trials = 0
    if let region = half.region {
      let isSame = half.active === candidate
      var records =
        isSame ? Int(clamping: match.sequence &- candidate.decryptor.sequence) : Int(clamping: match.sequence)
      var region = region
      if !isSame {
        if half.active?.stage == .data {
          records = max(records, region.lowest)
        } else if !region.isBeforeData {
          // Early data without its secret; the record that ends them has four bytes and is none.
          records = max(records, region.lowest)
          if half.side == .client, region.captured > 4, candidate.stage != .early { region.captured -= 4 }
        }
      }
      half.region = nil
      if half.active == nil { half.lastOverhead = candidate.decryptor.overhead }
      // Before the data there is handshake; up to TLS 1.2 the first sealed record is its last message.
      let handshakes = candidate.decryptor.version >= .tls13 ? 0 : 1
      if !region.isBeforeData || (candidate.stage == .data && records > handshakes) {
        emitRegion(region, records: records, half, point, emit)
      }
    }
    candidate.decryptor.accept(fragment, sequence: match.sequence)
    if half.active !== candidate {
      half.active = candidate
      if candidate.stage == .data { half.hasFinished = true }
      half.lastOverhead = candidate.decryptor.overhead
      // What comes before in a connection does not come again.
      half.epochs = half.epochs?.filter { $0.stage.rawValue > candidate.stage.rawValue }
    }
    prove(candidate, half)
  }

  /// TLS 1.0 after a gap that ends between records: the first block is lost with the one before it.
  private func acceptWithoutVector(
    _ opened: RecordDecryptor.Opened, _ active: KeyCandidate, _ header: RecordHeader, _ fragment: RawSpan,
    _ half: TLSHalf, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    guard let region = half.region else { return }
    half.sealedRecords += 1
    emitRegion(region, records: max(1, region.lowest), half, point, emit)
    active.decryptor.noteEnd(fragment)
    // The number is found with the next record, which can be verified.
    var next = SkippedRegion()
    next.lowest = region.lowest + 1
    next.highest = region.highest + 1
    half.region = next
    deliver(opened, active, half, point, emit)
  }

  /// Notes what a record has proved.
  private func prove(_ candidate: KeyCandidate, _ half: TLSHalf) {
    guard !candidate.isProven else { return }
    candidate.isProven = true
    noteResumption(half)
    keyExchange = keyExchange ?? half.negotiation.keyExchange
    if candidate.decryptor.version < .tls13 {
      guard half.negotiation.provenMaster == nil else { return }
      half.negotiation.provenMaster = candidate.secret
      rememberSession(half)
      half.negotiation.dropTranscript()
    }
    if let line = candidate.line { secrets.use(line) }
  }

  /// Hands on what a record held.
  func deliver(
    _ opened: RecordDecryptor.Opened, _ candidate: KeyCandidate, _ half: TLSHalf, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) {
    // A second reference for as long as the content is handed on; the array is not copied.
    let output = secrets.workspace.output
    switch opened.type {
    case .applicationData:
      // Early data that the server did not take never reached it.
      if candidate.stage == .early && half.negotiation.acceptsEarlyData == false { return }
      half.openedData = true
      half.openedRecords += 1
      if opened.start > 0 {
        emit(.gap(length: opened.start, reason: .undecrypted), half.side, half.offset, point)
        half.offset += opened.start
      }
      guard opened.length > 0 else { return }
      let offset = half.offset
      half.offset += opened.length
      half.plaintextBytes += opened.length
      emit(
        .bytes(output.rawBytes.extracting(0..<opened.length)), half.side, offset, point)
    case .handshake where opened.start == 0:
      half.handshake.add(
        output.rawBytes.extracting(0..<opened.length), maximumLength: limits.maximumHandshakeLength
      ) { receive($0, half) }
    case .alert where opened.start == 0: note(Alert(output.rawBytes.extracting(0..<opened.length)), half)
    case .changeCipherSpec where opened.start == 0: changeKeys(half)
    default: break
    }
  }
}
