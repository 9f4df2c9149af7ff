/// The outcome of one poll of the feedback service.
struct FeedbackPoll: Sendable {
  /// How a poll ended, with the reason.
  enum End: Sendable, Equatable {
    /// The service ended the list after a whole tuple, or an empty list.
    case complete
    /// The list was cut off: by the service, by the network, or by a limit.
    case incomplete(String)
    /// Nothing was read.
    case failed(String)
  }

  var end: End
  /// The whole tuples that came.
  var counts = FeedbackCounts()
  /// The tokens that are listed after this poll; those before it, unless it was complete.
  var tokens: ListedTokens
}

/// The polls of a run: `polls = complete + incomplete + failed`.
struct FeedbackBooks: Sendable {
  /// Maximum number of distinct reasons.
  private static let maximumReasons = 16

  private(set) var polls = 0
  private(set) var complete = 0
  private(set) var incomplete = 0
  private(set) var failed = 0
  /// Of complete polls.
  private(set) var counts = FeedbackCounts()
  /// Whole tuples of incomplete polls, in no other count.
  private(set) var tuplesCutOff = 0
  /// Incomplete and failed polls, by reason.
  private(set) var reasons: [String: Int] = [:]
  /// Tokens of the load that were in complete lists, and those of them that were listed after their registration.
  private(set) var tokens = 0
  private(set) var listedTokens = 0

  mutating func note(_ poll: FeedbackPoll) {
    polls += 1
    switch poll.end {
    case .complete:
      complete += 1
      counts += poll.counts
      (tokens, listedTokens) = (poll.tokens.count, poll.tokens.listedCount)
    case .incomplete(let reason):
      incomplete += 1
      tuplesCutOff += poll.counts.tuples
      note(reason)
    case .failed(let reason):
      failed += 1
      note(reason)
    }
  }

  private mutating func note(_ reason: String) {
    let isKnown = reasons[reason] != nil || reasons.count < Self.maximumReasons
    reasons[isKnown ? reason : "other reasons", default: 0] += 1
  }
}
