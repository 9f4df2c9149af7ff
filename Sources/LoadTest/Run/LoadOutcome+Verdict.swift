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
    }
    let asked = plan.connections.count
    let why = tally.connections.commonestFailure?.reason ?? lastError
    if plan.usesMarkers, interruption?.phase != .connect, tally.everUp < asked, !isObstructed {
      reasons.append("\(tally.everUp) of \(asked) connections came up\(why.map { ": \($0)" } ?? "")")
    }
    return reasons
  }

  private var isObstructed: Bool { if case .permanentFailure = givenUp { true } else { false } }

  private func givenUpReason(_ tally: LoadTally) -> String? {
    let patience = "\(Self.text(plan.connections.giveUp))"
    switch givenUp {
    case nil: return nil
    case .permanentFailure(let reason): return reason
    case .lost(let lastError):
      return areSilent(tally)
        ? "gave up: for \(patience) every connection was closed at once"
        : "gave up: no connection could be established for \(patience): \(lastError)"
    }
  }

  private func nothingAccepted(_ tally: LoadTally) -> String? {
    guard tally.accepted == 0 else { return nil }
    let what = tally.generated == 0 ? "nothing was sent" : "nothing was accepted"
    return "\(what)\(cause(tally).map { ": \($0)" } ?? "")"
  }

  private func nothingWritten(_ tally: LoadTally) -> String? {
    if tally.sendings.written == 0 { return "nothing was written\(cause(tally).map { ": \($0)" } ?? "")" }
    return areSilent(tally) ? cause(tally) : nil
  }

  /// The likely cause.
  private func cause(_ tally: LoadTally) -> String? {
    if areSilent(tally) {
      let which = "\(tally.endedSilently) of \(tally.opened) connections were closed"
      return usesTLS
        ? "\(which) right after the handshake: certificate of the other environment, or revoked?"
        : "\(which) by the gateway without an answer: does it speak TLS?"
    }
    if tally.rejected > 0, tally.rejected == tally.generated {
      return "all \(tally.generated) were rejected"
    }
    if tally.generated == 0 { return tally.unsent > 0 ? "\(tally.unsent) were due" : "nothing was due" }
    let markers = tally.sendings.markers
    if markers > 0, tally.sendings.markersAnswered == 0, tally.errorResponses.isEmpty {
      return
        "none of \(markers) markers was answered within \(Self.text(plan.markerTimeout)); give --markers off for a gateway that answers none"
    }
    return nil
  }

  /// The gateway closed most connections at once without a response; refused connections do not count.
  ///
  /// Without markers a connection that looks for the notification which ends connections is ended by the load itself, and
  /// tells nothing.
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
    let open = tally.unknown + tally.abandonedOpen
    if !plan.usesMarkers {
      reasons.append(
        "written, not proven: without markers the fate of \(open) of \(tally.generated) notifications is unknown")
    } else if open > 0 {
      let unanswered = tally.sendings.markers - tally.sendings.markersAnswered
      reasons.append(
        "the fate of \(open) of \(tally.generated) notifications is unknown; \(unanswered) of \(tally.sendings.markers) markers got no answer"
      )
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
    if tally.skipped > 0 {
      reasons.append("\(tally.skipped) notifications were due and skipped, because they would have been late")
    }
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
