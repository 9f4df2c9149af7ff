import Measurement

/// The outcome of a run, with its reasons.
extension LoadOutcome {
  /// - Parameter tally: of the whole run.
  func judge(_ tally: LoadTally) -> (outcome: RunResult.Verdict.Outcome, reasons: [String]) {
    let failures = failures(tally)
    if !failures.isEmpty { return (.failed, failures) }
    let doubts = doubts(tally)
    return (doubts.isEmpty ? .proven : .unproven, doubts)
  }

  // MARK: failed

  private func failures(_ tally: LoadTally) -> [String] {
    var reasons: [String] = []
    if let reason = givenUpReason(tally) { reasons.append(reason) }
    // A run interrupted before its start needs no reasons.
    let isCutShort = interruption != nil && tally.generated == 0
    if !isCutShort, let reason = plan.usesMarkers ? nothingAccepted(tally) : nothingWritten(tally) {
      // An obstacle is the reason already.
      if !isObstructed { reasons.append(reason) }
    } else if !isCutShort, !isObstructed {
      reasons += topics.compactMap { nothingOfTopic($0.name, $0.tally) }
    }
    if plan.usesMarkers, interruption?.phase != .connect, tally.everUp < plan.connections.count, !isObstructed {
      // If every connection was closed at once, a reason above states this already.
      if !areSilent(tally) || tally.everUp > 0 { reasons.append(tooFewUp(tally)) }
    }
    return reasons
  }

  private func tooFewUp(_ tally: LoadTally) -> String {
    let (connections, failed) = (tally.connections, tally.connections.commonestFailure)
    let refused =
      tally.refused > (failed?.count ?? 0)
      ? "\(tally.refused) of \(tally.opened) were closed by the gateway before anything on them was proven accepted"
      : nil
    let why = refused ?? failed?.reason ?? (connections.failed > 0 ? lastError : nil)
    return "\(tally.everUp) of \(plan.connections.count) connections came up\(why.map { ": \($0)" } ?? "")"
  }

  private var isObstructed: Bool { if case .permanentFailure = givenUp { true } else { false } }

  private func givenUpReason(_ tally: LoadTally) -> String? {
    let patience = "\(Self.text(plan.connections.giveUp))"
    switch givenUp {
    case nil: return nil
    case .permanentFailure(let reason): return reason
    case .lost where tally.opened > 0 && tally.failed == 0:
      // No attempt failed: the next one was not due yet. The last error, if there is one, ended a connection.
      return "gave up: no connection was up for \(patience): the gateway had closed all \(tally.opened) of them"
    case .lost(let lastError):
      return "gave up: no connection could be established for \(patience): \(lastError ?? "no answer")"
    case .useless(let opened):
      return
        "gave up: for \(patience) the gateway closed every connection, \(opened) of them, before anything was proven accepted"
    }
  }

  private func nothingAccepted(_ tally: LoadTally) -> String? {
    guard tally.accepted == 0 else { return nil }
    // Of what is unknown the gateway may have accepted anything.
    let what =
      tally.generated == 0
      ? "nothing was sent" : tally.open > 0 ? "nothing was proven accepted" : "nothing was accepted"
    return "\(what)\(cause(tally).map { ": \($0)" } ?? "")"
  }

  /// What became of a topic of which nothing was accepted, or without markers written, though something was due.
  private func nothingOfTopic(_ topic: String, _ tally: LoadTally) -> String? {
    guard tally.generated + tally.unsent + tally.skipped > 0 else { return nil }
    return (plan.usesMarkers ? nothingAccepted(tally) : nothingWritten(tally)).map { "topic \(topic): \($0)" }
  }

  private func nothingWritten(_ tally: LoadTally) -> String? {
    if tally.sendings.written == 0 { return "nothing was written\(cause(tally).map { ": \($0)" } ?? "")" }
    return areSilent(tally) ? cause(tally) : nil
  }

  /// The likely cause.
  private func cause(_ tally: LoadTally) -> String? {
    if areSilent(tally) {
      let count = tally.endedUnused > 0 ? tally.endedUnused : tally.endedSilently
      let which = "\(count) of \(tally.opened) connections were closed"
      // Other connections may have been closed because of what was written on them.
      if tally.endedUnused > 0 {
        return usesTLS
          ? "\(which) right after the handshake: certificate of the other environment, or revoked?"
          : "\(which) right after they were opened: does the gateway take connections from here?"
      }
      return usesTLS
        ? "\(which) without an error response after something was written: does the gateway send none?"
        : "\(which) by the gateway without an answer: does it speak TLS, or send no error responses?"
    }
    if tally.rejected > 0, tally.rejected == tally.generated {
      return "all \(tally.generated) were rejected"
    }
    if tally.generated == 0 { return tally.unsent > 0 ? "\(tally.unsent) were due" : "nothing was due" }
    let responses = tally.errorResponses.values.reduce(0, +)
    if tally.unresolvedResponses > 0, tally.unresolvedResponses == responses {
      return "none of \(responses) error responses names a notification that was sent on its connection"
    }
    let markers = tally.sendings.proofsAsked
    if markers > 0, tally.sendings.proofs == 0, tally.errorResponses.isEmpty {
      // At the end of a run the wait is not longer than the drain.
      return
        "none of \(markers) markers was answered within \(Self.text(min(plan.markerTimeout, plan.drain))); give --markers off for a gateway that answers none"
    }
    return nil
  }

  /// The gateway closed most connections at once without a response; refused connections do not count.
  ///
  /// Without markers the load itself ends a connection with which it isolates a notification; such an end shows
  /// nothing.
  private func areSilent(_ tally: LoadTally) -> Bool {
    guard tally.endedSilently > tally.failed, !tally.hasProof else { return false }
    if plan.usesMarkers { return 2 * tally.endedSilently > tally.opened }
    let looking = tally.closed[.local] ?? 0
    return tally.endedSilently >= 2 * plan.connections.count && tally.endedSilently + looking >= tally.opened
  }

  // MARK: unproven

  private func doubts(_ tally: LoadTally) -> [String] {
    var reasons: [String] = []
    if interruption != nil, tally.generated == 0 { reasons.append("nothing was sent") }
    let open = tally.open
    if !plan.usesMarkers {
      reasons.append(
        "written, not proven: without markers the fate of \(open) of \(tally.generated) notifications is unknown")
    } else if open > tally.prunedOpen {
      let unanswered = tally.sendings.proofsAsked - tally.sendings.proofs
      reasons.append(
        "the fate of \(open - tally.prunedOpen) of \(tally.generated) notifications is unknown; \(unanswered) of \(tally.sendings.proofsAsked) markers got no answer"
      )
    }
    if tally.prunedOpen > 0 {
      reasons.append(
        "\(tally.prunedOpen) notifications to tokens that feedback lists were not resent, and may have been accepted")
    }
    let lost = tally.abandoned - tally.abandonedOpen
    if lost > 0 {
      reasons.append("\(lost) notifications were abandoned: discarded, or not written before the end of the run")
    }
    if tally.unsent > 0 {
      let end =
        interruption == nil
        ? "not sent within \(Self.text(LoadPlan.lateness)) of the schedule's end" : "not sent when it was interrupted"
      reasons.append("\(tally.unsent) notifications were due and \(end)")
    }
    if tally.missed > 0 {
      reasons.append("\(tally.missed) notifications were due before the run began, which was late, and skipped")
    }
    let late = tally.skipped - tally.missed
    if late > 0 { reasons.append("\(late) notifications were due and skipped, because they would have been late") }
    if tally.foreignAnswers > 0 {
      reasons.append("\(tally.foreignAnswers) connections were closed because of bytes that are not an error response")
    }
    return reasons
  }

  /// "100 ms", "10 s".
  private static func text(_ duration: Duration) -> String {
    let seconds = duration / .seconds(1)
    if seconds < 1 { return "\(Int(nearest: (seconds * 1_000).rounded())) ms" }
    return seconds == seconds.rounded() ? "\(Int(nearest: seconds)) s" : "\((seconds * 10).rounded() / 10) s"
  }
}
