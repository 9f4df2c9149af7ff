import FoundationEssentials
import TestSupport
import Testing

@testable import Measurement

/// Results of a fleet's segments, joined.
@Suite("Merging of results of devices")
struct FleetMergingTests {
  /// A result with every count above 0.
  private static func result(_ segment: Int, of segments: Int, _ generator: inout SeededGenerator) -> FleetResult {
    var result = FleetResult()
    func count() -> Int { generator.number(1...1_000) }
    func date(_ number: Int) -> String { rfc3339(Int64(1_700_000_000 + number) * 1_000_000_000) }
    result.segment = "\(segment)/\(segments)"
    (result.started, result.ended, result.lastReceived) = (date(count()), date(2_000 + count()), date(1_000 + count()))
    result.environment.host = "host \(segment % 2)"
    result.labels = ["a": "b", "only": "\(segment)"]
    result.plan = ["count": .number(4), "segment": .text(result.segment)]
    (result.devices.asked, result.devices.everOnline) = (count(), count())
    (result.devices.onlineAtEnd, result.devices.restored) = (count(), count())
    (result.connections.attempted, result.connections.opened) = (count(), count())
    result.connections.failed = ["Connection refused": count(), "reason \(segment)": count()]
    result.connections.abandoned = count()
    result.connections.closed = [.left: count(), .peerFin: count()]
    (result.registrations.asked, result.registrations.tokens) = (count(), count())
    (result.registrations.wrongTokens, result.registrations.tokenChanges) = (count(), count())
    result.registrations.refused = ["too_many": count()]
    (result.notifications.received, result.notifications.online) = (count(), count())
    (result.notifications.stored, result.notifications.repeated) = (count(), count())
    (result.notifications.duplicates, result.notifications.acknowledgements) = (count(), count())
    (result.notifications.payloadBytes, result.notifications.early) = (count(), count())
    for _ in 0..<20 {
      result.latency.onlineUs.record(count())
      result.latency.storedUs.record(count() * 1_000)
      result.latency.repeatedUs.record(count())
      result.latency.connectUs.record(count())
      result.latency.readyUs.record(count())
      for paths in [\FleetResult.Latency.fromDue, \FleetResult.Latency.fromWritten] {
        result.latency[keyPath: paths].onlineUs.record(count())
        result.latency[keyPath: paths].storedUs.record(count())
        result.latency[keyPath: paths].repeatedUs.record(count())
      }
      let stamp = PushStamp(
        due: generator.happens(oneIn: 4) ? nil : Int64(count()),
        campaign: [nil, "spring", "part \(segment)"][generator.number(0...2)])
      result.campaigns.note(
        stamp, time: Int64(count()), sent: Int64(count()), isOnline: generator.happens(oneIn: 2), most: 10)
    }
    result.campaigns.add([])
    var push = FleetResult.LocalPush()
    push.joins = ["ship": count(), "network \(segment)": count()]
    (push.joinsElsewhere, push.registrations, push.registered, push.timedOut) = (count(), count(), count(), count())
    (push.texts, push.invitations, push.missedCalls, push.heartbeats) = (count(), count(), count(), count())
    (push.otherRequests, push.untimed, push.acknowledgements) = (count(), count(), count())
    for _ in 0..<20 { push.invitationUs.record(count()) }
    for name in ["ship", "network \(segment)"] {
      var network = FleetResult.LocalPush.Network()
      (network.registered, network.texts) = (count(), count())
      (network.invitations, network.heartbeats) = (count(), count())
      push.networks[name] = network
    }
    result.localPush = push
    result.faults = ["duplicate": count()]
    var storm = FleetResult.Storm(atS: 30, withinS: 5)
    (storm.lost, storm.back) = (count(), count())
    if generator.happens(oneIn: 2) { (storm.lastBackS, storm.lastStoredS) = (Double(count()), Double(count())) }
    for _ in 0..<20 { storm.noteOpened(after: generator.number(0...12), most: 10) }
    result.storms = [storm]
    var time = 1_700_000_000 + generator.number(0...20)
    for _ in 0..<generator.number(1...30) {
      result.timeline.note(time: time, onlineS: count(), opened: count(), received: count(), most: 8)
      time += generator.number(1...3)
    }
    result.resources.cpuUserS = Double(count())
    result.resources.cpuSystemS = Double(count())
    result.resources.maxRssBytes = count()
    result.warnings = ["warning \(segment % 2)"]
    return result
  }

  @Test("Segments merge to the same whole in any order and in any groups", arguments: seeds(20, of: 200))
  func anyOrder(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let number = generator.number(2...6)
    let parts = (1...number).map { FleetResult.Part("\($0)", Self.result($0, of: number, &generator)) }
    let whole = try FleetResult.merging(parts, samples: 12)
    #expect(try FleetResult.merging(parts.shuffled(using: &generator), samples: 12) == whole)
    let cut = generator.number(1...number - 1)
    let halves = [parts[..<cut], parts[cut...]].map { try? FleetResult.merging(Array($0), samples: 12) }
    var grouped = try FleetResult.merging(
      halves.compactMap { $0 }.enumerated().map { .init("half \($0.offset)", $0.element) }, samples: 12)
    // What is said of plans names the parts that were given.
    grouped.warnings = whole.warnings
    #expect(grouped == whole)
    #expect(whole.missingSegments == [] && whole.repeatedSegments == [])
  }

  @Test("Every count of the whole is the sum of the parts'", arguments: seeds(10, of: 100))
  func sums(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let parts = (1...3).map { Self.result($0, of: 3, &generator) }
    let whole = try FleetResult.merging(parts.enumerated().map { .init("\($0.offset)", $0.element) })
    let sums: [KeyPath<FleetResult, Int> & Sendable] = [
      \.devices.asked, \.devices.everOnline, \.devices.onlineAtEnd, \.devices.restored,
      \.connections.attempted, \.connections.opened, \.connections.abandoned, \.registrations.asked,
      \.registrations.tokens, \.registrations.wrongTokens, \.registrations.tokenChanges,
      \.notifications.received, \.notifications.online, \.notifications.stored, \.notifications.repeated,
      \.notifications.duplicates, \.notifications.acknowledgements, \.notifications.payloadBytes,
      \.resources.maxRssBytes, \.latency.onlineUs.count, \.latency.storedUs.count, \.latency.repeatedUs.count,
      \.latency.connectUs.count, \.latency.readyUs.count, \.connections.closed.sum, \.notifications.early,
      \.latency.fromDue.onlineUs.count, \.latency.fromDue.storedUs.count, \.latency.fromDue.repeatedUs.count,
      \.latency.fromWritten.onlineUs.count, \.latency.fromWritten.storedUs.count,
      \.latency.fromWritten.repeatedUs.count,
    ]
    for path in sums { #expect(whole[keyPath: path] == parts.reduce(0) { $0 + $1[keyPath: path] }) }
    func sum(_ value: (FleetResult) -> Int) -> Bool { value(whole) == parts.reduce(0) { $0 + value($1) } }
    #expect(sum { $0.connections.failed.values.reduce(0, +) } && sum { $0.registrations.refused.values.reduce(0, +) })
    #expect(sum { $0.faults["duplicate"] ?? 0 } && sum { $0.storms[0].lost } && sum { $0.storms[0].back })
    #expect(sum { $0.storms[0].openedPerS.reduce(0, +) } && sum { $0.timeline.samples.reduce(0) { $0 + $1.received } })
    #expect(sum { $0.timeline.samples.reduce(0) { $0 + $1.onlineS } })
    #expect(sum { $0.timeline.samples.reduce(0) { $0 + $1.opened } })
    #expect(sum { $0.campaigns.reduce(0) { $0 + $1.received } } && sum { $0.campaigns.reduce(0) { $0 + $1.online } })
    #expect(sum { $0.campaigns.reduce(0) { $0 + $1.dated } })
    for campaign in whole.campaigns {
      let same = parts.flatMap(\.campaigns).filter { $0.name == campaign.name }
      #expect(campaign.firstDueNs == same.compactMap(\.firstDueNs).min())
      #expect(campaign.firstSentNs == same.compactMap(\.firstSentNs).min())
      #expect(campaign.lastOnlineNs == same.compactMap(\.lastOnlineNs).max())
      #expect(campaign.lastNs == same.compactMap(\.lastNs).max())
    }
    let paths: [KeyPath<FleetResult.LocalPush.Network, Int>] = [
      \.registered, \.texts, \.invitations, \.heartbeats,
    ]
    for path in paths {
      #expect(sum { $0.localPush?.networks["ship"]?[keyPath: path] ?? 0 })
      #expect(sum { $0.localPush?.networks.values.reduce(0) { $0 + $1[keyPath: path] } ?? 0 })
    }
    #expect(whole.storms[0].lastBackS == parts.compactMap { $0.storms[0].lastBackS }.max())
    #expect(whole.storms[0].peakOpenedPerS == whole.storms[0].openedPerS.max())
    #expect(whole.started == parts.map(\.started).min() && whole.ended == parts.map(\.ended).max())
    #expect(whole.lastReceived == parts.compactMap(\.lastReceived).max())
    #expect(whole.environment.hosts == ["host 0", "host 1"] && whole.labels == ["a": "b"])
  }

  @Test("Segments that are missing, repeated or of another fleet are named")
  func misfits() throws {
    var generator = SeededGenerator(seed: 1)
    let (one, two) = (Self.result(1, of: 3, &generator), Self.result(2, of: 3, &generator))
    let merged = try FleetResult.merging([.init("a", one), .init("b", two)])
    #expect(merged.missingSegments == ["3/3"] && merged.segment == "1/3,2/3")
    #expect(merged.warnings.contains { $0.contains("3/3") })
    #expect(try FleetResult.merging([.init("a", one), .init("b", one)]).repeatedSegments == ["1/3"])
    var other = two
    other.plan["count"] = .number(5)
    #expect(try FleetResult.merging([.init("a", one), .init("b", other)]).warnings.contains("b and a had other plans"))
    other.storms[0].network = "ship"
    #expect(throws: RunResult.MergeError.self) { try FleetResult.merging([.init("a", one), .init("b", other)]) }
    other.storms = []
    #expect(throws: RunResult.MergeError.self) { try FleetResult.merging([.init("a", one), .init("b", other)]) }
    other = Self.result(1, of: 2, &generator)
    #expect(throws: RunResult.MergeError.self) { try FleetResult.merging([.init("a", one), .init("b", other)]) }
    #expect(throws: RunResult.MergeError.self) { try FleetResult.merging([]) }
  }

  @Test("Requests of local push are those of its networks, if there are any", arguments: 0..<6)
  func networks(number: Int) {
    var result = FleetResult()
    var push = FleetResult.LocalPush()
    (push.registered, push.texts, push.invitations, push.heartbeats) = (3, 5, 7, 9)
    (result.notifications.received, result.notifications.online) = (12, 12)
    var (ship, crew) = (FleetResult.LocalPush.Network(), FleetResult.LocalPush.Network())
    (ship.registered, ship.texts, ship.invitations, ship.heartbeats) = (1, 2, 3, 4)
    (crew.registered, crew.texts, crew.invitations, crew.heartbeats) = (2, 3, 4, 5)
    switch number {
    case 0: crew.registered = 1
    case 1: ship.texts = 1
    case 2: crew.invitations = 5
    case 3: ship.heartbeats = 0
    default: break
    }
    if number < 5 { push.networks = ["ship": ship, "crew": crew] }
    result.localPush = push
    let broken = result.invariants.filter { !$0.holds }.map(\.name)
    #expect(
      broken
        == ["registered", "texts", "invitations", "heartbeats"].enumerated().filter { $0.offset == number }
        .map { "\($0.element) = sum of networks" })
  }

  @Test("A course keeps its sums when it is shortened", arguments: seeds(10, of: 100))
  func shortened(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var timeline = FleetResult.Timeline()
    var (time, online, opened, received) = (generator.number(0...1_000), 0, 0, 0)
    for _ in 0..<generator.number(1...500) {
      let values = (generator.number(0...9), generator.number(0...9), generator.number(0...9))
      timeline.note(time: time, onlineS: values.0, opened: values.1, received: values.2, most: 10)
      (online, opened, received) = (online + values.0, opened + values.1, received + values.2)
      time += generator.number(0...2)
      #expect(timeline.samples.count <= 10)
    }
    #expect(timeline.samples.reduce(0) { $0 + $1.onlineS } == online)
    #expect(timeline.samples.reduce(0) { $0 + $1.opened } == opened)
    #expect(timeline.samples.reduce(0) { $0 + $1.received } == received)
    #expect(timeline.samples.allSatisfy { $0.time % timeline.periodS == 0 })
    #expect(zip(timeline.samples, timeline.samples.dropFirst()).allSatisfy { $0.time < $1.time })
  }

  @Test("A document that is written is read as it was", arguments: seeds(5, of: 50))
  func document(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let result = Self.result(1, of: 1, &generator)
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    encoder.keyEncodingStrategy = .convertToSnakeCase
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    #expect(try decoder.decode(FleetResult.self, from: encoder.encode(result)) == result)
  }
}
