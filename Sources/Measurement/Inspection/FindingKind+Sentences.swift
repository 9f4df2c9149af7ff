/// The sentences of findings. What inspections, pages and texts say of a finding is said here; what a finding's kind means
/// is in `OutputSchema`.

/// The words for what became of discarded notifications, in findings, pages and comments.
package enum ResendWords {
  /// A later sending was seen.
  package static let sentAgain = "sent again"
  /// No later sending was seen, which proves nothing by itself.
  package static let notSeenAgain = "not seen again"
  /// Nothing could hold a later sending.
  package static let lostForGood = "lost for good"
}

extension FindingKind {
  /// The sentence of a finding that its count alone makes; empty for the kinds whose sentence says more, which have a
  /// function of their own below.
  ///
  /// - Parameter count: what the finding counts, from 1.
  package func sentence(_ count: Int) -> String {
    func notifications(_ verb: String) -> String {
      count == 1 ? "1 notification \(verb == "were" ? "was" : verb)" : "\(count) notifications \(verb)"
    }
    func connections(_ verb: String) -> String { count == 1 ? "1 connection \(verb)" : "\(count) connections \(verb)" }
    func some(_ one: String, _ many: String) -> String { count == 1 ? "1 \(one)" : "\(count) \(many)" }
    return switch self {
    case .captureLoss, .outOfOrder, .nothingRead, .unreadPackets, .undecryptedConnection, .partlyDecrypted, .devicePort,
      .otherProtocol, .emptyConnection:
      ""
    case .neverResent: notifications("were") + " \(ResendWords.lostForGood): discarded each time they were sent"
    case .notSeenAgain:
      notifications("were") + " discarded and \(ResendWords.notSeenAgain), which does not prove them lost"
    case .resent: notifications("were") + " discarded after an error response and \(ResendWords.sentAgain) later"
    case .requestsResent:
      notifications("were") + " refused by the gateway or excluded by its GOAWAY, and \(ResendWords.sentAgain) later"
    case .acceptedTwice: notifications("were") + " accepted more than once: \(StoryOutcome.acceptedTwice.meaning)"
    case .seenTwice:
      (count == 1 ? "1 connection was" : "\(count) connections were")
        + " captured more than once, under other addresses (of a container or behind NAT): each counts once"
    case .lostNotTracked:
      some("discarded notification", "discarded notifications") + " not tracked: too many (--max-remembered)"
    case .unknownFate:
      notifications("were") + " on connections that ended without an error response: accepted or lost"
    case .unknownFateEndNotCaptured:
      notifications("were")
        + " on connections whose gateway's bytes were not captured to their end: accepted, rejected or discarded"
    case .unknownFateAfterResponse:
      notifications("were")
        + " on connections whose error responses do not cover them: accepted or lost"
    case .unanswered: notifications("got") + " no answer: accepted or not"
    case .possibleDuplicates:
      notifications("were") + " sent again after a sending that got no answer: perhaps delivered twice"
    case .unregisteredTokens:
      some("token was", "tokens were")
        + " answered with 410 after \(count == 1 ? "its" : "their") last acceptance that is known: delete "
        + "\(count == 1 ? "it" : "them") ('apnscope follow --dead' lists \(count == 1 ? "it" : "them"))"
    case .sentAfterUnregistered: notifications("were") + " sent to tokens that had been answered with 410 before"
    case .badDeviceTokens:
      some("rejection", "rejections")
        + " with BadDeviceToken from providers of which most notifications are: tokens of the other environment (sandbox or production)?"
    case .tooManyRequests:
      notifications("were") + " rejected with TooManyRequests: too many to the same token"
    case .retryStorm:
      notifications("were")
        + " sent again within a second of an answer with status 429 or 5xx, for which APNs asks to wait"
    case .goAway: some("GOAWAY", "GOAWAYs") + " from the gateway"
    case .writtenAfterGoAway:
      notifications("were") + " written a second or more after a GOAWAY that excludes them"
    case .silentAfterIdle:
      notifications("were")
        + " written after a pause of a minute or more and got no answer: a connection that is dead without a FIN?"
    case .streamLimitExceeded:
      some("request was", "requests were") + " sent on more streams than the gateway allowed at the time"
    case .streamsUnused:
      connections("sent") + " one request at a time and waited for each answer, with 100 streams or more allowed"
    case .tls12WithoutALPN:
      connections(count == 1 ? "uses" : "use")
        + " HTTP/2 over TLS 1.2 without ALPN, which HTTP/2 requires"
    case .prioritySent:
      some("PRIORITY frame was", "PRIORITY frames were") + " sent, which APNs ignores and asks not to send"
    case .providerTokenOld:
      notifications("were") + " sent with a provider token over 55 minutes old: APNs refuses those over an hour"
    case .providerTokenInFuture:
      notifications("were")
        + " sent with a provider token issued a minute or more later by the capture's clock: a wrong clock?"
    case .providerTokenRenewedOften:
      some("provider token was", "provider tokens were")
        + " issued less than 20 minutes after the one before on the same connection: APNs answers 429 to that"
    case .providerTokenPerConnection:
      connections(count == 1 ? "has" : "have")
        + " a provider token of \(count == 1 ? "its" : "their") own, issued less than 20 minutes from another's: one token serves all"
    case .providerTokenNotIndexed:
      notifications(count == 1 ? "carries" : "carry")
        + " \(count == 1 ? "its" : "their") provider token in full, which is most of "
        + "\(count == 1 ? "its" : "their") header bytes: indexed in the header table, it is sent once a connection"
    case .pushTypeMissing: notifications(count == 1 ? "has" : "have") + " no apns-push-type"
    case .pushTypeMismatch:
      notifications(count == 1 ? "has" : "have") + " an apns-push-type that does not match the payload"
    case .backgroundPriority:
      notifications(count == 1 ? "is" : "are")
        + " of type background with priority 10, which is an error: 5 is required"
    case .topicSuffix:
      notifications(count == 1 ? "has" : "have") + " a topic whose suffix is not that of the push type"
    case .collapseIDTooLong:
      notifications(count == 1 ? "has" : "have") + " an apns-collapse-id over 64 bytes, which APNs rejects"
    case .notAcknowledged:
      notifications("were")
        + " not acknowledged by devices that closed their connections: when they are online again they say whether they have them"
    case .sequenceNotGrowing:
      notifications(count == 1 ? "has" : "have")
        + " a sequence that is not above the one before of the same token: the gateway's error"
    case .requestsUnacknowledged:
      some("request", "requests")
        + " of local push \(count == 1 ? "was" : "were") not acknowledged within 10 s, or before the other end closed"
    case .acknowledgedLate:
      some("request", "requests") + " of local push \(count == 1 ? "was" : "were") acknowledged later than after 10 s"
    case .serverSilent:
      some("time", "times")
        + " a server of local push sent nothing for over 30 s, after which a client of Apple's sample gives up"
    case .ambiguousZero:
      some("error response names", "error responses name")
        + " identifier 0, which may mean a notification or none: ignored"
    case .unresolvedResponse:
      some("error response names", "error responses name") + " an identifier that was not seen on its connection"
    case .ambiguousIdentifier:
      some("error response names", "error responses name") + " an identifier used more than once; the latest was taken"
    case .tokenFailedAgain: some("rejection was", "rejections were") + " for a token that had been rejected before"
    case .tokenNotOfGateway:
      some("rejection", "rejections")
        + " with status 8: a token of the other environment (sandbox or production), of another app, or removed"
    case .tokensOfOtherEnvironment:
      some("rejection", "rejections")
        + " with status 8 from providers of which most tokens are rejected: tokens of the other environment (sandbox or production)?"
    case .deadTokens:
      some("token was", "tokens were")
        + " listed by feedback or rejected with status 8 after \(count == 1 ? "its" : "their") last acceptance that is known: delete "
        + "\(count == 1 ? "it" : "them") ('apnscope follow --dead' lists \(count == 1 ? "it" : "them"))"
    case .sentAfterFeedback:
      notifications("were") + " sent to tokens that the feedback service had listed before"
    case .feedbackNotRead:
      "the feedback service was not read for \(count) hours in which notifications were sent"
    case .certificateExpired: connections("ended") + " with the TLS alert certificate_expired"
    case .certificateRevoked: connections("ended") + " with the TLS alert certificate_revoked"
    case .unknownCA: connections("ended") + " with the TLS alert unknown_ca"
    case .certificateEndsSoon:
      connections(count == 1 ? "uses" : "use") + " a client certificate that ends within 30 days"
    case .oneNotificationConnections:
      "\(count) connections carried one notification each: APNs expects one connection for many"
    case .severalResponses: some("error response", "error responses") + " came after the first of its connection"
    case .acknowledgement: some("response", "responses") + " with status 0, which APNs gateways do not send"
    case .foreignCommand:
      some("response", "responses") + " with a command other than 8, which APNs gateways do not send"
    case .malformedItems:
      some("frame has", "frames have") + " items that extend past its end: a gateway answers with status 128"
    case .malformed: some("stretch", "stretches") + " of bytes that are not a complete record"
    case .lostBytes: some("gap", "gaps") + ": bytes were sent that are missing from the capture"
    case .truncatedBytes: some("packet was", "packets were") + " cut by the snap length"
    case .cutRecord: some("record is", "records are") + " cut by the beginning or end of the capture"
    case .undecryptedBytes: some("stretch", "stretches") + " of TLS could not be decrypted"
    case .givenUpBytes:
      some("stretch", "stretches") + " of unfinished records were given up for lack of memory (--max-memory)"
    case .conflict: some("byte was", "bytes were") + " sent twice with different contents; the first were used"
    case .limitHit: some("connection", "connections") + " hit a limit of this program"
    case .reconnectStorm: "\(count) connections were opened within a minute, which APNs treats as an attack"
    case .unbatched: "nearly every notification is sent in a separate TCP segment (\(count) segments): no batching"
    case .payloadOver4096: some("payload is", "payloads are") + " over 4,096 bytes: rejected by any gateway"
    case .payloadOver2048:
      some("payload is", "payloads are") + " over 2,048 bytes: too long except for VoIP certificates"
    case .unusualTokenLength: some("token is", "tokens are") + " not 32 bytes long"
    case .knownBad: some("frame", "frames") + " without a token: used by clients to learn what was accepted"
    case .strangeExpiration:
      some("expiration", "expirations") + " before 2001 or at the largest value: a relative time, or -1"
    case .unknownItems: some("frame has", "frames have") + " items unknown to the protocol"
    case .feedbackWithoutTime: some("feedback tuple has", "feedback tuples have") + " the time 0"
    }
  }
}

/// Sentences that say more than a count.
extension FindingKind {
  /// - Parameter dropped: packets that the capture dropped.
  package static func captureLossSentence(dropped: Int) -> String {
    "\(packets(dropped, "was", "were")) dropped while capturing: missing data may be missing from the capture only"
  }

  /// Times that run backwards, with the window that puts the packets into order.
  ///
  /// - Parameters:
  ///   - late: packets whose time is before that of an earlier one.
  ///   - longestDelay: the longest such difference, in nanoseconds.
  package static func outOfOrderSentence(late: Int, longestDelay: Int64) -> String {
    let milliseconds = longestDelay / 1_000_000 + 1
    let window = milliseconds < 10_000 ? "\(milliseconds)ms" : "\((milliseconds + 999) / 1_000)s"
    return "\(packets(late, "is", "are")) earlier than packets before: --reorder-window \(window) puts them in order"
  }

  private static func packets(_ count: Int, _ one: String, _ many: String) -> String {
    count == 1 ? "1 packet \(one)" : "\(count) packets \(many)"
  }
}

/// Sentences about what was not read.
extension FindingKind {
  package static var nothingSelectedSentence: String { "no notification, error response or feedback is selected" }

  /// Nothing of a whole recording was read.
  package static func nothingReadSentence(_ summary: InspectionReport.Summary) -> String {
    if summary.connections > 0 {
      let count = summary.connections == 1 ? "1 connection" : "\(summary.connections) connections"
      return "no notifications or feedback found in \(count)"
    }
    guard summary.packets > 0 else { return "no notifications or feedback found: there are no packets" }
    let list = (summary.unread ?? []).joined(separator: "; ")
    if let unread = summary.unreadPackets {
      return "no notifications or feedback found: \(unread) of the \(summary.packets) packets "
        + "\(unread == 1 ? "is" : "are") not read: \(list)"
    }
    return "no notifications or feedback found: none of the \(summary.packets) packets belongs to a TCP connection"
      + (list.isEmpty ? "" : ": \(list)")
  }

  /// - Parameter unread: packets that were not read.
  package static func unreadPacketsSentence(_ unread: Int, _ summary: InspectionReport.Summary) -> String {
    "\(unread) of the \(summary.packets) packets \(unread == 1 ? "is" : "are") not read: "
      + (summary.unread ?? []).joined(separator: "; ")
  }

  /// - Parameter onlySecretsMissing: with the secrets all of them could be decrypted.
  package static func undecryptedSentence(_ count: Int, of total: Int, onlySecretsMissing: Bool) -> String {
    "\(count) of \(total) connections \(count == 1 ? "is" : "are") encrypted"
      + (onlySecretsMissing
        ? "; give --keys with the secrets" : "; the record of each connection says what is missing")
  }

  package static func partlyDecryptedSentence(_ count: Int, of total: Int) -> String {
    "\(count) of \(total) connections \(count == 1 ? "was" : "were") not wholly decrypted"
  }

  package static func devicePortSentence(_ count: Int, of total: Int) -> String {
    "\(count) of \(total) connections \(count == 1 ? "is" : "are") on port 5223, where devices get their pushes from APNs: "
      + "providers send on 2195, and no key log of a provider decrypts the connection of a device"
  }

  /// - Parameter other: the name of the protocol, with what may be done; `nil`: it is unknown.
  package static func otherProtocolSentence(_ count: Int, port: UInt16, other: String?) -> String {
    let which = "\(count) \(count == 1 ? "connection" : "connections") on port \(port)"
    let isOne = count == 1
    if let other { return "\(which) \(isOne ? "is" : "are") \(other)" }
    return
      "\(which) \(isOne ? "uses" : "use") no protocol that is known here; --port \(port)=gateway reads \(isOne ? "it" : "them") as a gateway's"
  }

  package static func otherProtocolsSentence(_ further: Int) -> String {
    "\(further) further connections speak another protocol"
  }

  package static func emptyConnectionSentence(_ count: Int, of total: Int) -> String {
    "\(count) of \(total) connections carried no data"
  }
}

extension InspectionReport.Stories {
  /// The sentence of a finding about distinct notifications, with the places that may hold them.
  ///
  /// - Parameter count: how many they are.
  package func sentence(of kind: FindingKind, _ count: Int) -> String {
    kind.sentence(count) + (kind == .notSeenAgain ? ": \(whereNotSeen)" : "")
  }
}
