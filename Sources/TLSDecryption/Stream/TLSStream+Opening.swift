import Bytes
import TLSFoundation

/// Opens sealed records, trying keys and numbers where they are not certain.
extension TLSStream {
  enum Attempt {
    case opened, refused
    case wait(DirectionInput.Reason)
  }

  /// Decrypts a record that directly follows the previous one.
  func open(
    _ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) -> Step {
    if let active = direction.keys.active, direction.records.region == nil {
      // The usual case.
      let decryptor = active.decryptor
      let sequence = decryptor.sequence
      if let opened = decryptor.open(header, fragment, sequence: sequence, into: &secrets.workspace.output) {
        decryptor.accept(fragment, sequence: sequence)
        direction.tally.sealedRecords += 1
        deliver(opened, active, direction, point, emit)
        return .done
      }
    }
    // Compatibility messages of TLS 1.3 mean nothing; a second hello follows a retry request in the clear.
    if header.type == .changeCipherSpec, direction.keys.active == nil || direction.isModern { return .done }
    if header.type == .handshake, direction.keys.active == nil, direction.negotiation.serverHello == nil,
      isClearHello(fragment)
    {
      direction.handshake.add(fragment, maximumLength: limits.maximumHandshakeLength) { receive($0, direction) }
      return .done
    }
    switch tryOpen(header, fragment, direction, point, emit) {
    case .opened: return .done
    case .wait(let reason): return .wait(reason)
    case .refused: break
    }
    refuse(header, fragment, direction)
    return .done
  }

  private func isClearHello(_ fragment: RawSpan) -> Bool {
    fragment.byteCount >= 40 && 1...2 ~= fragment.byte(at: 0) && fragment.byte(at: 4) == 3
      && HandshakeMessage.length(fragment) <= limits.maximumHandshakeLength
  }

  /// Counts a record that no keys open.
  private func refuse(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) {
    direction.tally.sealedRecords += 1
    direction.tally.failures += 1
    guard !direction.records.hasFailed else {
      direction.records.region?.captured += header.recordLength
      return
    }
    if direction.keys.active == nil && direction.tally.failures > Self.patience
      && direction.tally.failures == direction.tally.sealedRecords
    {
      // Nothing is missing, and nothing fits.
      fail(direction, Self.unfit)
    }
    direction.records.countUnopened(
      header, isBeforeData: !direction.tally.openedData && !hasUnopenedEarlyData(direction))
    direction.keys.noteEnd(fragment)
  }

  /// Sealed records that may fail to open before a direction is abandoned: a handshake has fewer.
  private static let patience = 256
  static let unfit = "the secrets for this connection do not open its records"

  /// Early data without a secret.
  private func hasUnopenedEarlyData(_ direction: TLSDirection) -> Bool {
    direction.side == .client && direction.negotiation.clientHello?.extensions.earlyData == true
      && direction.negotiation.acceptsEarlyData != false && direction.keys.active == nil
  }

  // MARK: trying

  /// Tries to decrypt a record with any candidate keys and sequence number.
  func tryOpen(
    _ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) -> Attempt {
    if direction.keys.isWithoutKeys {
      switch prepare(direction) {
      case .ready: break
      case .wait(let reason): return .wait(reason)
      case .failed(let reason):
        fail(direction, reason)
        return .refused
      }
    }
    if let match = match(header, fragment, direction) {
      accept(match, fragment, direction, point, emit)
      deliver(match.opened, match.candidate, direction, point, emit)
      return .opened
    }
    if let match = matchRenegotiated(header, fragment, direction) {
      accept(match, fragment, direction, point, emit)
      deliver(match.opened, match.candidate, direction, point, emit)
      return .opened
    }
    if direction.keys.isGuessing && direction.keys.active == nil {
      direction.keys.forgetGuesses()
    } else if direction.keys.lacksKeys {
      // The secrets of this stage may come later than those of the previous stage.
      if direction.keys.generation != secrets.generation || secrets.readLate() {
        direction.keys.drop()
        return tryOpen(header, fragment, direction, point, emit)
      }
      if direction.input.mayWait && secrets.mayGrow { return .wait(.secrets(generation: secrets.generation)) }
    }
    if let active = direction.keys.active, active.decryptor.needsVector, direction.records.region != nil,
      let opened = active.decryptor.openWithoutVector(header, fragment, into: &secrets.workspace.output)
    {
      acceptWithoutVector(opened, active, header, fragment, direction, point, emit)
      return .opened
    }
    if direction.keys.attempts > limits.maximumAttempts {
      fail(direction, "no record could be opened after a gap or damage in \(limits.maximumAttempts) attempts")
    }
    return .refused
  }

  // MARK: success

  /// The keys of a renegotiated handshake, if the message that activates them is missing.
  private func matchRenegotiated(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) -> KeyMatch? {
    guard let active = direction.keys.active, direction.records.region?.missing ?? 0 > 0,
      active.decryptor.version < .tls13
    else {
      return nil
    }
    // The hello may be missing too; then only the other direction shows the handshake.
    let known = (direction.negotiation, direction.keyedHandshakes)
    if direction.keyedHandshakes > direction.negotiation.number {
      direction.negotiation = direction.negotiation.following()
    }
    if direction.negotiation.serverHello != nil, case .ready = collect(direction) {
      direction.keys.setAside()
      if let match = match(header, fragment, direction) {
        direction.keyedHandshakes = direction.negotiation.number + 1
        return match
      }
    }
    (direction.negotiation, direction.keyedHandshakes) = known
    direction.keys.takeUp(active)
    return nil
  }

  /// Accepts keys and sequence number as proven, and delivers the gap before the record.
  private func accept(
    _ match: KeyMatch, _ fragment: RawSpan, _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    let candidate = match.candidate
    direction.tally.sealedRecords += 1
    direction.keys.forgive()
    if var region = direction.records.takeRegion() {
      let isSame = direction.keys.active === candidate
      var records =
        isSame ? Int(clamping: match.sequence &- candidate.decryptor.sequence) : Int(clamping: match.sequence)
      if !isSame {
        if direction.keys.active?.stage == .data {
          records = max(records, region.lowest)
        } else if !region.isBeforeData {
          // Early data without a secret; the record that ends it has four bytes and is not data.
          records = max(records, region.lowest)
          if direction.side == .client, region.captured > 4, candidate.stage != .early { region.captured -= 4 }
        }
      }
      direction.keys.foresee(candidate)
      // Before the data there is handshake; up to TLS 1.2 the first sealed record is its last message.
      let handshakes = candidate.decryptor.version >= .tls13 ? 0 : 1
      if !region.isBeforeData || (candidate.stage == .data && records > handshakes) {
        emitRegion(region, records: records, direction, point, emit)
      }
    }
    candidate.decryptor.accept(fragment, sequence: match.sequence)
    direction.keys.use(candidate)
    prove(candidate, direction)
  }

  /// Accepts a record in TLS 1.0 after a gap between records: its first block is lost, because it needs the previous
  /// record's last one.
  private func acceptWithoutVector(
    _ opened: RecordDecryptor.Opened, _ active: KeyCandidate, _ header: RecordHeader, _ fragment: RawSpan,
    _ direction: TLSDirection, _ point: CapturePoint, _ emit: PlaintextReceiver
  ) {
    guard let region = direction.records.region else { return }
    direction.tally.sealedRecords += 1
    emitRegion(region, records: max(1, region.lowest), direction, point, emit)
    active.decryptor.noteEnd(fragment)
    // The number is found with the next record, which can be verified.
    var next = SkippedRegion()
    next.lowest = region.lowest + 1
    next.highest = region.highest + 1
    direction.records.region = next
    deliver(opened, active, direction, point, emit)
  }

  /// Notes the facts proven by a record.
  private func prove(_ candidate: KeyCandidate, _ direction: TLSDirection) {
    guard !candidate.isProven else { return }
    candidate.isProven = true
    noteResumption(direction)
    keyExchange = keyExchange ?? direction.negotiation.keyExchange
    if candidate.decryptor.version < .tls13 {
      guard direction.negotiation.provenMaster == nil else { return }
      direction.negotiation.provenMaster = candidate.secret
      rememberSession(direction)
      direction.negotiation.dropTranscript()
    }
    if let line = candidate.line { secrets.use(line) }
  }

  /// Delivers the content of a record.
  func deliver(
    _ opened: RecordDecryptor.Opened, _ candidate: KeyCandidate, _ direction: TLSDirection, _ point: CapturePoint,
    _ emit: PlaintextReceiver
  ) {
    // A second reference while the content is passed on; the array is not copied.
    let output = secrets.workspace.output
    switch opened.type {
    case .applicationData:
      // Early data that the server did not take never reached it.
      if candidate.stage == .early && direction.negotiation.acceptsEarlyData == false { return }
      direction.tally.openData()
      if opened.start > 0 {
        let offset = direction.tally.miss(opened.start)
        emit(.gap(length: opened.start, reason: .undecrypted), direction.side, offset, point)
      }
      guard opened.length > 0 else { return }
      let offset = direction.tally.giveOut(opened.length)
      emit(
        .bytes(output.rawBytes.extracting(0..<opened.length)), direction.side, offset, point)
    case .handshake where opened.start == 0:
      direction.handshake.add(
        output.rawBytes.extracting(0..<opened.length), maximumLength: limits.maximumHandshakeLength
      ) { receive($0, direction) }
    case .alert where opened.start == 0: note(Alert(output.rawBytes.extracting(0..<opened.length)), direction)
    case .changeCipherSpec where opened.start == 0: changeKeys(direction)
    default: break
    }
  }
}
