import Reporting
import TestSupport
import Testing

/// A demand over a capacity: the laws of a queue that is served in order.
@Suite("Backlogs")
struct BacklogCourseTests {
  private static func demand(_ steps: [(Double, Double)], until end: Double) throws -> Demand {
    try #require(
      Demand(steps: steps.map { (fromS: $0.0, perS: $0.1) }, endS: end, source: "test", origin: .table))
  }

  /// Steps of whole and broken seconds, with pauses, around the capacity 100.
  private static func random(_ random: inout SeededGenerator) throws -> Demand {
    var steps: [(Double, Double)] = []
    var at = 0.0
    for _ in 0..<random.number(1...12) {
      let rate = random.happens(oneIn: 4) ? 0 : Double(random.number(1...400)) / Double(random.number(1...3))
      steps.append((at, rate))
      at += Double(random.number(1...40)) / 4
    }
    return try demand(steps, until: at)
  }

  /// Notifications that are demanded between two times.
  private static func demanded(_ demand: Demand, _ from: Double, _ to: Double) -> Double {
    (0..<demand.count).reduce(0) { sum, index in
      let step = demand.step(index)
      return sum + max(0, min(to, step.toS) - max(from, step.fromS)) * step.perS
    }
  }

  @Test("A peak above the capacity: how much waits, how long, and when the last one is out")
  func arithmetic() throws {
    // 50 a second too much for 10 s, then 20 a second of room.
    let course = try #require(
      BacklogCourse(Self.demand([(0, 60), (10, 150), (20, 80)], until: 40), capacityPerS: 100))
    #expect(course.largest == 500 && course.largestAtS == 20)
    #expect(course.longestDelayS == 5)
    // 500 take 25 s at 20 a second, but the demand ends after 20 of these, with 100 waiting: one second more.
    #expect(course.lastOutS == 41)
    #expect(course.longestS == 31 && course.totalS == 31)
    #expect(course.waiting(at: 15) == 250 && course.waiting(at: 5) == 0 && course.waiting(at: 30) == 300)
  }

  @Test("Two backlogs with room between them are two, and the longer one is named")
  func twoBacklogs() throws {
    let course = try #require(
      BacklogCourse(
        Self.demand([(0, 200), (1, 0), (10, 200), (13, 0)], until: 30), capacityPerS: 100))
    #expect(course.largest == 300 && course.longestS == 6 && course.totalS == 8)
    #expect(course.lastOutS == 16)
  }

  @Test("Without a peak above the capacity nothing ever waits")
  func fits() throws {
    let course = try #require(BacklogCourse(Self.demand([(0, 100), (10, 40), (20, 0)], until: 30), capacityPerS: 100))
    #expect(course.largest == 0 && course.largestAtS == nil && course.longestDelayS == 0 && course.points.isEmpty)
    // Nothing is due in the last step.
    #expect(course.lastOutS == 20)
    for capacity in [0, -1, .infinity, .nan] {
      #expect(try BacklogCourse(Self.demand([(0, 1)], until: 1), capacityPerS: capacity) == nil)
    }
  }

  @Test("While nothing is sent everything waits, and what was about to be sent waits longer")
  func outage() throws {
    let course = try #require(
      BacklogCourse(
        Self.demand([(0, 50)], until: 100), capacityPerS: 100, outage: .init(fromS: 10, toS: 14)))
    // 4 s of 50 wait, and leave 50 a second faster than others come.
    #expect(course.largest == 200 && course.largestAtS == 14)
    #expect(course.longestDelayS == 4 && course.longestS == 8 && course.lastOutS == 100)
    // 100 wait when it begins: who came last before it waits for these and for its end.
    let later = try #require(
      BacklogCourse(
        Self.demand([(0, 110), (10, 0)], until: 20), capacityPerS: 100, outage: .init(fromS: 10, toS: 15)))
    #expect(later.longestDelayS == 6 && later.lastOutS == 16)
    // Who still leaves before it does not wait for it.
    let before = try #require(
      BacklogCourse(
        Self.demand([(0, 200), (1, 0)], until: 20), capacityPerS: 100, outage: .init(fromS: 2, toS: 15)))
    #expect(before.longestDelayS == 1 && before.lastOutS == 2)
  }

  @Test(
    "Work is conserved: what waits is what came and has not left, and nobody rests while any wait",
    arguments: seeds(40, of: 2_000))
  func conserved(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let demand = try Self.random(&random)
    let course = try #require(BacklogCourse(demand, capacityPerS: 100))
    let last = try #require([course.lastOutS, demand.endS].max())
    // By itself: a time step at a time, with the rate of its beginning.
    let step = 1.0 / 1_024
    var (waiting, at, largest) = (0.0, 0.0, 0.0)
    while at < last {
      let come = Self.demanded(demand, at, at + step)
      waiting = max(0, waiting + come - 100 * step)
      at += step
      largest = max(largest, waiting)
      #expect(abs(course.waiting(at: at) - waiting) < 1, "at \(at)")
    }
    #expect(abs(course.largest - largest) < 1)
    #expect(waiting < 1)
    for (left, right) in zip(course.points, course.points.dropFirst()) {
      let gone = left.waiting + Self.demanded(demand, left.atS, right.atS) - right.waiting
      let most = 100 * (right.atS - left.atS)
      #expect(gone <= most + 1e-6)
      if left.waiting > 0 || right.waiting > 0 { #expect(abs(gone - most) < 1e-6) }
    }
    #expect(course.longestDelayS == course.largest / 100)
    #expect((course.largest == 0) == (demand.peak.perS <= 100))
    #expect(course.lastOutS >= demand.lastDueS)
    let atEnd = course.waiting(at: demand.endS)
    if atEnd > 1e-9 { #expect(abs(course.lastOutS - demand.endS - atEnd / 100) < 1e-9) }
  }

  @Test("More capacity or less demand leaves no more waiting, at any time", arguments: seeds(40, of: 1_000))
  func monotone(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var demand = try Self.random(&random)
    let slow = try #require(BacklogCourse(demand, capacityPerS: 100))
    let fast = try #require(BacklogCourse(demand, capacityPerS: 100 + Double(random.number(1...100))))
    demand.factor = 1 + Double(random.number(1...10)) / 10
    let more = try #require(BacklogCourse(demand, capacityPerS: 100))
    let outage = BacklogCourse.Outage(fromS: 2, toS: 2 + Double(random.number(1...8)))
    let out = try #require(BacklogCourse(demand, capacityPerS: 100, outage: outage))
    for (less, greater) in [(fast, slow), (slow, more), (more, out)] {
      #expect(less.largest <= greater.largest && less.longestDelayS <= greater.longestDelayS + 1e-9)
      #expect(less.lastOutS <= greater.lastOutS + 1e-9 && less.totalS <= greater.totalS + 1e-9)
      for point in less.points { #expect(point.waiting <= greater.waiting(at: point.atS) + 1e-6) }
    }
    // Twice of both is the same course with twice as many.
    let double = try #require(BacklogCourse(demand, capacityPerS: 100))
    demand.factor *= 2
    let twice = try #require(BacklogCourse(demand, capacityPerS: 200))
    #expect(abs(twice.largest - 2 * double.largest) < 1e-6 && abs(twice.lastOutS - double.lastOutS) < 1e-9)
  }

  @Test("With an outage each notification leaves when all before it have left", arguments: seeds(40, of: 1_000))
  func delays(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let demand = try Self.random(&random)
    let outage = BacklogCourse.Outage(fromS: Double(random.number(0...20)), toS: 21 + Double(random.number(0...20)))
    let course = try #require(BacklogCourse(demand, capacityPerS: 100, outage: outage))
    // One after the other, 1/16 of a notification each, which is a time of their own.
    var (free, longest) = (0.0, 0.0)
    for index in 0..<demand.count where demand.step(index).perS > 0 {
      let step = demand.step(index)
      var at = step.fromS
      while at < step.toS {
        if free < at { free = at }
        if free >= outage.fromS, free < outage.toS { free = outage.toS }
        longest = max(longest, free - at)
        free += 1 / (100 * 16.0)
        at += 1 / (step.perS * 16)
      }
    }
    #expect(abs(course.longestDelayS - longest) < 0.2, "\(course.longestDelayS), \(longest)")
    #expect(abs(course.lastOutS - max(free, demand.lastDueS)) < 0.2, "\(course.lastOutS), \(free)")
  }
}
