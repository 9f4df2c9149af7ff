/// The outcome of a notification over all of its sendings, in the order in which outcomes are decided.
public enum StoryOutcome: String, Sendable, Codable, CaseIterable, BitwiseCopyable {
  /// Two or more sendings were accepted.
  case acceptedTwice = "accepted_twice"
  /// One was accepted, and written after its expiration.
  case expired
  /// One was accepted, after others that were not.
  case recovered
  /// The first sending was accepted, and no other.
  case accepted
  /// None is known to be accepted, and the fate of one is unknown.
  case open
  /// None was accepted, and one was rejected.
  case rejected
  /// All were discarded.
  case lost
}

extension StoryOutcome {
  /// What may have happened, where the name says more than a recording can: the two legs of a balancer have other
  /// addresses and sequence numbers, as two senders have.
  package var meaning: String {
    switch self {
    case .acceptedTwice: "sent twice, or recorded on both sides of a balancer"
    default: rawValue.replacing("_", with: " ")
    }
  }
}
