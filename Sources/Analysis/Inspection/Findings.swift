import Measurement
import Records

/// The findings of a recording, with their counts and the first packet of each.
struct Findings {
  /// In the order in which they were first noted. A recording has few kinds of findings, so a linear search serves.
  private var noted: [(kind: FindingKind, count: Int, firstPacket: Int)] = []
  /// The index of the latest finding, which is often noted again.
  private var latest = 0

  mutating func note(_ kind: FindingKind, count: Int = 1, packet: Int) {
    if latest >= noted.count || noted[latest].kind != kind { find(kind) }
    noted[latest].count += count
    if packet > 0 && (noted[latest].firstPacket == 0 || packet < noted[latest].firstPacket) {
      noted[latest].firstPacket = packet
    }
  }

  @inline(never)
  private mutating func find(_ kind: FindingKind) {
    if let index = noted.indices.first(where: { noted[$0].kind == kind }) {
      latest = index
    } else {
      latest = noted.count
      noted.append((kind, 0, 0))
    }
  }

  /// Notes how a provider sends, as far as counts of the whole recording show it.
  mutating func noteSending(
    notifications: Int, segments: Int, opensPerMinute: Distribution?, isSelection: Bool
  ) {
    // A segment may have had notifications that are not selected.
    if !isSelection, segments >= 100, Double(notifications) / Double(max(1, segments)) < 1.1 {
      note(.unbatched, count: segments, packet: 0)
    }
    if let highest = opensPerMinute?.max, highest > 60 { note(.reconnectStorm, count: Int(highest), packet: 0) }
  }

  /// Packets that the capture dropped.
  static func loss(_ summary: InspectionReport.Summary) -> [InspectionReport.FindingRow] {
    guard let dropped = summary.droppedPackets else { return [] }
    let packets = dropped == 1 ? "1 packet was" : "\(dropped) packets were"
    return [
      InspectionReport.FindingRow(
        .captureLoss, count: dropped,
        text: "\(packets) dropped while capturing: missing data may be missing from the capture only")
    ]
  }

  /// Times that run backwards, and the window that puts the packets into order.
  static func order(latePackets: Int, longestDelay: Int64) -> [InspectionReport.FindingRow] {
    guard latePackets > 0 else { return [] }
    let packets = latePackets == 1 ? "1 packet is" : "\(latePackets) packets are"
    let milliseconds = longestDelay / 1_000_000 + 1
    let window = milliseconds < 10_000 ? "\(milliseconds)ms" : "\((milliseconds + 999) / 1_000)s"
    return [
      InspectionReport.FindingRow(
        .outOfOrder, count: latePackets,
        text: "\(packets) earlier than packets before: --reorder-window \(window) puts them in order")
    ]
  }

  /// Causes of lost notifications come first.
  var rows: [InspectionReport.FindingRow] {
    FindingKind.allCases.compactMap { kind in
      guard let finding = noted.first(where: { $0.kind == kind }), finding.count > 0 else { return nil }
      let place = RecordPlace(connection: 0, time: .none, packet: finding.firstPacket, offset: 0, length: 0)
      return InspectionReport.FindingRow(
        kind, count: finding.count, firstFile: place.file, firstPacket: place.packetInFile,
        text: kind.text(finding.count))
    }
  }
}

extension InspectionReport {
  /// All findings. Lost packets and unread connections come first: the other findings do not cover them.
  func findings(
    _ unread: UnreadConnections, _ findings: Findings, latePackets: Int, longestDelay: Int64
  ) -> [FindingRow] {
    var rows = Findings.loss(summary) + unread.findings(summary, isSelection: selection != nil) + findings.rows
    for index in rows.indices where rows[index].kind == .notSeenAgain {
      rows[index].text += stories.map { ": \($0.whereNotSeen)" } ?? ""
    }
    return rows + Findings.order(latePackets: latePackets, longestDelay: longestDelay)
  }
}

extension TraceReport {
  /// Adds the outcomes of the distinct notifications, and corrects the counts of the findings that depend on them: an
  /// inspection may have tracked fewer notifications.
  package mutating func add(_ stories: Stories) {
    self.stories = stories
    let told = InspectionReport.Stories(stories)
    inspection.stories?.takeOutcomes(of: told)
    takeLosses(of: stories)
    for (kind, count) in [
      (FindingKind.neverResent, told.lost), (.notSeenAgain, told.notSeenAgain.sum),
      (.acceptedTwice, told.acceptedTwice),
    ] {
      let place = inspection.findings.firstIndex { $0.kind == kind }
      if let place, count == 0 {
        inspection.findings.remove(at: place)
      } else if let place {
        inspection.findings[place].count = count
        inspection.findings[place].text = text(kind, count, told)
      } else if count > 0 {
        let order = FindingKind.allCases
        let next = inspection.findings.firstIndex { row in
          (order.firstIndex(of: row.kind) ?? 0) > (order.firstIndex(of: kind) ?? 0)
        }
        inspection.findings.insert(
          InspectionReport.FindingRow(kind, count: count, text: text(kind, count, told)),
          at: next ?? inspection.findings.count)
      }
    }
  }

  /// Adds the outcomes of the notifications that each listed response discarded. Losses of a connection belong to the
  /// last response that names a notification.
  private mutating func takeLosses(of stories: Stories) {
    let losses = Dictionary(stories.losses.map { ($0.connection, $0) }, uniquingKeysWith: { first, _ in first })
    for row in inspection.errors.indices where inspection.errors[row].outcomes?.isEmpty == false {
      guard let loss = losses[inspection.errors[row].connection] else { continue }
      var outcomes: NamedCounts<StoryOutcome> = [:]
      for outcome in loss.outcomes { outcomes.byName[outcome.name] = outcome.count }
      inspection.errors[row].outcomes = outcomes
      inspection.errors[row].sentAgain = loss.sentAgain
    }
  }

  private func text(_ kind: FindingKind, _ count: Int, _ stories: InspectionReport.Stories) -> String {
    kind.text(count) + (kind == .notSeenAgain ? ": \(stories.whereNotSeen)" : "")
  }
}

extension FindingKind {
  /// The text of a finding. The texts about unread connections are in `UnreadConnections`.
  fileprivate func text(_ count: Int) -> String {
    func notifications(_ verb: String) -> String {
      count == 1 ? "1 notification \(verb == "were" ? "was" : verb)" : "\(count) notifications \(verb)"
    }
    func connections(_ verb: String) -> String { count == 1 ? "1 connection \(verb)" : "\(count) connections \(verb)" }
    func some(_ one: String, _ many: String) -> String { count == 1 ? "1 \(one)" : "\(count) \(many)" }
    return switch self {
    case .captureLoss, .outOfOrder, .nothingRead, .unreadPackets, .undecryptedConnection, .partlyDecrypted, .devicePort,
      .otherProtocol, .emptyConnection:
      ""
    case .neverResent: notifications("were") + " lost for good: discarded each time they were sent"
    case .notSeenAgain: notifications("were") + " discarded and not seen again, which does not prove them lost"
    case .resent: notifications("were") + " discarded after an error response and sent again later"
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
