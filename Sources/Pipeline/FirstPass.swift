import Analysis
import Records

/// The first of two passes over the same inputs, for facts that are known only at the ends of connections: fates, and
/// what a selection needs.
struct FirstPass {
  var facts: RecordingFacts
  /// How the second pass writes fates.
  var notation: FateNotation
  /// The totals of the pass; `nil`: there was none.
  var summary: SummaryRecord?

  /// No first pass.
  init(_ selection: RecordSelection, _ notation: FateNotation) {
    facts = RecordingFacts(for: selection)
    self.notation = notation
  }

  /// - Parameter isRedacted: records are redacted before they are written, so their fates' reasons have to be as well.
  init(_ facts: RecordingFacts, _ summary: SummaryRecord, writesFates: Bool, isRedacted: Bool) {
    (self.facts, self.summary) = (facts, summary)
    var fates = facts.fates
    if isRedacted { fates.replaceReasons(Redaction.reason) }
    notation = writesFates ? .each(fates) : .omitted
  }

  /// Reports reached limits and changed inputs.
  ///
  /// - Parameters:
  ///   - second: the totals of the second pass.
  ///   - isCut: the second pass reached a limit.
  func report(after second: SummaryRecord, isCut: Bool, to observer: any ReadingObserver) {
    if case .each(let fates) = notation, fates.connectionsNotKept > 0 {
      observer.receive(.fatesNotKept(connections: fates.connectionsNotKept))
    }
    if case .each(let fates) = notation, fates.answersNotKept > 0 {
      observer.receive(.answersNotKept(fates.answersNotKept))
    }
    if isCut || facts.isCut { observer.receive(.selectionCut) }
    guard let summary, !observer.isStopRequested else { return }
    if summary.packets > second.packets || summary.notifications > second.notifications { return }
    if summary.packets != second.packets || summary.notifications != second.notifications {
      observer.receive(.hasGrown)
    }
  }
}
