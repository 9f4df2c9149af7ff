import PushModel

/// The relation of a sending of a notification to the sendings before it.
package enum SendingRelation: Equatable, Sendable {
  /// The notification was not sent before.
  case first
  /// The sending before was accepted: the notification is repeated.
  case repeatsAccepted
  /// The sending before was rejected.
  case retriesRejected
  /// The fate of the sending before is unknown.
  case followsUnknown
  /// The same error response discarded it and the sending before: neither was sent because of the other.
  case discardedTogether
  /// The latest sendings before it, this many, were discarded by another error response, and are sent again by it.
  case resendsDiscarded(count: Int)

  /// The number of discarded sendings that it sends again.
  var resent: Int { if case .resendsDiscarded(let count) = self { count } else { 0 } }
}

/// Relates each sending of a notification to those before it, which come in order of time: the one rule for what was sent
/// again.
///
///     discarded (A)  discarded (A)  discarded (B)     accepted          accepted
///     first          together       resends both      resends the one   repeats
///
/// A discarded sending is sent again by the next one that another error response discarded, or none.
struct SendingRelations {
  private var before: FateCode?
  /// The connection whose error response discarded the latest sendings.
  private var connection = 0
  /// How many these are.
  private var discarded = 0

  /// The relation of the next sending.
  ///
  /// - Parameters:
  ///   - fate: its fate.
  ///   - connection: its connection. What is discarded on a connection is discarded by one response.
  ///   - isRequest: it is a request of the provider API, each of which is discarded for itself.
  mutating func next(_ fate: FateCode, on connection: Int, isRequest: Bool = false) -> SendingRelation {
    // No connection has this number.
    let connection = isRequest ? -1 : connection
    defer {
      discarded = fate == .discarded ? (isTogether(fate, connection) ? discarded : 0) + 1 : 0
      (before, self.connection) = (fate, connection)
    }
    switch before {
    case nil: return .first
    case .accepted: return .repeatsAccepted
    case .rejected: return .retriesRejected
    case .unknown: return .followsUnknown
    case .discarded: return isTogether(fate, connection) ? .discardedTogether : .resendsDiscarded(count: discarded)
    }
  }

  private func isTogether(_ fate: FateCode, _ connection: Int) -> Bool {
    before == .discarded && fate == .discarded && connection == self.connection && connection >= 0
  }
}
