import BinaryProtocol
import PushModel

/// The events of connections, as the runner counts them.
extension LoopRunner {
  /// A batch is about to be written. All counters in one call, because each access to another object is checked for
  /// exclusivity.
  func note(_ count: Int, _ bytes: Int, _ reason: LoadTally.FlushReason, at now: Int64) {
    books.lastWrite = now
    tally.wrote(count, bytes, reason)
    measurements.wrote(count, bytes)
    if books.phase == .measured || books.phase == .warmUp { books.bins.add(count, at: now - machine.start) }
  }

  func noteUp(_ connection: Int, attempt: Int, isFirst: Bool, isResumed: Bool, at now: Int64) {
    books.events?.note(.connected(connection, attempt: attempt, isResumed: isResumed), at: now)
    if isFirst { tally.everOpened += 1 }
    tally.opened += 1
    machine.noteOpened()
    tally.up += 1
    if isResumed { tally.resumed += 1 }
  }

  /// The only place that counts connections which were up, and connections which were refused.
  func noteStanding(_ standing: LifeStanding, isFirst: Bool) {
    switch standing {
    case .open: break
    case .up: if isFirst { tally.everUp += 1 }
    case .refused(let refusal):
      tally.refused += 1
      if refusal != .answered { tally.endedSilently += 1 }
      if refusal == .unused { tally.endedUnused += 1 }
    }
  }

  func noteDown(_ connection: Int, attempt: Int, _ cause: LoadTally.Cause, at now: Int64) {
    books.events?.note(.closed(connection, attempt: attempt, cause), at: now)
    tally.up -= 1
    tally.closed[cause, default: 0] += 1
  }

  /// Counts what the gateway has sent.
  func note(_ event: LifeEvent, of life: ProviderConnection.Life, on connection: Int, at now: Int64) {
    switch event {
    case .proven(let phase, let nanoseconds):
      tally.sendings.proofs += 1
      books.book(phase) { $0.measurements.latency.drainUs.record(Int(nanoseconds / 1_000)) }
    case .response(let rejection, let named):
      tally.errorResponses[rejection.status.rawValue, default: 0] += 1
      let notification = named?.index.map { workload.number(of: share.numbers.number($0)) }
      books.events?.note(
        .errorResponse(connection, status: rejection.status.rawValue, notification: notification), at: now)
      guard let named else {
        tally.unresolvedResponses += 1
        return
      }
      noteRecipient(of: rejection, named)
      books.book(named.phase) {
        if let latency = named.latencyNanoseconds { $0.measurements.latency.errorUs.record(Int(latency / 1_000)) }
        if let lost = named.lossWindow { $0.measurements.lossWindow.record(lost) }
      }
    case .foreign(let bytes):
      noteForeign(bytes)
      books.events?.note(
        .foreignAnswer(connection, reason: PermanentFailure.foreign(ForeignAnswer(bytes)).reason), at: now)
      tally.strayBytes += bytes.count
      return
    case .stray(let count):
      tally.strayBytes += count
      return
    }
    for phase in life.settledPhases { books.book(phase) { $0.settledAt = max($0.settledAt, now) } }
  }

  /// The outcomes of a connection's sendings.
  func book(_ settlement: LifeSettlement) {
    for part in settlement.parts {
      books.book(part.phase) { $0.tally.settled(part.count, part.fate) }
    }
  }

  /// Counts notifications whose fate will not become known.
  func leaveUnknown(_ settlement: LifeSettlement) {
    for part in settlement.parts where part.fate == .unknown {
      books.book(part.phase) { $0.tally.unknown += part.count }
    }
  }
}

extension LoadTally {
  fileprivate mutating func settled(_ count: Int, _ fate: Fate) {
    switch fate {
    case .accepted:
      sendings.accepted += count
      accepted += count
    case .rejected:
      sendings.rejected += count
      rejected += count
    case .discarded: sendings.discarded += count
    case .unknown: sendings.unknown += count
    }
  }

  fileprivate mutating func wrote(_ count: Int, _ bytes: Int, _ reason: FlushReason) {
    sendings.written += count
    writtenBytes += bytes
    flushReasons[reason] += 1
  }
}

extension LoadMeasurements {
  fileprivate mutating func wrote(_ count: Int, _ bytes: Int) {
    batchNotifications.record(count)
    batchBytes.record(bytes)
  }
}
