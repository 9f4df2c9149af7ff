import BinaryProtocol
import Measurement
import PacketCapture
import PushModel

/// The outcomes of the tracked notifications, by the rules of `follow`.
struct TrackedStories {
  /// A count, and the first packet that shows it; 0: none.
  struct Finding {
    var count = 0
    var firstPacket = 0

    mutating func note(packet: Int?) {
      count += 1
      if let packet, firstPacket == 0 || packet < firstPacket { firstPacket = packet }
    }
  }

  /// The outcomes of the notifications that an error response discarded.
  struct Loss {
    var outcomes: NamedCounts<StoryOutcome> = [:]
    var sentAgain = 0
  }

  private(set) var lost = Finding()
  /// Discarded each time they were sent, which is not proven of the sendings that the recording does not show.
  private(set) var notSeenAgain = Finding()
  /// Notifications that were discarded and sent again, with any outcome.
  private(set) var resent = Finding()
  private(set) var acceptedTwice = Finding()
  /// Requests that were discarded and sent again, with any outcome.
  private var requestsResent = Finding()
  /// Requests that were sent again after a sending without an answer.
  private var possibleDuplicates = Finding()
  /// Outcomes of the notifications with a selected sending.
  private var outcomes: [StoryOutcome: Int] = [:]
  private var openReasons: NamedCounts<OpenReason> = [:]
  private var reasonsNotSeenAgain: NamedCounts<OpenReason> = [:]
  /// The fates of these notifications' selected sendings.
  private var sendings = FateCounts()
  /// The part of these that are requests without an answer.
  private var unanswered = 0
  var discarded: Int { sendings.discarded }
  /// Seconds from first sendings to accepted ones of recovered notifications; in any order.
  private(set) var recoveries: [Double] = []
  private(set) var losses: [Int: Loss] = [:]
  /// Gaps in what providers sent, and their bytes.
  let gaps: (count: Int, bytes: Int)
  /// Selected sendings of expired notifications that were not followed.
  private let lateNotTracked: Int

  /// - Parameters:
  ///   - unseen: what the recording does not show.
  ///   - topics: the topics of connections.
  init(
    _ tracked: TrackedNotifications, _ unseen: UnseenSendings, _ topics: ProviderTopics,
    repeatAfter: Int64 = StoryCollector.Options().repeatAfter
  ) {
    var longestResend: Int64 = 0
    var store = TrackedSendings(tracked, topics)
    store.makeStories(repeatAfter: repeatAfter) { _, _ in
    } story: {
      longestResend = max(longestResend, $0.longestResend)
    }
    let view = unseen.view(longestResend: longestResend)
    gaps = view.gaps
    lateNotTracked = tracked.lateNotTracked
    store = TrackedSendings(tracked, topics)
    var sendings: [SendingPlace: [StoryRow]] = [:]
    store.makeStories(repeatAfter: repeatAfter) { row, story in
      sendings[story, default: []].append(row)
    } story: { facts in
      note(facts, sendings.removeValue(forKey: facts.first.place) ?? [facts.first], view)
    }
  }

  private mutating func note(_ facts: StoryFacts, _ sendings: [StoryRow], _ view: UnseenSendings.View) {
    let (outcome, reason) = facts.outcome(in: view)
    let (sentAgain, followUnknown) = Self.sentAgain(sendings)
    for (place, sending) in sendings.enumerated() where sending.fate == .discarded && sending.loss >= 0 {
      losses[Int(sending.loss), default: Loss()].outcomes[outcome, default: 0] += 1
      if sentAgain[place] { losses[Int(sending.loss)]?.sentAgain += 1 }
    }
    guard facts.isSelected else { return }
    func firstPacket(_ isShown: (StoryRow) -> Bool) -> Int? {
      var first: Int?
      for sending in sendings where sending.packet > 0 && isShown(sending) {
        first = min(first ?? .max, sending.packet)
      }
      return first
    }
    outcomes[outcome, default: 0] += 1
    if let reason { openReasons[reason, default: 0] += 1 }
    for sending in sendings where sending.flags.contains(.isSelected) {
      self.sendings[sending.fate.fate] += 1
      if sending.flags.contains(.isRequest), sending.fate == .unknown { unanswered += 1 }
    }
    switch (outcome, facts.seen) {
    case (.lost, _): lost.note(packet: firstPacket { $0.fate == .discarded })
    case (.open, .lost):
      notSeenAgain.note(packet: firstPacket { $0.fate == .discarded })
      if let reason { reasonsNotSeenAgain[reason, default: 0] += 1 }
    case (.acceptedTwice, _):
      let first = sendings.first { $0.fate == .accepted }
      acceptedTwice.note(
        packet: firstPacket { $0.fate == .accepted && ($0.connection, $0.index) != (first?.connection, first?.index) })
    case (.recovered, _): if let duration = facts.recoveredAfter { recoveries.append(Double(duration) / 1e9) }
    default: break
    }
    let isRequest = facts.first.flags.contains(.isRequest)
    if sentAgain.contains(true) {
      let packet = firstPacket { $0.fate == .discarded }
      if isRequest { requestsResent.note(packet: packet) } else { resent.note(packet: packet) }
    }
    if isRequest, followUnknown { possibleDuplicates.note(packet: firstPacket { $0.packet > 0 }) }
  }

  /// Whether each sending was discarded and sent again, and whether any follows one of an unknown fate.
  private static func sentAgain(_ sendings: [StoryRow]) -> (discarded: [Bool], followUnknown: Bool) {
    var sentAgain = [Bool](repeating: false, count: sendings.count)
    var followUnknown = false
    var relations = SendingRelations()
    for (place, sending) in sendings.enumerated() {
      let relation = relations.next(
        sending.fate, on: sending.connection, isRequest: sending.flags.contains(.isRequest))
      if relation == .followsUnknown { followUnknown = true }
      for before in place - relation.resent..<place { sentAgain[before] = true }
    }
    return (sentAgain, followUnknown)
  }

  func report(into findings: inout Findings) {
    if lost.count > 0 { findings.note(.neverResent, count: lost.count, packet: lost.firstPacket) }
    if notSeenAgain.count > 0 {
      findings.note(.notSeenAgain, count: notSeenAgain.count, packet: notSeenAgain.firstPacket)
    }
    if resent.count > 0 { findings.note(.resent, count: resent.count, packet: resent.firstPacket) }
    for (kind, finding) in [
      (FindingKind.requestsResent, requestsResent), (.possibleDuplicates, possibleDuplicates),
    ] where finding.count > 0 {
      findings.note(kind, count: finding.count, packet: finding.firstPacket)
    }
    if acceptedTwice.count > 0 {
      findings.note(.acceptedTwice, count: acceptedTwice.count, packet: acceptedTwice.firstPacket)
    }
  }

  /// The counts for the report.
  ///
  /// - Parameters:
  ///   - fates: the fates of all selected sendings; an untracked sending counts as a notification of its own.
  ///   - requests: the part of the fates that are of requests of the provider API; `nil` without any.
  ///   - gaps: gaps in what providers sent.
  func stories(
    _ fates: InspectionReport.Fates, ofRequests requests: InspectionReport.Fates? = nil, gaps: (count: Int, bytes: Int)
  ) -> InspectionReport.Stories {
    var stories = InspectionReport.Stories()
    for (outcome, count) in outcomes { stories[outcome] = count }
    (stories.openReasons, stories.notSeenAgain) = (openReasons, reasonsNotSeenAgain)
    let accepted = max(0, fates.accepted - sendings.accepted)
    // Untracked late ones may have been accepted after their expiration.
    let late = min(accepted, lateNotTracked)
    stories.accepted += accepted - late
    stories.rejected += max(0, fates.rejected - sendings.rejected)
    let unanswered = (requests?.unknown ?? 0) - unanswered
    for (reason, count) in [
      (OpenReason.unknownFate, fates.unknown - sendings.unknown - max(0, unanswered)), (.unanswered, unanswered),
      (.notTracked, late + max(0, fates.discarded - sendings.discarded)),
    ] where count > 0 {
      stories.open += count
      stories.openReasons[reason, default: 0] += count
    }
    (stories.gaps, stories.gapBytes) = gaps
    stories.recovery = RecoveryTimes(sortedSeconds: recoveries.sorted())
    return stories
  }
}

extension FateCounts {
  subscript(fate: Fate) -> Int {
    get {
      switch fate {
      case .accepted: accepted
      case .rejected: rejected
      case .discarded: discarded
      case .unknown: unknown
      }
    }
    set {
      switch fate {
      case .accepted: accepted = newValue
      case .rejected: rejected = newValue
      case .discarded: discarded = newValue
      case .unknown: unknown = newValue
      }
    }
  }
}
