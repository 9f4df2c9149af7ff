import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// Loads of several topics: how the stream, its times, loops and connections are divided among them.
@Suite("Topics of a load")
struct TopicTests {
  private static func weights(_ random: inout SeededGenerator, _ count: Int) -> [Double] {
    let kind = random.number(0...2)
    return (0..<count).map { _ in
      switch kind {
      case 0: Double(random.number(1...9))
      case 1: Double.random(in: 0.001...1, using: &random)
      default: random.pick([1e-9, 0.3, 1, 1e6])
      }
    }
  }

  /// A payload for each topic, with its number, and perhaps one for none.
  private static func plan(_ weights: [Double], any: Double = 0) -> LoadPlan {
    var plan = LoadPlan()
    plan.topics = weights.indices.map { "topic \($0)" }
    var entries = weights.enumerated().map { topic, weight in
      PayloadList.Entry(Array("{\"aps\":{\"badge\":\(topic)}}".utf8), weight: weight, topic: "topic \(topic)")
    }
    if any > 0 { entries.insert(.init(Array("{\"aps\":{}}".utf8), weight: any), at: 0) }
    plan.workload.payload = .listed(PayloadList(entries))
    return plan
  }

  @Test(
    "A pattern has each number for one topic, of the first n as many as its weight says, give or take less than one",
    arguments: seeds(10, of: 200))
  func pattern(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let weights = Self.weights(&random, random.number(1...7))
    let whole = weights.reduce(0, +)
    let places = TopicPattern(weights: weights).places
    let length = places[0].length
    #expect(places.count == weights.count && places.allSatisfy { $0.length == length })
    #expect(abs(places.reduce(0) { $0 + $1.share } - 1) < 1e-12)
    for (topic, weight) in zip(places, weights) {
      let ideal = weight / whole
      // The rarest has one in so many; others give it up.
      #expect(topic.share > 0 && abs(topic.share - ideal) <= Double(weights.count) / Double(TopicPattern.longest))
      // Small whole weights are kept to the number.
      if weights.allSatisfy({ $0 <= 9 && $0 == $0.rounded() }) { #expect(abs(topic.share - ideal) < 1e-9) }
    }
    var seen: Set<Int> = []
    for topic in places {
      for index in 0..<50 {
        let number = topic.number(index)
        #expect(seen.insert(number).inserted, "\(number) is of two topics")
        #expect(topic.count(among: number) == index && topic.count(among: number + 1) == index + 1)
      }
      #expect(topic.number(.max) == .max || topic.share == 1)
    }
    for all in (0..<100).map({ _ in random.pick([random.number(0...20), random.number(0...3 * length), 1 << 40]) }) {
      let counts = places.map { $0.count(among: all) }
      #expect(counts.reduce(0, +) == all)
      for (count, topic) in zip(counts, places) where all <= 1 << 32 {
        #expect(abs(Double(count) - topic.share * Double(all)) < 1)
      }
    }
    #expect(places.allSatisfy { $0.count(among: 0) == 0 && $0.count(among: -1) == 0 })
  }

  @Test(
    "Loops divide numbers, counts, due times and connections: each is one loop's, and due when the schedule says",
    arguments: seeds(12, of: 200))
  func shares(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let topics = random.number(1...5)
    var plan = Self.plan(Self.weights(&random, topics), any: random.pick([0, 2]))
    if random.happens(oneIn: 5) { plan.topics = [] }
    plan.connections.count = random.number(max(1, plan.topics.count)...40)
    plan.threads = random.number(1...9)
    plan.count = random.pick([0, 1, random.number(1...2_000)])
    let count = plan.count ?? 0
    let schedule = Schedule(stages: [
      .init(length: 3, from: Double(random.number(0...90)), to: Double(random.number(1...90))),
      .init(length: 2, from: 20, to: 20),
    ])
    plan.pace = .scheduled(schedule, isPoisson: false)
    let shares = plan.shares(of: plan.loopCount)
    #expect(shares.map(\.part) == Array(0..<plan.loopCount) && shares.allSatisfy { $0.parts == plan.loopCount })
    #expect(shares.flatMap(\.connections).sorted() == Array(0..<plan.connections.count))
    #expect(shares.allSatisfy { !$0.connections.isEmpty })
    #expect(Set(shares.compactMap(\.topic)) == Set(plan.topics.indices))
    #expect(abs(shares.reduce(0) { $0 + $1.numbers.share } - 1) < 1e-9)

    let terms = shares.map { LoopMachine.Terms(plan, $0, jitter: 1) }
    #expect(terms.reduce(0) { $0 + $1.most } == count)
    var sent: Set<Int> = []
    for (share, terms) in zip(shares, terms) {
      for index in 0..<min(terms.most, 300) {
        let number = share.numbers.number(index)
        #expect(number < count && sent.insert(number).inserted)
        let pacer = try #require(terms.pacer)
        // The limit is of what is told as due.
        #expect(pacer.time(of: index) == schedule.time(of: number))
      }
      #expect(share.numbers.number(terms.most) >= count)
    }
    var pacers = shares.map { Pacer(schedule, $0.numbers) }
    var time = 0.0
    while time < 6 {
      for loop in pacers.indices { _ = pacers[loop].due(at: time) }
      #expect(pacers.reduce(0) { $0 + $1.count } == schedule.count(at: time))
      time += Double(random.number(1...500)) / 1_000
    }
  }

  @Test("At random times each topic has its share of the rate, too")
  func poisson() {
    var plan = Self.plan([3, 1])
    (plan.threads, plan.connections.count) = (3, 8)
    plan.pace = .scheduled(.constant(1_000), isPoisson: true)
    var due = [0, 0]
    for share in plan.shares(of: plan.loopCount) {
      guard let topic = share.topic, var pacer = plan.pacer(share, limit: .max) else { continue }
      due[topic] += pacer.due(at: 20)
    }
    #expect(abs(due[0] - 15_000) < 6 * 123 && abs(due[1] - 5_000) < 6 * 71, "\(due)")
  }

  @Test("Which notification is of which topic does not depend on threads or connections")
  func threads() {
    func topics(_ threads: Int, _ connections: Int) -> [Int: Int] {
      var plan = Self.plan([3, 1, 2])
      (plan.threads, plan.connections.count, plan.count) = (threads, connections, 600)
      var topics: [Int: Int] = [:]
      for share in plan.shares(of: plan.loopCount) {
        for index in 0..<share.numbers.count(among: 600) { topics[share.numbers.number(index)] = share.topic }
      }
      return topics
    }
    let one = topics(1, 3)
    #expect(one.count == 600 && one.values.count { $0 == 0 } == 300 && one.values.count { $0 == 1 } == 100)
    #expect(topics(8, 20) == one && topics(4, 4) == one)
  }

  @Test("Loops and connections are as many as the weights of their topics say, and one at least")
  func connections() {
    var plan = Self.plan([8, 1, 1])
    (plan.threads, plan.connections.count) = (2, 20)
    func counts() -> [[Int]] {
      let shares = plan.shares(of: plan.loopCount)
      return (0..<3).map { topic in shares.filter { $0.topic == topic }.map(\.connections.count) }
    }
    #expect(counts() == [[16], [2], [2]])
    plan.threads = 6
    #expect(counts() == [[4, 4, 4, 4], [2], [2]])
    (plan.threads, plan.connections.count) = (8, 3)
    #expect(counts() == [[1], [1], [1]])
    plan.connections.count = 5
    #expect(counts() == [[1, 1, 1], [1], [1]])
  }

  @Test("The payloads of a topic are those for it, and those for none in proportion", arguments: seeds(4, of: 20))
  func payloads(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let weights = [Double(random.number(1...5)), Double(random.number(1...5))]
    var plan = Self.plan(weights, any: 2)
    plan.connections.count = 2
    (plan.workload.seed, plan.count) = (seed, 20_000)
    let workloads = try plan.workloads(start: 0)
    var found: [String: Int] = [:]
    for share in plan.shares(of: 2) {
      let topic = try #require(share.topic)
      let numbers = (0..<share.numbers.count(among: 20_000)).map { UInt64(share.numbers.number($0)) }
      let read = try workloads[topic].read(numbers)
      #expect(read.allSatisfy { ["{\"aps\":{}}", "{\"aps\":{\"badge\":\(topic)}}"].contains($0.payload.text) })
      for notification in read { found[notification.payload.text, default: 0] += 1 }
    }
    let whole = weights[0] + weights[1] + 2
    #expect(WorkloadShareTests.isLikely(found["{\"aps\":{}}"] ?? 0, of: 20_000, share: 2 / whole))
    for topic in 0...1 {
      #expect(
        WorkloadShareTests.isLikely(
          found["{\"aps\":{\"badge\":\(topic)}}"] ?? 0, of: 20_000, share: weights[topic] / whole))
    }
  }

  @Test("Plans that cannot be carried out are refused")
  func refused() throws {
    func problem(_ change: (inout LoadPlan) throws -> Void) rethrows -> String {
      var plan = Self.plan([1, 2])
      plan.connections.count = 2
      try change(&plan)
      do throws(Workload.PlanError) {
        _ = try LoadRunner(plan, tls: nil)
        return ""
      } catch {
        return error.description
      }
    }
    #expect(problem { _ in } == "")
    #expect(problem { $0.connections.count = 1 }.contains("at least as many connections"))
    #expect(problem { $0.topics.append("topic 0") }.contains("twice"))
    #expect(problem { $0.topics[1] = "another" }.contains("no payload is for the topic another"))
    #expect(problem { $0.workload.payload = .template("{}") }.contains("listed payloads"))
    #expect(problem { $0.feedback = .init() }.contains("a list for each topic"))
    #expect(problem { $0.topics = (0...64).map { "\($0)" } }.contains("65 topics; at most 64"))
    let replay = try Records.replay([Records.notification(1, at: 0)])
    #expect(problem { $0.replay = replay }.contains("name no topics"))
    let huge = PayloadList([
      .init([0x20], weight: 1e308, topic: "topic 0"), .init([0x20], weight: 1e308, topic: "topic 1"),
    ])
    #expect(problem { $0.workload.payload = .listed(huge) }.contains("too large"))
    #expect(throws: Workload.PlanError("each topic needs a certificate")) {
      try LoadRunner(Self.plan([1, 2]), identities: [:])
    }
  }

  @Test(
    "Runs of several topics: each notification goes once, on connections of its topic, and topics add up to the run",
    arguments: seeds(8, of: 60))
  func runs(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.rejectsOneIn = random.pick([0, 40])
    behavior.answerDelay = 0...2_000_000
    let weights = (0..<random.number(2...4)).map { _ in Double(random.number(1...5)) }
    let isScheduled = random.happens(oneIn: 2)
    let run = try SimulatedRun(behavior, seed: seed) {
      let plan = Self.plan(weights)
      ($0.topics, $0.workload) = (plan.topics, plan.workload)
      $0.workload.tokens = 1_000
      $0.connections.count = random.number(weights.count...8)
      $0.threads = random.number(1...6)
      $0.count = 3_000
      $0.connections.notifications = random.pick([nil, 200])
      if isScheduled { $0.pace = .scheduled(.constant(5_000), isPoisson: random.happens(oneIn: 2)) }
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let pattern = TopicPattern(weights: weights)
    func topic(of identifier: UInt32) -> Int? {
      pattern.places.firstIndex { $0.count(among: Int(identifier)) > $0.count(among: Int(identifier) - 1) }
    }
    for link in run.environment.ended {
      let topics = Set(
        link.arrivals.filter { $0.identifier != BinarySending.markerIdentifier }.map { topic(of: $0.identifier) })
      #expect(topics.count <= 1, "a connection carried \(topics)")
    }
    let settled = run.environment.accepted + run.environment.refused
    #expect(Set(settled.filter { $0 != BinarySending.markerIdentifier }) == Set(1...3_000))

    let result = outcome.result(Environment())
    let topics = try #require(result.topics)
    #expect(topics.map(\.topic) == run.plan.topics)
    for (counts, places) in zip(topics, pattern.places) {
      #expect(counts.notifications.generated == places.count(among: 3_000))
      #expect(abs((counts.share ?? 0) - places.share) < 1e-9)
      let accepted = run.environment.accepted.filter { topic(of: $0) == pattern.places.firstIndex(of: places) }
      #expect(counts.notifications.accepted == accepted.count)
    }
    func sum(_ path: KeyPath<RunResult.Topic, Int>) -> Int { topics.reduce(0) { $0 + $1[keyPath: path] } }
    #expect(sum(\.notifications.rejected) == result.notifications.rejected)
    #expect(sum(\.sendings.written) == result.sendings.written)
    #expect(sum(\.sendings.discarded) == result.sendings.discarded)
    #expect(sum(\.connections.opened) == result.connections.opened)
    #expect(topics.reduce(0) { $0 + ($1.connections.asked ?? 0) } == run.plan.connections.count)
    #expect(result.verdict.outcome == .proven && result.verdict.invariants.allSatisfy(\.holds))
    #expect(result.verdict.invariants.contains { $0.name == "accepted = sum over topics" })
  }
}
