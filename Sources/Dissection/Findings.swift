import Measurement

/// The findings of a recording, with their counts and the first packet of each.
struct Findings {
  /// In the order in which they were first noted. A recording has findings of a few kinds, so they are searched.
  private var noted: [(kind: FindingKind, count: Int, firstPacket: Int)] = []
  /// The one that was noted last, which is often noted again.
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

  /// What lost notifications first.
  var rows: [InspectionReport.FindingRow] {
    FindingKind.allCases.compactMap { kind in
      guard let finding = noted.first(where: { $0.kind == kind }), finding.count > 0 else { return nil }
      return InspectionReport.FindingRow(
        kind, count: finding.count, firstPacket: finding.firstPacket > 0 ? finding.firstPacket : nil,
        text: kind.text(finding.count))
    }
  }
}

extension FindingKind {
  /// The text of a finding. Those of unread connections are in `UnreadConnections`.
  fileprivate func text(_ count: Int) -> String {
    func notifications(_ verb: String) -> String {
      count == 1 ? "1 notification \(verb == "were" ? "was" : verb)" : "\(count) notifications \(verb)"
    }
    func some(_ one: String, _ many: String) -> String { count == 1 ? "1 \(one)" : "\(count) \(many)" }
    return switch self {
    case .nothingRead, .undecryptedConnection, .partlyDecrypted, .otherProtocol, .emptyConnection: ""
    case .neverResent: notifications("were") + " written after a rejected one and never seen again"
    case .resent: notifications("were") + " discarded after a rejection and sent again later"
    case .lostNotTracked: some("discarded notification", "discarded notifications") + " not tracked: too many"
    case .unknownFate:
      notifications("were") + " on connections that ended without an error response: accepted or lost"
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
    case .conflict: some("byte was", "bytes were") + " sent twice with different contents; the first were used"
    case .limitHit: some("connection", "connections") + " hit a limit of this program"
    case .reconnectStorm: "\(count) connections were opened within a minute, which APNs treats as an attack"
    case .unbatched: "nearly every notification is sent in a separate TCP segment (\(count) segments): no batching"
    case .payloadOver4096: some("payload is", "payloads are") + " over 4,096 bytes: rejected by any gateway"
    case .payloadOver2048:
      some("payload is", "payloads are") + " over 2,048 bytes: too long except for VoIP certificates"
    case .notAnObject: some("payload is", "payloads are") + " no JSON object"
    case .unusualTokenLength: some("token is", "tokens are") + " not 32 bytes long"
    case .knownBad: some("frame", "frames") + " without a token: used by clients to learn what was accepted"
    case .strangeExpiration:
      some("expiration", "expirations") + " before 2001 or at the largest value: a relative time, or -1"
    case .unknownItems: some("frame has", "frames have") + " items unknown to the protocol"
    case .feedbackWithoutTime: some("feedback tuple has", "feedback tuples have") + " the time 0"
    }
  }
}
