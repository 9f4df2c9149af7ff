import Measurement
import TestSupport
import Testing

@testable import Reporting

/// The report of a fleet of devices, and what it says when something is not as it should be.
@Suite("Report of devices")
struct FleetPageTests {
  /// 100 devices, 1,000 notifications to those that were connected and 20 to those that came back.
  private static func result() -> FleetResult {
    var result = FleetResult()
    (result.started, result.ended) = ("2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z")
    (result.devices.asked, result.devices.everOnline, result.devices.onlineAtEnd) = (100, 100, 100)
    (result.connections.attempted, result.connections.opened) = (120, 120)
    result.connections.closed = [.end: 100, .storm: 20]
    (result.registrations.asked, result.registrations.tokens) = (100, 100)
    (result.notifications.received, result.notifications.online) = (1_020, 1_000)
    result.notifications.stored = 20
    for number in 0..<1_000 {
      result.latency.onlineUs.record(1_000 + number)
      result.latency.fromDue.onlineUs.record(2_000 + number)
    }
    for number in 0..<20 { result.latency.storedUs.record(1_000_000 * number) }
    let start: Int64 = 1_767_323_045_000_000_000
    for number in 0..<1_020 {
      result.campaigns.note(
        PushStamp(due: start), time: start + Int64(number) * 10_000_000, sent: start + 1, isOnline: number < 1_000,
        most: 9)
    }
    for second in 0..<60 {
      result.timeline.note(
        time: 1_767_323_045 + second, onlineS: second < 30 ? 100 : 80, opened: 2, received: 17, most: 1_000)
    }
    var storm = FleetResult.Storm(atS: 30, withinS: 5)
    (storm.lost, storm.back, storm.lastBackS) = (20, 20, 4)
    result.storms = [storm]
    return result
  }

  private static func ledger() -> Ledger {
    var ledger = Ledger()
    ledger.started = "2026-01-02T03:04:00Z"
    ledger.gateway.accepted = 1_030
    (ledger.devices.delivered, ledger.devices.stored, ledger.devices.coalesced) = (1_018, 5, 7)
    var channel = Ledger.Devices.Channel()
    (channel.accepted, channel.acknowledged, channel.unacknowledged) = (1_030, 1_018, 3)
    channel.coalescedMs = LatencyHistogram(.milliseconds)
    for number in 0..<7 { channel.coalescedMs?.record(number * 1_000) }
    ledger.devices.channel = channel
    return ledger
  }

  private func text(_ page: FleetPage) -> String { page.page.markdown().text }

  @Test("It has when the devices had their notifications, and the books of both sides")
  func whole() {
    let page = FleetPage(Self.result(), ledger: Self.ledger(), command: ["apnscope", "report", "fleet.json"])
    #expect(page.booksAgree == true)
    #expect(page.page.html.hasSuffix("</html>\n") && page.page.charts.allSatisfy { problem(inXML: $0.svg) == nil })
    let text = text(page)
    for word in [
      "1,020 notifications came, each once. The books of both sides agree.", "from due, online", "10.0 s", "10.2 s",
      "since the first was due", "after 30.0 s, within 5.0 s", "until it was replaced", "`storm`",
      "apnscope report fleet.json",
    ] {
      #expect(text.contains(word), "\(word)")
    }
    #expect(page.page.charts.count >= 4)
  }

  @Test("Nothing is called good that is not", arguments: 0..<11)
  func bad(number: Int) {
    var (result, ledger) = (Self.result(), Self.ledger())
    let agree: Bool?
    let expected: String
    switch number {
    case 0: (ledger.devices.coalesced, agree, expected) = (6, false, "disagree")
    // The gateway calls delivered what no device has.
    case 1:
      (result.notifications.received, result.notifications.online, agree, expected) = (1_017, 997, false, "disagree")
    // The devices have what the gateway did not send.
    case 2:
      (result.notifications.received, result.notifications.online, agree, expected) = (1_022, 1_002, false, "disagree")
    case 3: (result.segment, agree, expected) = ("1/2", nil, "segments of the fleet are missing: 2/2")
    case 4: (ledger.started, agree, expected) = ("2026-01-02T03:04:06Z", nil, "begins after the fleet did")
    case 5: (ledger.devices.channel, agree, expected) = (nil, nil, "without a device channel")
    case 6: (result.faults, agree, expected) = (["duplicate": 2], true, "The gateway made errors: 2 duplicate.")
    case 7:
      (result.devices.everOnline, result.devices.onlineAtEnd) = (0, 0)
      (agree, expected) = (true, "No device was ever online")
    case 8: (result.connections.opened, agree, expected) = (119, true, "The counts do not add up: attempted")
    case 9: (result.notifications.early, agree, expected) = (5, true, "clocks differ")
    default:
      result.devices.everOnline = result.devices.asked + 1
      (agree, expected) = (true, "The counts do not add up: online at the end")
    }
    let page = FleetPage(result, ledger: ledger)
    #expect(page.booksAgree == agree && (page.booksObstacle != nil) == (agree == nil))
    #expect(text(page).contains("were not compared") == (agree == nil))
    let text = text(page)
    #expect(text.contains(expected), "\(text.prefix(2_000))")
    #expect(text.contains("The books of both sides agree.") == (number == 9))
  }

  @Test("Without the gateway's ledger the report says what it cannot know")
  func alone() {
    let page = FleetPage(Self.result())
    #expect(page.booksAgree == nil && text(page).contains("are in the simulator's ledger only"))
    var nothing = FleetResult()
    (nothing.devices.asked, nothing.devices.everOnline) = (1, 1)
    #expect(text(FleetPage(nothing)).contains("No notification came."))
  }

  @Test("Of local push texts and invitations are compared, each by itself, and by network", arguments: 0..<11)
  func localPush(number: Int) {
    var result = Self.result()
    var push = FleetResult.LocalPush()
    (push.texts, push.invitations, push.missedCalls, push.joins) = (1_000, 20, 2, ["ship": 100])
    push.registered = 7
    var server = Ledger.LocalPush()
    server.texts.offered = 1_100
    (server.texts.sent, server.texts.acknowledged, server.texts.lost, server.texts.absent) = (1_005, 995, 10, 95)
    (server.invitations.offered, server.invitations.sent, server.invitations.acknowledged) = (20, 20, 20)
    // The ship has all texts, and the crew's network all invitations. 90 of the texts that were absent were for users who were
    // away, and 5 for the ship when nobody was there.
    var (ship, crew) = (Ledger.LocalPush.Network(), Ledger.LocalPush.Network())
    (ship.registered, crew.registered, server.registered) = (3, 4, ["notification": 7])
    (ship.texts, crew.invitations) = (server.texts, server.invitations)
    (ship.texts.offered, ship.texts.absent) = (1_010, 5)
    var (onShip, onCrew) = (FleetResult.LocalPush.Network(), FleetResult.LocalPush.Network())
    (onShip.registered, onShip.texts, onCrew.registered, onCrew.invitations) = (3, 1_000, 4, 20)
    let agree: Bool?
    switch number {
    case 0: agree = true
    // What the devices have on one network, the server has sent on another one.
    case 5: (onShip.texts, onCrew.texts, agree) = (990, 10, false)
    // The server's networks are not the whole.
    case 6: (ship.texts.offered, ship.texts.sent, ship.texts.lost, agree) = (1_009, 1_004, 9, false)
    case 7: (server.here, agree) = (1, false)
    // Several networks that have one server have other names there.
    case 8:
      (onShip.texts, onCrew.texts, crew.registered, server.registered, agree) = (990, 10, 0, ["notification": 3], true)
    case 1: (push.texts, agree) = (1_006, false)
    case 2: (push.invitations, agree) = (19, false)
    case 3: (server.texts.absent, agree) = (94, false)
    // More are absent on a network than on all, and one message has no outcome.
    case 9: (ship.texts.absent, ship.texts.offered, agree) = (96, 1_101, false)
    case 10: (ship.texts.offered, agree) = (1_011, false)
    default: agree = nil
    }
    push.networks = ["ship": onShip, "crew": onCrew]
    server.networks = ["ship": ship, "crew": crew]
    result.localPush = push
    var ledger = Self.ledger()
    if agree != nil { ledger.localPush = server }
    let page = FleetPage(result, ledger: ledger)
    #expect(page.booksAgree == agree)
    let text = text(page)
    #expect(text.contains("joinings of ship") && text.contains("of these too late to be answered | 2"))
    #expect(text.contains("The books of both sides agree.") == (agree == true))
    #expect(text.contains("without local push") == (agree == nil))
    #expect(text.contains("| crew | 4 | 0 | 20 | 0 |") == (number != 5 && number != 8))
    #expect(text.contains("| ship | 1,005 | 1,000 | 0 | 0 |") == [0, 1, 2, 3, 7, 9, 10].contains(number))
  }

  // MARK: a campaign

  @Test(
    "The last connected device has a campaign when it is sent, or when the devices could get it, and then its latency")
  func campaign() throws {
    let result = Self.result()
    let fleet = MeasuredFleet(result, source: "fleet.json")
    #expect(fleet.isFromDue && fleet.online == 1_000 && fleet.receivedPerS == 17)
    #expect(abs(try #require(fleet.offlineShare) - 0.1) < 1e-9)
    var document = CapacityAnalysisTests.document
    document.target = .init(notifications: 18_000_000, withinS: nil)
    #expect(CapacityAnalysis(document).devices == nil)
    document.devices = fleet
    let forecast = try #require(CapacityAnalysis(document).devices)
    #expect(forecast.away == 1_800_000)
    #expect(abs(try #require(forecast.sendingS) - 2_000) < 1e-6)
    let receiving = try #require(forecast.receivingS)
    #expect(abs(receiving - 16_200_000 / fleet.receivedPerS) < 1e-3)
    #expect(abs(try #require(forecast.lastConnectedS) - receiving - Double(fleet.onlineUs.maximum) / 1e6) < 1e-6)
    #expect(abs(try #require(forecast.keepingUpS) - 2_000 - Double(fleet.onlineUs.maximum) / 1e6) < 1e-6)
    #expect(forecast.sentence.contains("if devices keep up, and after") && forecast.sentence.contains("predicted"))
    #expect(forecast.basis == .extrapolated && forecast.notes.contains { $0.contains("only a fleet that gets more") })
    #expect(forecast.notes.contains { $0.contains("1,800,000 are for devices that are away") })
    #expect(
      CapacitySummary(document).text.contains("devices        the last connected device has its notification after"))
    // A fleet that got more in a second than is sent: the sending is the limit.
    document.devices?.receivedPerS = 1e6
    let fast = try #require(CapacityAnalysis(document).devices)
    #expect(abs(try #require(fast.lastConnectedS) - 2_000 - Double(fleet.onlineUs.maximum) / 1e6) < 1e-6)
    #expect(fast.keepingUpS == fast.lastConnectedS && !fast.sentence.contains("keep up"))
    #expect(!fast.notes.contains { $0.contains("only a fleet that gets more") })
    document.target = .init(notifications: 900, withinS: nil)
    #expect(CapacityAnalysis(document).devices?.basis == .interpolated)
  }

  @Test(
    "A rate is one that the fleet has held, and no look that came late is taken for more", arguments: seeds(20, of: 200)
  )
  func rate(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var result = FleetResult()
    result.devices.asked = 1
    // 100/s for a time, looked at once a second, and now and then seconds later.
    var (time, last, end) = (0.0, 0.0, Double(generator.number(12...120)))
    end += 0.5
    while time < end {
      time = min(end, time + (generator.happens(oneIn: 6) ? Double(generator.number(2...8)) : 1.05))
      result.timeline.note(
        time: Int(time), onlineS: 1, opened: 0, received: Int(100 * time) - Int(100 * last), most: 1_000)
      last = time
    }
    let rate = MeasuredFleet(result, source: "").receivedPerS
    #expect(rate <= 100 && rate > 60, "\(rate)")
    #expect(MeasuredFleet(FleetResult(), source: "").receivedPerS == 0)
  }

  @Test("Where nothing is proven there is no answer")
  func noAnswer() throws {
    var document = CapacityAnalysisTests.document
    document.target = .init(notifications: 1_000, withinS: nil)
    var result = Self.result()
    result.notifications.online = 0
    document.devices = MeasuredFleet(result, source: "fleet.json")
    #expect(CapacityAnalysis(document).devices?.lastConnectedS == nil)
    #expect(
      CapacitySummary(document).text.contains("no answer for when the last connected device has 1,000 notifications"))
    result = Self.result()
    result.latency.fromDue = .init()
    result.timeline = .init()
    document.devices = MeasuredFleet(result, source: "fleet.json")
    let forecast = try #require(CapacityAnalysis(document).devices)
    #expect(forecast.lastConnectedS == nil && forecast.offlineShare == 0)
    document.devices = MeasuredFleet(Self.result(), source: "fleet.json")
    document.devices?.early = 1
    #expect(CapacityAnalysis(document).devices?.lastConnectedS == nil)
    document.devices?.early = 0
    document.devices?.onlineUs.record(LatencyHistogram.highest)
    #expect(CapacityAnalysis(document).devices?.lastConnectedS == nil)
    // An answer of less than a whole fleet says so.
    for (number, word) in ["ended the run", "segments are missing: 2/2", "2 duplicate", "connections were refused"]
      .enumerated()
    {
      result = Self.result()
      switch number {
      case 0: result.interrupted = true
      case 1: result.segment = "1/2"
      case 2: result.faults = ["duplicate": 2]
      default: result.connections.closed[.refused] = 3
      }
      document.devices = MeasuredFleet(result, source: "fleet.json")
      let notes = CapacityAnalysis(document).devices?.notes ?? []
      #expect(notes.contains { $0.contains("in fleet.json") && $0.contains(word) }, "\(word): \(notes)")
      #expect(CapacitySummary(document).text.contains(word), "\(word)")
    }
    document.devices = MeasuredFleet(Self.result(), source: "fleet.json")
    #expect(document.devices?.remarks == nil)
    document.sustainedPerS = nil
    #expect(CapacityAnalysis(document).devices?.notes.contains { $0.contains("no rate passed") } == true)
  }
}
