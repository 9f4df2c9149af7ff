import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// What a stream's segments divide among them adds up to the whole.
@Suite("Division among segments")
struct SegmentNumbersTests {
  @Test("Each number of the whole is of one segment, and segments are equal but for one", arguments: seeds(20, of: 200))
  func numbers(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let segments = generator.number(1...40)
    let all = (0..<segments).map { SegmentNumbers(segment: $0, segments: segments) }
    for whole in [0, 1, segments - 1, segments, segments + 1, generator.number(0...5_000)] {
      let counts = all.map { $0.count(among: whole) }
      #expect(counts.reduce(0, +) == whole)
      #expect((counts.max() ?? 0) - (counts.min() ?? 0) <= 1)
      #expect(counts == counts.sorted(by: >), "the first have one more")
      var numbers: [Int] = []
      for (segment, count) in zip(all, counts) { numbers += (0..<count).map(segment.number) }
      #expect(numbers.sorted() == Array(0..<whole))
    }
    let last = all[segments - 1]
    #expect(last.count(among: .max) == .max && (segments == 1 || last.number(.max) == .max))
  }

  /// A plan of a whole, with everything that is divided.
  private func plan(_ generator: inout SeededGenerator, segments: Int, isPoisson: Bool) -> LoadPlan {
    var plan = LoadPlan()
    plan.workload.segments = segments
    plan.connections.count = segments + generator.number(0...30)
    plan.count = generator.happens(oneIn: 3) ? nil : segments + generator.number(0...3_000)
    plan.threads = generator.number(1...4)
    let stages = (0..<generator.number(1...3)).map { _ in
      Schedule.Stage(
        length: Double(generator.number(1...3)), from: Double(generator.number(0...900)),
        to: Double(generator.number(0...900)))
    }
    plan.pace = .scheduled(Schedule(stages: stages), isPoisson: isPoisson)
    return plan
  }

  private func segments(of whole: LoadPlan) throws -> [LoadPlan] {
    try (0..<whole.workload.segments).map {
      var part = whole
      part.workload.segment = $0
      try part.takeSegment()
      return part
    }
  }

  @Test(
    "At every instant the segments have sent together what the whole would have, over as many connections",
    arguments: seeds(30, of: 300))
  func instants(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let whole = plan(&generator, segments: generator.number(1...12), isPoisson: false)
    guard case .scheduled(let schedule, _) = whole.pace else { return }
    let parts = try segments(of: whole)
    #expect(parts.reduce(0) { $0 + $1.connections.count } == whole.connections.count)
    #expect(parts.allSatisfy { $0.connections.count >= 1 })
    if let count = whole.count { #expect(parts.reduce(0) { $0 + ($1.count ?? 0) } == count) }
    var pacers = parts.flatMap { part in
      part.shares(of: part.loopCount).compactMap { share in
        part.pacer(share, limit: part.count.map { share.numbers.count(among: $0) } ?? .max)
      }
    }
    #expect(pacers.count == parts.reduce(0) { $0 + $1.loopCount })
    var time = 0.0
    while time < schedule.length + 1 {
      for index in pacers.indices { _ = pacers[index].due(at: time) }
      let due = pacers.reduce(0) { $0 + $1.count }
      #expect(due == min(schedule.count(at: time), whole.count ?? .max), "at \(time) s")
      time += Double(generator.number(1...400)) / 1_000
    }
    // The parts of the expected rate, too, which progress shows.
    let expected = try parts.map { try #require($0.dueCount(at: 1)) }.reduce(0, +)
    #expect(abs(expected - schedule.exactCount(at: 1)) < 1e-6)
  }

  @Test("Of a segment, notification n is due when it is due in the whole", arguments: seeds(10, of: 100))
  func times(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var whole = plan(&generator, segments: generator.number(1...12), isPoisson: false)
    whole.count = nil
    guard case .scheduled(let schedule, _) = whole.pace else { return }
    for part in try segments(of: whole) {
      let shares = part.shares(of: part.loopCount)
      for share in shares {
        let pacer = try #require(part.pacer(share, limit: .max))
        for index in 0..<20 {
          // The loop's number within its segment, which the workload counts as number n of the stream.
          let own = share.numbers.number(index)
          #expect(pacer.time(of: index) == schedule.time(of: own * part.workload.segments + part.workload.segment))
        }
      }
    }
  }

  @Test("Random arrivals of all segments have the rate of the whole", arguments: seeds(5, of: 30))
  func poisson(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var whole = plan(&generator, segments: generator.number(1...8), isPoisson: true)
    whole.pace = .scheduled(.constant(3_000), isPoisson: true)
    whole.count = nil
    whole.workload.seed = seed
    var arrived = 0
    for part in try segments(of: whole) {
      for share in part.shares(of: part.loopCount) {
        var pacer = try #require(part.pacer(share, limit: .max))
        arrived += pacer.due(at: 10)
      }
    }
    // Six standard deviations of a Poisson number of 30,000.
    #expect(abs(Double(arrived) - 30_000) < 6 * 30_000.0.squareRoot())
  }

  @Test("Topics stay what they are, whoever sends them")
  func topics() throws {
    var whole = LoadPlan()
    whole.topics = ["a", "b"]
    whole.workload.payload = .listed(
      PayloadList([
        PayloadList.Entry(Array("{}".utf8), weight: 3, topic: "a"),
        PayloadList.Entry(Array("{}".utf8), weight: 1, topic: "b"),
      ]))
    whole.workload.segments = 3
    whole.connections.count = 7
    whole.pace = .scheduled(.constant(100), isPoisson: false)
    let parts = try segments(of: whole)
    #expect(parts.map(\.connections.count) == [3, 2, 2])
    var due = 0
    for part in parts {
      for share in part.shares(of: part.loopCount) {
        var pacer = try #require(part.pacer(share, limit: .max))
        due += pacer.due(at: 9.995)
      }
    }
    #expect(due == 1_000)
  }

  @Test("What cannot be divided is refused, and a segment is not divided again")
  func refused() throws {
    var plan = LoadPlan()
    (plan.workload.segment, plan.workload.segments) = (1, 4)
    plan.connections.count = 3
    #expect(throws: Workload.PlanError("3 connections cannot be divided among 4 segments: each needs one")) {
      try plan.takeSegment()
    }
    plan.connections.count = 6
    plan.count = 3
    #expect(throws: Workload.PlanError("3 notifications cannot be divided among 4 segments: each needs one")) {
      try plan.takeSegment()
    }
    plan.count = 10
    plan.topics = ["a", "b"]
    #expect(throws: Workload.PlanError.self) { try plan.takeSegment() }
    plan.topics = []
    try plan.takeSegment()
    try plan.takeSegment()
    #expect((plan.connections.count, plan.count) == (2, 3))
    #expect(plan.whole == .init(connections: 6, count: 10))
  }
}
