import Testing

@testable import Measurement

/// The counts by topic of a load with several identities.
@Suite("Topics of results")
struct TopicMergingTests {
  private static func topic(_ name: String, accepted: Int, open: Int = 0, share: Double = 0.5) -> RunResult.Topic {
    var topic = RunResult.Topic(name, share: share)
    (topic.notifications.generated, topic.notifications.accepted) = (accepted + open, accepted)
    (topic.sendings.written, topic.sendings.accepted) = (accepted + open, accepted)
    return topic
  }

  private static func result(_ topics: [RunResult.Topic]?, segment: String = "1/1") -> RunResult {
    var result = RunResult()
    result.measuredBy = RunResult.currentMeasure
    result.plan = ["segment": .text(segment)]
    for topic in topics ?? [] {
      result.notifications.generated += topic.notifications.generated
      result.notifications.accepted += topic.notifications.accepted
      result.sendings.written += topic.sendings.written
      result.sendings.accepted += topic.sendings.accepted
    }
    result.topics = topics
    result.verdict.invariants = result.invariants(usesMarkers: false)
    return result
  }

  private static func isBroken(_ result: RunResult) -> [String] {
    result.verdict.invariants.filter { !$0.holds && $0.name.contains("topics") }.map(\.name)
  }

  @Test("Topics merge by name, in the first part's order; shares that differ are dropped")
  func merging() throws {
    let parts = [
      Self.result([Self.topic("b", accepted: 3), Self.topic("a", accepted: 5)], segment: "1/2"),
      Self.result([Self.topic("a", accepted: 7, share: 0.6), Self.topic("c", accepted: 1)], segment: "2/2"),
    ]
    let merged = try RunResult.merging(parts.enumerated().map { .init("\($0.offset)", $0.element) })
    #expect(merged.topics?.map(\.topic) == ["b", "a", "c"])
    #expect(merged.topics?.map(\.notifications.accepted) == [3, 12, 1] && merged.notifications.accepted == 16)
    #expect(merged.topics?.map(\.share) == [0.5, nil, 0.5])
    #expect(
      Self.isBroken(merged) == [] && merged.verdict.invariants.contains { $0.name == "written = sum over topics" })
    // What one part does not tell is not told of all.
    for other in [[parts[0], Self.result(nil, segment: "2/2")], [Self.result(nil, segment: "2/2"), parts[0]]] {
      let merged = try RunResult.merging(other.enumerated().map { .init("\($0.offset)", $0.element) })
      #expect(merged.topics == nil && !merged.verdict.invariants.contains { $0.name.contains("topics") })
    }
  }

  @Test("Topics that do not add up to the run break its books")
  func broken() {
    var result = Self.result([Self.topic("a", accepted: 3), Self.topic("b", accepted: 5)])
    #expect(Self.isBroken(result) == [])
    result.topics?[0].notifications.accepted -= 1
    result.topics?[0].sendings.written += 1
    result.topics?[1].notifications.generated += 1
    result.verdict.invariants = result.invariants(usesMarkers: false)
    #expect(
      Self.isBroken(result) == [
        "generated = sum over topics", "accepted = sum over topics", "written = sum over topics",
      ])
  }

  @Test("Of a lost run, what is open is unknown in each topic")
  func lost() {
    var result = Self.result([Self.topic("a", accepted: 3, open: 2), Self.topic("b", accepted: 5, open: 1)])
    result.markLost(in: .measured, afterS: 1)
    #expect(result.topics?.map(\.notifications.unknown) == [2, 1] && result.notifications.unknown == 3)
    #expect(
      result.topics?.map(\.notifications.unproven) == [2, 1] && result.topics?.map(\.sendings.unknown) == [2, 1])
  }
}
