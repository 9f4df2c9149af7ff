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
  /// Outcomes of the notifications with a selected sending.
  private var outcomes: [StoryOutcome: Int] = [:]
  private var openReasons: NamedCounts<OpenReason> = [:]
  private var reasonsNotSeenAgain: NamedCounts<OpenReason> = [:]
  /// The fates of these notifications' selected sendings.
  private var sendings = FateCounts()
  var discarded: Int { sendings.discarded }
  /// Seconds from first sendings to accepted ones of recovered notifications; in any order.
  private(set) var recoveries: [Double] = []
  private(set) var losses: [Int: Loss] = [:]
  /// Gaps in what providers sent, and their bytes.
  let gaps: (count: Int, bytes: Int)
  /// Selected sendings of expired notifications that were not followed.
  private let lateNotTracked: Int

  private typealias Sending = TrackedNotifications.Sending

  /// - Parameters:
  ///   - unseen: what the recording does not show.
  ///   - topics: the topics of connections.
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
    lateNotTracked = tracked.lateNotTracked
    Self.forEachStory(of: tracked, topics, repeatAfter) { note($0, $1, view) }
  }

  private static func forEachStory(
    of tracked: TrackedNotifications, _ topics: ProviderTopics, _ repeatAfter: Int64,
    _ body: (StoryFacts, [Sending]) -> Void
  ) {
    tracked.forEachStory { sendings in
      let first = topics.topic(of: sendings.first?.connection ?? 0)
      if sendings.allSatisfy({ topics.topic(of: $0.connection) == first }) {
        return forEachStory(of: sendings, topic: first, isOfUnknownProvider: false, repeatAfter, body)
      }
      var byTopic: [ContentKey: [Sending]] = [:]
      for sending in sendings { byTopic[topics.topic(of: sending.connection), default: []].append(sending) }
      for (topic, sendings) in byTopic.sorted(by: { $0.key < $1.key }) {
        forEachStory(of: sendings, topic: topic, isOfUnknownProvider: byTopic[.zero] != nil, repeatAfter, body)
      }
    }
  }

  /// Calls `body` with each story of one content and topic.
  private static func forEachStory(
    of sendings: [Sending], topic: ContentKey, isOfUnknownProvider: Bool, _ repeatAfter: Int64,
    _ body: (StoryFacts, [Sending]) -> Void
  ) {
    var part: [Sending] = []
    var fold: StoryFold?
    func end() {
      guard var facts = fold?.facts else { return }
      facts.isOfUnknownProvider = isOfUnknownProvider
      body(facts, part)
    }
    for sending in sendings {
      let row = StoryRow(sending, topic: topic)
      if fold?.continues(row, repeatAfter: repeatAfter) == true {
        fold?.add(row)
      } else {
        end()
        fold = StoryFold(row)
        part.removeAll(keepingCapacity: true)
      }
      part.append(sending)
    }
    end()
  }

  private mutating func note(_ facts: StoryFacts, _ sendings: [Sending], _ view: UnseenSendings.View) {
    let (outcome, reason) = facts.outcome(in: view)
    let sentAgain = Self.sentAgain(sendings)
    for (place, sending) in sendings.enumerated() where sending.fate == .discarded && sending.loss >= 0 {
      losses[sending.loss, default: Loss()].outcomes[outcome, default: 0] += 1
      if sentAgain[place] { losses[sending.loss]?.sentAgain += 1 }
    }
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
    if sentAgain.contains(true) {
      resent.note(packet: firstPacket { $0.fate == .discarded })
    }
  }

  /// Whether each sending was discarded and followed by another one, which was not discarded by the same response.
  private static func sentAgain(_ sendings: [Sending]) -> [Bool] {
    var sentAgain = [Bool](repeating: false, count: sendings.count)
    // The response that discarded all later sendings, if a single one did.
    var later: (loss: Int, isOnly: Bool)?
    for (place, sending) in sendings.enumerated().reversed() {
      if let later { sentAgain[place] = sending.fate == .discarded && (!later.isOnly || later.loss != sending.loss) }
      let isOnly = sending.loss >= 0 && later.map { $0.isOnly && $0.loss == sending.loss } ?? true
      later = (sending.loss, isOnly)
    }
    return sentAgain
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
  ///   - fates: the fates of all selected sendings; an untracked sending counts as a notification of its own.
  ///   - gaps: gaps in what providers sent.
  func stories(_ fates: InspectionReport.Fates, gaps: (count: Int, bytes: Int)) -> InspectionReport.Stories {
    var stories = InspectionReport.Stories()
    for (outcome, count) in outcomes { stories[outcome] = count }
    (stories.openReasons, stories.notSeenAgain) = (openReasons, reasonsNotSeenAgain)
    let accepted = max(0, fates.accepted - sendings.accepted)
    // Untracked late ones may have been accepted after their expiration.
    let late = min(accepted, lateNotTracked)
    stories.accepted += accepted - late
    stories.rejected += max(0, fates.rejected - sendings.rejected)
    for (reason, count) in [
      (OpenReason.unknownFate, fates.unknown - sendings.unknown),
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
