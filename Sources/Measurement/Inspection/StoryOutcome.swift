/// The outcome of a notification over all of its sendings, in the order in which outcomes are decided.
public enum StoryOutcome: String, Sendable, Codable, CaseIterable, BitwiseCopyable {
  /// Two or more sendings were accepted.
  case acceptedTwice = "accepted_twice"
  /// One sending was accepted, after its expiration.
  case expired
  /// One sending was accepted, after others that were not.
  case recovered
  /// The first sending was accepted, and no other.
  case accepted
  /// No sending is known to be accepted, and the fate of one is unknown.
  case open
  /// No sending was accepted, and one was rejected or has no token.
  case rejected
  /// All sendings were discarded.
  case lost
}

extension StoryOutcome {
  /// Its name in words: "accepted twice".
  package var words: String { rawValue.replacing("_", with: " ") }

  /// Its words for a number of notifications; of lost ones they say that nothing could hold another sending.
  package var verdict: String { self == .lost ? ResendWords.lostForGood : words }

  /// What a page says of it.
  package var explanation: String {
    switch self {
    case .acceptedTwice: "two or more sendings were accepted: \(meaning)"
    case .expired: "the accepted sending was written after its expiration"
    case .recovered: "accepted after others that were not"
    case .accepted: "the first sending was accepted, and no other was seen to be"
    case .open: "the trace does not show enough to tell"
    case .rejected: "none was accepted, and one was rejected or has no token"
    case .lost: "all sendings were discarded, and nothing could hold another"
    }
  }

  /// Other possible causes, if the name claims more than a recording can show: the two legs of a load balancer differ
  /// in addresses and sequence numbers, as two senders do.
  package var meaning: String {
    switch self {
    case .acceptedTwice: "sent twice, or recorded on both sides of a balancer"
    default: words
    }
  }
}
