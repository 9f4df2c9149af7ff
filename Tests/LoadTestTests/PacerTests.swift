import LoadTest
import TestSupport
import Testing

@Suite("Pacing")
struct PacerTests {
  static let kinds: [Pacer.Arrivals] = [.even, .poisson(seed: 7)]

  @Test(
    "Each sending is told of once, not before it is due and at the first asking after",
    arguments: seeds(40, of: 100))
  func wakeUps(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let schedule = ScheduleTests.random(&random)
    for arrivals in [Pacer.Arrivals.even, .poisson(seed: seed)] {
      var pacer = Pacer(schedule, arrivals, limit: random.pick([.max, 100, 1, 0]))
      var now = 0.0
      for _ in 0..<60 {
        let next = pacer.dueTime(ofNext: 0)
        let before = pacer
        let due = pacer.due(at: now)
        #expect(pacer.count == before.count + due)
        if let next {
          #expect((due > 0) == (next <= now) || abs(next - now) < 1e-9)
          if due > 0, due < 2_000 {
            #expect(try #require(before.dueTime(ofNext: due - 1)) <= now + 1e-9)
            #expect(before.dueTime(ofNext: due) == pacer.dueTime(ofNext: 0))
          }
        } else {
          #expect(due == 0)
        }
        if let ahead = pacer.dueTime() { #expect(ahead > now) }
        #expect(pacer.due(at: now) == 0)
        // Sleep until the next one, or for any time.
        let nap = now + Double.random(in: 0...0.2, using: &random)
        now = random.happens(oneIn: 2) ? pacer.dueTime() ?? nap : nap
        guard now.isFinite else { break }
      }
    }
  }

  @Test("Waking up at the due time finds something to send", arguments: kinds)
  func noSpinning(arrivals: Pacer.Arrivals) throws {
    let schedule = Schedule(stages: [
      .init(length: 1, from: 0, to: 5_000.3), .init(length: 0.7, from: 0, to: 0),
      .init(length: 1, from: 7_777.7, to: 0),
    ])
    var pacer = Pacer(schedule, arrivals)
    while let next = pacer.dueTime() { #expect(pacer.due(at: next) >= 1) }
    if arrivals == .even { #expect(pacer.count == schedule.count) }
    #expect(abs(Double(pacer.count - schedule.count)) < 5 * Double(schedule.count).squareRoot())
  }

  @Test("No more than the limit", arguments: kinds)
  func limit(arrivals: Pacer.Arrivals) {
    var pacer = Pacer(.constant(1_000), arrivals, limit: 250)
    #expect(pacer.dueTime(ofNext: 249) != nil)
    #expect(pacer.dueTime(ofNext: 250) == nil)
    var told = 0
    for tick in 0..<100 { told += pacer.due(at: Double(tick) / 10) }
    #expect(told == 250 && pacer.count == 250)
    #expect(pacer.dueTime() == nil)
    var none = Pacer(.constant(1_000), arrivals, limit: -1)
    #expect(none.due(at: 10) == 0 && none.dueTime() == nil)
  }

  @Test(
    "Event loops share a schedule: together they send what it says, when it says",
    arguments: 1...50 as ClosedRange<UInt64>)
  func shares(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let schedule = Schedule(
      stages: (0..<generator.number(1...3)).map { _ in
        .init(
          length: Double(generator.number(0...4)), from: Double(generator.number(0...20)),
          to: Double(generator.number(0...20)))
      })
    let parts = generator.number(1...9)
    var pacers = (0..<parts).map { Pacer(schedule, first: $0, step: parts) }
    for part in 0..<parts {
      for index in 0..<3 { #expect(pacers[part].time(of: index) == schedule.time(of: part + index * parts)) }
    }
    var time = 0.0
    while time < 13 {
      for part in 0..<parts { _ = pacers[part].due(at: time) }
      #expect(pacers.reduce(0) { $0 + $1.count } == schedule.count(at: time))
      time += Double(generator.number(1...900)) / 1_000
    }
    #expect(Pacer(schedule, first: .max, step: .max).time(of: .max) == nil)
  }

  @Test("The same seed gives the same times, however they are asked for", arguments: seeds(3, of: 20))
  func repeatable(seed: UInt64) throws {
    let schedule = Schedule(stages: [.init(length: 3, from: 100, to: 900)])
    let times = Array(PoissonArrivals(schedule, seed: seed))
    #expect(times == Array(PoissonArrivals(schedule, seed: seed)))
    #expect(times != Array(PoissonArrivals(schedule, seed: seed + 1_000)))
    #expect(times == times.sorted() && times.allSatisfy { (0...3).contains($0) })
    let pacer = Pacer(schedule, .poisson(seed: seed))
    #expect((0...times.count).map { pacer.dueTime(ofNext: $0) } == times + [nil])
  }

  @Test("What is taken was due when it was due, in parts of any size", arguments: seeds(3, of: 20))
  func taken(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let schedule = Schedule(stages: [.init(length: 2, from: 300, to: 900), .init(length: 1, from: 50, to: 50)])
    for var pacer in [
      Pacer(schedule), Pacer(schedule, first: 1, step: 3), Pacer(schedule, .poisson(seed: seed)),
    ] {
      let whole = pacer
      var index = 0
      while true {
        let count = generator.number(1...40)
        let expected = (whole.dueTime(ofNext: index), whole.dueTime(ofNext: index + count - 1))
        guard let first = expected.0, let last = expected.1 else { break }
        let due = pacer.take(count)
        #expect(due?.first == first && due?.last == last)
        index += count
      }
      #expect(index > 100)
    }
    var limited = Pacer(schedule, limit: 10)
    let taken = [11, 0, 10, 1].map { limited.take($0) != nil }
    #expect(taken == [false, false, true, false])
  }

  @Test("Gaps are exponential: mean, variance, and no memory", arguments: seeds(4, of: 10))
  func gaps(seed: UInt64) {
    let count = 100_000
    var arrivals = PoissonArrivals(.constant(500), seed: seed)
    var (last, gaps) = (0.0, [Double]())
    for _ in 0..<count {
      let due = arrivals.next() ?? 0
      gaps.append((due - last) * 500)
      last = due
    }
    let n = Double(count)
    let mean = gaps.reduce(0, +) / n
    let variance = gaps.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / n
    let serial = zip(gaps, gaps.dropFirst()).reduce(0) { $0 + ($1.0 - mean) * ($1.1 - mean) } / n
    // Standard errors of an exponential sample: 1/√n of the mean, √8/√n of the variance, 1/√n of the correlation.
    #expect(abs(mean - 1) < 5 / n.squareRoot())
    #expect(abs(variance - 1) < 5 * (8 / n).squareRoot())
    #expect(abs(serial / variance) < 5 / n.squareRoot())
    for (limit, share) in [(0.1, 0.09516), (1.0, 0.63212), (3.0, 0.95021)] {
      let found = Double(gaps.count { $0 < limit }) / n
      #expect(abs(found - share) < 5 * (share * (1 - share) / n).squareRoot())
    }
  }

  @Test("Counts in windows vary as much as they are, and follow the rate", arguments: 1...5 as ClosedRange<UInt64>)
  func windows(seed: UInt64) {
    let schedule = Schedule(stages: [.init(length: 1_000, from: 0, to: 100)])
    var pacer = Pacer(schedule, .poisson(seed: seed))
    var squares = 0.0
    for second in 1...1_000 {
      let due = Double(pacer.due(at: Double(second)))
      let expected = Double(second) / 10 - 0.05
      squares += (due - expected) * (due - expected) / expected
    }
    #expect(abs(squares / 1_000 - 1) < 5 * (2.5 / 1_000).squareRoot())
    #expect(abs(Double(pacer.count) - 50_000) < 5 * 50_000.squareRoot())
  }
}
