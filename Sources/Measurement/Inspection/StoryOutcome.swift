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
  /// No sending was accepted, and one was rejected.
  case rejected
  /// All sendings were discarded.
  case lost
}

extension StoryOutcome {
  /// Other possible causes, if the name claims more than a recording can show: the two legs of a load balancer differ
  /// in addresses and sequence numbers, as two senders do.
  package var meaning: String {
    switch self {
    case .acceptedTwice: "sent twice, or recorded on both sides of a balancer"
    default: rawValue.replacing("_", with: " ")
    }
  }
}
