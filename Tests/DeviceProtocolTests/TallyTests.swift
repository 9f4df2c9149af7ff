import TestSupport
import Testing

@testable import DeviceProtocol

/// Notifications of the device channel whose acknowledgements are counted.
@Suite("Tallies of deliveries")
struct DeliveryTallyTests {
  private static func deliver(
    _ sequence: UInt64, _ token: UInt8 = 1, isStored: Bool = false, isRepeated: Bool = false
  ) -> DeviceMessage {
    .deliver(
      .init(
        token: [token], topic: "a", sequence: sequence, payload: [], sent: 0, isStored: isStored, isRepeated: isRepeated
      ))
  }

  private static func acknowledge(_ sequence: UInt64, _ token: UInt8 = 1) -> DeviceMessage {
    .acknowledge(token: [token], topic: "a", sequence: sequence)
  }

  private static func tally(
    _ messages: [DeviceMessage], isEndRecorded: Bool = true, lacksDevice: Bool = false,
    limits: DeliveryTally.Limits = DeliveryTally.Limits()
  ) -> DeliveryTally {
    var tally = DeliveryTally(limits: limits)
    for message in messages { tally.note(message) }
    if lacksDevice { tally.noteLossOfDevice() }
    tally.finish(isDeviceEndRecorded: isEndRecorded)
    return tally
  }

  @Test("An acknowledgement is for all notifications of its token up to its sequence")
  func acknowledged() {
    let tally = Self.tally([
      Self.deliver(1), Self.deliver(2, isStored: true), Self.deliver(1, 2), Self.deliver(5, isRepeated: true),
      Self.acknowledge(2),
    ])
    #expect(
      tally.counts
        == DeliveryTally.Counts(deliveries: 4, acknowledged: 2, unacknowledged: 2, stored: 1, repeated: 1))
    #expect(tally.tokens == 2 && tally.waiting == 0)
  }

  @Test("What a device says to have when it is online once more is acknowledged")
  func online() {
    let online = DeviceMessage.online(.init(apps: [.init(token: [1], topic: "a", received: 2)]))
    let tally = Self.tally([online, Self.deliver(3), Self.deliver(4)])
    #expect(tally.counts == DeliveryTally.Counts(deliveries: 2, unacknowledged: 2))
    let again = DeviceMessage.online(.init(apps: [.init(token: [1], topic: "a", received: 3)]))
    #expect(
      Self.tally([online, Self.deliver(3), Self.deliver(4), again]).counts
        == DeliveryTally.Counts(deliveries: 2, acknowledged: 1, unacknowledged: 1))
  }

  @Test("Without the end of the device's direction, or with a loss in it, nothing is unacknowledged")
  func open() {
    let messages = [Self.deliver(1), Self.deliver(2), Self.acknowledge(1)]
    let open = DeliveryTally.Counts(deliveries: 2, acknowledged: 1, open: 1)
    #expect(Self.tally(messages, isEndRecorded: false).counts == open)
    #expect(Self.tally(messages, lacksDevice: true).counts == open)
    #expect(Self.tally(messages).counts.unacknowledged == 1)
  }

  @Test("A sequence that is not above an earlier one of its token is an error")
  func sequences() {
    let tally = Self.tally([
      Self.deliver(3), Self.deliver(3), Self.deliver(2), Self.deliver(1, 2), Self.deliver(4), Self.acknowledge(4),
    ])
    #expect(
      tally.counts == DeliveryTally.Counts(deliveries: 5, acknowledged: 2, unacknowledged: 1, notGrowing: 2))
  }

  @Test("What is beyond the limits stays open")
  func limits() {
    var limits = DeliveryTally.Limits()
    (limits.tokens, limits.waiting) = (2, 3)
    let tally = Self.tally(
      [Self.deliver(1, 1), Self.deliver(1, 2), Self.deliver(1, 3), Self.deliver(2, 1), Self.deliver(3, 1)],
      limits: limits)
    #expect(tally.counts == DeliveryTally.Counts(deliveries: 5, unacknowledged: 3, open: 2) && tally.tokens == 2)
  }

  @Test("Any order of the two directions gives the same counts, which add up, and losses only open what was decided")
  func laws() {
    for seed in 0..<300 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var gateway: [DeviceMessage] = []
      for _ in 0..<30 {
        gateway.append(
          Self.deliver(UInt64.random(in: 1...20, using: &random), UInt8.random(in: 1...3, using: &random)))
      }
      let device = (0..<6).map { _ in
        Self.acknowledge(UInt64.random(in: 1...20, using: &random), UInt8.random(in: 1...3, using: &random))
      }
      let whole = Self.tally(gateway + device).counts
      var mixed = gateway
      for message in device { mixed.insert(message, at: Int.random(in: 0...mixed.count, using: &random)) }
      #expect(Self.tally(mixed).counts == whole && Self.tally(device + gateway).counts == whole, "seed \(seed)")
      #expect(
        whole.deliveries == whole.acknowledged + whole.unacknowledged + whole.open + whole.notGrowing, "seed \(seed)")
      let lost = Self.tally(gateway + device.dropLast(3), lacksDevice: true).counts
      #expect(lost.unacknowledged == 0 && lost.acknowledged <= whole.acknowledged, "seed \(seed)")
      #expect(lost.notGrowing == whole.notGrowing && lost.open >= whole.unacknowledged, "seed \(seed)")
    }
  }
}

/// Requests of local push whose acknowledgements are counted, and heartbeats.
@Suite("Tallies of local push")
struct LocalPushTallyTests {
  private enum Step {
    case ask(UInt32, LocalPushTally.Side, Int64)
    case answer(UInt32, LocalPushTally.Side, Int64)
    case beat(UInt32, Int64)
    case lose(LocalPushTally.Side)
  }

  /// Times are in seconds.
  private static func counts(
    _ steps: [Step], ends: Set<LocalPushTally.Side> = [], limits: LocalPushTally.Limits = LocalPushTally.Limits()
  ) -> LocalPushTally.Counts {
    var tally = LocalPushTally(limits: limits)
    let second: Int64 = 1_000_000_000
    for step in steps {
      switch step {
      case .ask(let identifier, let side, let time):
        tally.note(LocalPushMessage(request: identifier, .directory([])), from: side, at: time * second)
      case .answer(let identifier, let side, let time):
        tally.note(LocalPushMessage(acknowledging: identifier), from: side, at: time * second)
      case .beat(let identifier, let time):
        tally.note(LocalPushMessage(request: identifier, .heartbeat(count: 0)), from: .server, at: time * second)
      case .lose(let side): tally.noteLoss(of: side)
      }
    }
    tally.finish(isClientEndRecorded: ends.contains(.client), isServerEndRecorded: ends.contains(.server))
    #expect(tally.waiting == 0)
    let counts = tally.counts
    #expect(counts.requests == counts.acknowledged + counts.late + counts.unanswered + counts.open)
    return counts
  }

  @Test("A request is acknowledged by the other side, in time or late")
  func acknowledged() {
    let counts = Self.counts([
      .ask(1, .client, 0), .ask(1, .server, 0), .answer(1, .server, 10), .answer(1, .client, 11),
      .ask(2, .client, 11), .answer(2, .client, 12),
    ])
    #expect(counts == LocalPushTally.Counts(requests: 3, acknowledged: 1, late: 1, open: 1))
  }

  @Test("A request is unanswered if the other side was recorded until after the limit")
  func unanswered() {
    let asked = Step.ask(1, .client, 0)
    #expect(Self.counts([asked, .ask(9, .server, 11)], ends: [.client]).unanswered == 2)
    #expect(Self.counts([asked, .answer(9, .server, 11)]).unanswered == 1)
    #expect(Self.counts([asked, .answer(9, .server, 10)]).open == 1)
    #expect(Self.counts([asked]).open == 1)
    #expect(Self.counts([asked], ends: [.client]).open == 1)
    #expect(Self.counts([asked], ends: [.server]).unanswered == 1)
  }

  @Test("A loss of the other side before the limit leaves a request open, and one behind it does not")
  func losses() {
    let asked = Step.ask(1, .client, 0)
    #expect(Self.counts([asked, .lose(.server), .answer(9, .server, 11)], ends: [.server]).open == 1)
    #expect(Self.counts([asked, .answer(8, .server, 5), .lose(.server), .answer(9, .server, 11)]).open == 1)
    #expect(Self.counts([asked, .answer(9, .server, 11), .lose(.server)]).unanswered == 1)
    #expect(Self.counts([asked, .lose(.client), .answer(9, .server, 11)]).unanswered == 1)
  }

  @Test("A request may come behind its acknowledgement, as after a gap; one of an earlier request proves nothing")
  func lateRequests() {
    func counts(answered: Int64, asked: Int64) -> LocalPushTally.Counts {
      Self.counts([.answer(1, .server, answered), .ask(1, .client, asked), .answer(9, .server, 60)])
    }
    #expect(counts(answered: 5, asked: 4).acknowledged == 1)
    #expect(counts(answered: 20, asked: 4).late == 1)
    #expect(counts(answered: 5, asked: 7).open == 1)
    #expect(counts(answered: 5, asked: 16).unanswered == 1)
  }

  @Test("An identifier that is used again before its acknowledgement leaves the first request open")
  func again() {
    let counts = Self.counts([.ask(1, .client, 0), .ask(1, .client, 1), .answer(1, .server, 2)])
    #expect(counts == LocalPushTally.Counts(requests: 2, acknowledged: 1, open: 1))
  }

  @Test("Silences of the server are between messages with nothing missing between them")
  func silences() {
    let beats: [Step] = [.beat(1, 0), .beat(2, 10), .beat(3, 41)]
    let counts = Self.counts(beats)
    #expect(counts.heartbeats == 3 && counts.silences == 1 && counts.longestInterval == 31_000_000_000)
    #expect(Self.counts([.beat(1, 0), .beat(2, 30)]).silences == 0)
    let broken = Self.counts([.beat(1, 0), .beat(2, 10), .lose(.server), .beat(3, 41)])
    #expect(broken.heartbeats == 3 && broken.silences == 0 && broken.longestInterval == 10_000_000_000)
    let other = Self.counts([.beat(1, 0), .answer(7, .server, 20), .beat(2, 40)])
    #expect(other.silences == 0 && other.longestInterval == 40_000_000_000)
  }

  @Test("Requests beyond the limit stay open, and times of a recording may be any")
  func limits() {
    var limits = LocalPushTally.Limits()
    limits.waiting = 2
    let steps = (1...4 as ClosedRange<UInt32>).map { Step.ask($0, .client, 0) }
    let counts = Self.counts(steps, ends: [.server], limits: limits)
    #expect(counts.unanswered == 2 && counts.open == 2)
    var tally = LocalPushTally()
    for time in [Int64.min, .max, .min] {
      tally.note(LocalPushMessage(request: 1, .heartbeat(count: 0)), from: .server, at: time)
    }
    tally.note(LocalPushMessage(acknowledging: 1), from: .client, at: .max)
    #expect(tally.counts.late == 1 && tally.counts.silences == 1)
  }

  @Test("Messages that are removed, and a cut, never take a request for one that was not acknowledged in time")
  func laws() {
    for seed in 0..<300 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var steps: [Step] = []
      for time in 0..<40 as Range<Int64> {
        let identifier = UInt32.random(in: 1...12, using: &random)
        let side = Bool.random(using: &random) ? LocalPushTally.Side.client : .server
        steps.append(Bool.random(using: &random) ? .ask(identifier, side, time) : .answer(identifier, side, time))
      }
      let whole = Self.counts(steps)
      let place = Int.random(in: 0..<steps.count, using: &random)
      // A message that a recording lacks is a loss of its side.
      var removed = steps
      switch steps[place] {
      case .answer(_, let side, _): removed[place] = .lose(side)
      case .ask, .beat, .lose: continue
      }
      #expect(Self.counts(removed).notInTime <= whole.notInTime, "seed \(seed)")
      #expect(Self.counts(Array(steps[..<place])).notInTime <= whole.notInTime, "cut, seed \(seed)")
    }
  }
}

extension LocalPushTally.Counts {
  fileprivate var notInTime: Int { late + unanswered }
}
