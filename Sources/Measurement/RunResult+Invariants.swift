extension RunResult {
  /// The invariants of the books, each with its numbers.
  ///
  /// - Parameter usesMarkers: every connection ends with an answered marker, and open notifications are resent; so none
  ///   should remain open, whether unknown or abandoned.
  package func invariants(usesMarkers: Bool) -> [Verdict.Invariant] {
    let (notifications, sendings) = (notifications, sendings)
    let fates =
      [notifications.accepted, notifications.rejected, notifications.unknown, notifications.abandoned]
      + [notifications.pruned].compactMap { $0 }
    let ends = [sendings.accepted, sendings.rejected, sendings.discarded, sendings.unknown]
    var invariants = [
      Verdict.Invariant(
        equation:
          "generated = accepted + rejected + unknown + abandoned\(notifications.pruned == nil ? "" : " + pruned")",
        notifications.generated, fates),
      Verdict.Invariant(
        equation: "written = accepted + rejected + discarded + unknown", sendings.written, ends),
    ]
    if usesMarkers {
      // Those that were pruned would have been resent, and so proven.
      let unproven = notifications.unproven.subtractingReportingOverflow(feedback?.prunedUnproven ?? 0).partialValue
      let open = max(notifications.unknown, unproven)
      invariants.append(.init(Verdict.Invariant.proof, holds: open == 0, detail: "\(open) unknown"))
    }
    return invariants + topicInvariants + (feedback?.invariants ?? [])
  }
}

/// The nearest number that JSON can represent; 0 for NaN.
func finite(_ value: Double) -> Double {
  value.isNaN ? 0 : min(max(value, -.greatestFiniteMagnitude), .greatestFiniteMagnitude)
}

/// A sum that stays at its end instead of going beyond it: counts of a document may be anything.
func sum(_ a: Int, _ b: Int) -> Int {
  let (sum, overflow) = a.addingReportingOverflow(b)
  return overflow ? (a < 0 ? .min : .max) : sum
}

extension RunResult.Verdict.Invariant {
  /// A whole that has to be the sum of its parts.
  init(equation name: String, _ whole: Int, _ parts: [Int]) {
    self.init(
      name, holds: whole == parts.reduce(0, sum),
      detail: "\(whole) = \(parts.map { "\($0)" }.joined(separator: " + "))")
  }

  fileprivate static let proof = "markers leave nothing unknown"

  /// Whether the invariant is about proof, instead of the balance of the books.
  public var isAboutProof: Bool { name == Self.proof }
}
