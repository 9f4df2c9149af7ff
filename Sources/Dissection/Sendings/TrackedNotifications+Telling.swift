import APNSProtocol
import Measurement
import PacketCapture

/// What became of the tracked notifications, by the rules of `follow`.
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

  /// What became of the notifications that an error response discarded.
  struct Loss {
    var outcomes: NamedCounts<StoryOutcome> = [:]
    var sentAgain = 0
  }

  private(set) var lost = Finding()
  /// Discarded each time they were sent, which is not proven of the sendings that the recording does not show.
  private(set) var notSeenAgain = Finding()
  /// Discarded and sent again, whatever became of that.
  private(set) var resent = Finding()
  private(set) var acceptedTwice = Finding()
  /// Of the notifications of which a sending is selected.
  private var outcomes: [StoryOutcome: Int] = [:]
  private var openReasons: NamedCounts<OpenReason> = [:]
  private var reasonsNotSeenAgain: NamedCounts<OpenReason> = [:]
  /// Their selected sendings.
  private var sendings = ProviderSession.Fates()
  var discarded: Int { sendings.discarded }
  /// Seconds from first sendings to accepted ones of recovered notifications; in any order.
  private(set) var recoveries: [Double] = []
  private(set) var losses: [Int: Loss] = [:]
  /// In what providers sent, and their bytes.
  let gaps: (count: Int, bytes: Int)

  private typealias Sending = TrackedNotifications.Sending

  /// - Parameters:
  ///   - unseen: what the recording does not show.
  ///   - topics: of the connections.
  init(
    _ tracked: TrackedNotifications, _ unseen: UnseenSendings, _ topics: ProviderTopics,
    repeatAfter: Int64 = StoryCollector.Options().repeatAfter
  ) {
    var longestResend: Int64 = 0
    Self.forEachStory(of: tracked, topics, repeatAfter) { facts, _ in
      longestResend = max(longestResend, facts.longestResend)
    }
    let view = unseen.view(longestResend: longestResend)
    gaps = view.gaps
    Self.forEachStory(of: tracked, topics, repeatAfter) { note($0, $1, view) }
  }

  private static func forEachStory(
    of tracked: TrackedNotifications, _ topics: ProviderTopics, _ repeatAfter: Int64,
    _ body: (StoryFacts, [Sending]) -> Void
  ) {
    tracked.forEachStory { sendings in
      var part: [Sending] = []
      var fold: StoryFold?
      for sending in sendings {
        let row = StoryRow(sending, topic: topics.topic(of: sending.connection))
        if var open = fold, open.continues(row, repeatAfter: repeatAfter) {
          open.add(row)
          fold = open
        } else {
          if let fold { body(fold.facts, part) }
          fold = StoryFold(row)
          part.removeAll(keepingCapacity: true)
        }
        part.append(sending)
      }
      if let fold { body(fold.facts, part) }
    }
  }

  private mutating func note(_ facts: StoryFacts, _ sendings: [Sending], _ view: UnseenSendings.View) {
    let (outcome, reason) = facts.outcome(in: view)
    noteLosses(outcome, sendings)
    guard facts.isSelected else { return }
    func firstPacket(_ isShown: (Sending) -> Bool) -> Int? {
      var first: Int?
      for sending in sendings where sending.packet > 0 && isShown(sending) {
        first = min(first ?? .max, sending.packet)
      }
      return first
    }
    outcomes[outcome, default: 0] += 1
    if let reason { openReasons[reason, default: 0] += 1 }
    for sending in sendings where sending.isSelected { self.sendings[sending.fate.fate] += 1 }
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
    if sendings.indices.contains(where: { Self.isSentAgain($0, of: sendings) }) {
      resent.note(packet: firstPacket { $0.fate == .discarded })
    }
  }

  /// A discarded sending is followed by another, which no response discarded together with it.
  private static func isSentAgain(_ place: Int, of sendings: [Sending]) -> Bool {
    let sending = sendings[place]
    guard sending.fate == .discarded else { return false }
    return sendings[(place + 1)...].contains { $0.loss < 0 || $0.loss != sending.loss }
  }

  /// Adds the discarded sendings, selected or not, to the error responses that discarded them.
  private mutating func noteLosses(_ outcome: StoryOutcome, _ sendings: [Sending]) {
    for (place, sending) in sendings.enumerated() where sending.fate == .discarded && sending.loss >= 0 {
      losses[sending.loss, default: Loss()].outcomes[outcome, default: 0] += 1
      if Self.isSentAgain(place, of: sendings) { losses[sending.loss]?.sentAgain += 1 }
    }
  }

  func report(into findings: inout Findings) {
    if lost.count > 0 { findings.note(.neverResent, count: lost.count, packet: lost.firstPacket) }
    if notSeenAgain.count > 0 {
      findings.note(.notSeenAgain, count: notSeenAgain.count, packet: notSeenAgain.firstPacket)
    }
    if resent.count > 0 { findings.note(.resent, count: resent.count, packet: resent.firstPacket) }
    if acceptedTwice.count > 0 {
      findings.note(.acceptedTwice, count: acceptedTwice.count, packet: acceptedTwice.firstPacket)
    }
  }

  /// The counts for the report.
  ///
  /// - Parameters:
  ///   - fates: of all selected sendings: those that are not tracked are notifications of their own.
  ///   - gaps: what is missing of that which providers sent.
  func stories(_ fates: InspectionReport.Fates, gaps: (count: Int, bytes: Int)) -> InspectionReport.Stories {
    var stories = InspectionReport.Stories()
    for (outcome, count) in outcomes { stories[outcome] = count }
    (stories.openReasons, stories.notSeenAgain) = (openReasons, reasonsNotSeenAgain)
    stories.accepted += max(0, fates.accepted - sendings.accepted)
    stories.rejected += max(0, fates.rejected - sendings.rejected)
    for (reason, count) in [
      (OpenReason.unknownFate, fates.unknown - sendings.unknown), (.notTracked, fates.discarded - sendings.discarded),
    ] where count > 0 {
      stories.open += count
      stories.openReasons[reason, default: 0] += count
    }
    (stories.gaps, stories.gapBytes) = gaps
    stories.recovery = RecoveryTimes(sortedSeconds: recoveries.sorted())
    return stories
  }
}

extension ProviderSession.Fates {
  subscript(fate: ProviderSession.Fate) -> Int {
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

extension StoryRow {
  init(_ sending: TrackedNotifications.Sending, topic: ContentKey) {
    self.init(.sending, connection: sending.connection, index: sending.index)
    time = sending.time.nanoseconds
    packet = sending.packet
    fate = sending.fate
    expiration = sending.expiration
    self.topic = topic
    if sending.expiration != 0 { flags.insert(.hasExpiration) }
    if sending.isSelected { flags.insert(.isSelected) }
  }
}
