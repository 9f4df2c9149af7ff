/// What a load learnt from the feedback service, and what came of it.
extension RunResult {
  /// The polls of the feedback service, the tuples that they brought, and the notifications to listed tokens.
  ///
  /// A token is listed when a list that was read to its end has it with a time after the token's registration.
  public struct Feedback: Sendable, Equatable, Codable {
    /// Whether notifications to listed tokens were left out.
    public var prunes = true
    /// All polls: the sum of complete, incomplete and failed ones.
    public var polls = 0
    /// Polls whose list was read to its end.
    public var complete = 0
    /// Polls whose list was cut off.
    public var incomplete = 0
    /// Polls that read nothing.
    public var failed = 0
    /// Incomplete and failed polls by reason, in words.
    public var failures: [String: Int] = [:]
    /// Tuples of complete polls: the sum of listed, registered since, unknown and not remembered ones.
    public var tuples = 0
    /// Tuples that list a token of the load at a time after its registration.
    public var listed = 0
    /// Tuples whose token was registered at their time, or after it.
    public var registeredSince = 0
    /// Tuples with a token that the load does not have.
    public var unknown = 0
    /// Tuples with a token for which there was no room.
    public var notRemembered = 0
    /// Whole tuples of incomplete polls; in no other count.
    public var tuplesCutOff = 0
    /// Distinct tokens of the load in complete lists; `nil` when some were not remembered, and for several runs.
    public var tokens: Int?
    /// Distinct tokens that are listed; `nil` for several runs, which may list the same ones.
    public var listedTokens: Int?
    /// Sendings that were written to tokens that were listed before. With pruning: those that were in batches already.
    public var sentToListed = 0
    /// Rejections with status 8 of sendings to tokens that were listed before the rejection.
    public var rejectedListed = 0
    /// Sendings that these rejections discarded.
    public var discardedByListed = 0
    /// Rejections with status 8 of sendings to tokens that were not listed then.
    public var rejectedOther = 0
    /// The part of the pruned notifications that was written before and may have been accepted.
    public var prunedUnproven = 0

    package init() {}

    static let counts: [WritableKeyPath<Feedback, Int> & Sendable] = [
      \.polls, \.complete, \.incomplete, \.failed, \.tuples, \.listed, \.registeredSince, \.unknown, \.notRemembered,
      \.tuplesCutOff, \.sentToListed, \.rejectedListed, \.discardedByListed, \.rejectedOther, \.prunedUnproven,
    ]

    /// Adds the counts of another run. Tokens may be the same ones, so they have no sum.
    mutating func add(_ other: Feedback) {
      for path in Self.counts { self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path]) }
      failures.merge(other.failures, uniquingKeysWith: sum)
      prunes = prunes && other.prunes
      (tokens, listedTokens) = (nil, nil)
    }

    /// Whether its counts balance, each equation with its numbers.
    var invariants: [Verdict.Invariant] {
      [
        .init(equation: "polls = complete + incomplete + failed", polls, [complete, incomplete, failed]),
        .init(
          equation: "feedback tuples = listed + registered since + unknown + not remembered", tuples,
          [listed, registeredSince, unknown, notRemembered]),
      ]
    }

    /// Warnings about polls that brought less than all there was to know.
    ///
    /// - Parameter interval: seconds between two polls.
    package func warnings(interval: Double) -> [String] {
      var warnings: [String] = []
      let reason = failures.max { ($0.value, $1.key) < ($1.value, $0.key) }.map { ": \($0.key)" } ?? ""
      if polls == 0 {
        warnings.append(
          "the feedback service was not polled: the schedule ended before the first poll, after \(interval) s")
      }
      if failed > 0 {
        warnings.append("the feedback service was not reachable in \(failed) of \(polls) polls\(reason)")
      }
      if incomplete > 0 {
        warnings.append(
          "\(incomplete) of \(polls) polls of the feedback service were cut off, and count for nothing\(failed > 0 ? "" : reason)"
        )
      }
      if notRemembered > 0 {
        warnings.append(
          "\(notRemembered) feedback tuples had tokens beyond the limit of --max-pruned: these tokens are not listed")
      }
      return warnings
    }
  }
}
