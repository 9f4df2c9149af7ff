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
  /// Discarded and sent again, whatever became of that.
  private(set) var resent = Finding()
  private(set) var acceptedTwice = Finding()
  private(set) var rejected = 0
  /// Seconds from first sendings to accepted ones of recovered notifications; in any order.
  private(set) var recoveries: [Double] = []
  private(set) var recovered = 0
  private(set) var losses: [Int: Loss] = [:]

  private typealias Sending = TrackedNotifications.Sending

  init(_ tracked: TrackedNotifications, repeatAfter: Int64 = StoryCollector.Options().repeatAfter) {
    tracked.forEachStory { sendings in
      var part: [TrackedNotifications.Sending] = []
      var fold: StoryFold?
      for sending in sendings {
        let row = StoryRow(sending)
        if var open = fold, open.takes(row, repeatAfter: repeatAfter) {
          open.add(row)
          fold = open
        } else {
          if let fold { note(fold.facts, part) }
          fold = StoryFold(row)
          part.removeAll(keepingCapacity: true)
        }
        part.append(sending)
      }
      if let fold { note(fold.facts, part) }
    }
  }

  private mutating func note(_ facts: StoryFacts, _ sendings: [TrackedNotifications.Sending]) {
    func firstPacket(_ isShown: (Sending) -> Bool) -> Int? {
      var first: Int?
      for sending in sendings where sending.packet > 0 && isShown(sending) {
        first = min(first ?? .max, sending.packet)
      }
      return first
    }
    switch facts.outcome {
    case .lost: lost.note(packet: firstPacket { $0.fate == .discarded })
    case .acceptedTwice:
      let first = sendings.first { $0.fate == .accepted }
      acceptedTwice.note(
        packet: firstPacket { $0.fate == .accepted && ($0.connection, $0.index) != (first?.connection, first?.index) })
    case .rejected: rejected += 1
    case .recovered:
      recovered += 1
      if let duration = facts.recoveredAfter { recoveries.append(Double(duration) / 1e9) }
    case .expired, .accepted, .open: break
    }
    var isResent = false
    for (place, sending) in sendings.enumerated() where sending.fate == .discarded {
      let isAgain = sendings[(place + 1)...].contains { $0.loss < 0 || $0.loss != sending.loss }
      if isAgain { isResent = true }
      guard sending.loss >= 0 else { continue }
      losses[sending.loss, default: Loss()].outcomes[facts.outcome, default: 0] += 1
      if isAgain { losses[sending.loss]?.sentAgain += 1 }
    }
    if isResent { resent.note(packet: firstPacket { $0.fate == .discarded }) }
  }

  func report(into findings: inout Findings) {
    if lost.count > 0 { findings.note(.neverResent, count: lost.count, packet: lost.firstPacket) }
    if resent.count > 0 { findings.note(.resent, count: resent.count, packet: resent.firstPacket) }
    if acceptedTwice.count > 0 {
      findings.note(.acceptedTwice, count: acceptedTwice.count, packet: acceptedTwice.firstPacket)
    }
  }

  /// The counts for the report.
  var stories: InspectionReport.Stories {
    var stories = InspectionReport.Stories()
    (stories.lost, stories.rejected, stories.recovered) = (lost.count, rejected, recovered)
    stories.acceptedTwice = acceptedTwice.count
    stories.recovery = RecoveryTimes(sortedSeconds: recoveries.sorted())
    return stories
  }
}

extension StoryRow {
  init(_ sending: TrackedNotifications.Sending) {
    self.init(.sending, connection: sending.connection, index: sending.index)
    time = sending.time.nanoseconds
    packet = sending.packet
    fate = sending.fate
    expiration = sending.expiration
    if sending.expiration != 0 { flags.insert(.hasExpiration) }
  }
}
