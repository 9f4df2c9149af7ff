import LoadTest
import TestSupport
import Testing

@Suite("Schedules")
struct ScheduleTests {
  typealias Stage = Schedule.Stage

  /// Stages of every kind: even, rising and falling, from and to nothing, of no length, at no rate, with any fractions.
  static func random(_ random: inout SeededGenerator) -> Schedule {
    var stages = (0..<random.number(1...6)).map { _ in
      func rate() -> Double {
        random.happens(oneIn: 3) ? 0 : Double.random(in: 0...1, using: &random) * random.pick([1, 100, 1e4])
      }
      let from = rate()
      let length = random.happens(oneIn: 6) ? 0 : Double.random(in: 0...3, using: &random)
      return Stage(length: length, from: from, to: random.happens(oneIn: 3) ? from : rate())
    }
    if random.happens(oneIn: 4) {
      let rate = random.pick([0, 3.7, 250])
      stages.append(Stage(length: .infinity, from: rate, to: rate))
    }
    return Schedule(stages: stages)
  }

  @Test("How many are due and when each is due say the same", arguments: 1...200 as ClosedRange<UInt64>)
  func inverse(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let schedule = Self.random(&random)
    let total = min(schedule.count, 20_000)
    var last = 0.0
    for index in 0..<total where index < 30 || index > total - 30 || random.happens(oneIn: 200) {
      let due = try #require(schedule.time(of: index))
      #expect(due >= last && due <= schedule.length)
      last = due
      let count = schedule.count(at: due)
      #expect(count > index, "sending \(index) is due at \(due)")
      #expect(schedule.count(at: due.nextDown) <= index || due == 0)
      if count < schedule.count { #expect(try #require(schedule.time(of: count)) > due) }
      #expect(abs(schedule.exactCount(at: due) - Double(index)) < 1e-6 * max(1, schedule.rate(at: due)))
    }
    if total == schedule.count {
      #expect(schedule.time(of: total) == nil)
      #expect(schedule.count(at: schedule.length) == total)
      #expect(schedule.count(at: .infinity) == total)
    }
  }

  @Test("The count never falls, and rises as fast as the rate says", arguments: 1...100 as ClosedRange<UInt64>)
  func monotone(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let schedule = Self.random(&random)
    let end = schedule.length.isFinite ? schedule.length : 20
    #expect(schedule.count(at: -1) == 0)
    var (count, exact, sum) = (0, 0.0, 0.0)
    let step = end / 100
    for tick in 0...100 {
      let time = Double(tick) * step
      #expect(schedule.count(at: time) >= count)
      count = schedule.count(at: time)
      #expect(schedule.exactCount(at: time) >= exact)
      exact = schedule.exactCount(at: time)
      #expect(exact <= sum + 2 * 1e4 * step * Double(schedule.stages.count) + 1e-6)
      #expect(abs(Double(count) - exact) <= 1 + 1e-6)
      sum += schedule.rate(at: time + step / 2) * step
    }
  }

  @Test("Stages add up", arguments: 1...100 as ClosedRange<UInt64>)
  func sum(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    // Lengths in tenths and whole rates, so that the sum is known exactly, in twentieths.
    var twentieths = 0
    let stages = (0..<random.number(1...40)).map { _ in
      let (length, from, to) = (random.number(0...50), random.number(0...1_000), random.number(0...1_000))
      twentieths += length * (from + to)
      return Stage(length: Double(length) / 10, from: Double(from), to: Double(to))
    }
    let schedule = Schedule(stages: stages)
    #expect(schedule.count == (twentieths + 19) / 20)
    #expect(abs(schedule.exactCount(at: schedule.length) - Double(twentieths) / 20) < 1e-9 * Double(twentieths + 1))
  }

  @Test("A constant rate")
  func constant() {
    let schedule = Schedule.constant(4)
    #expect((0..<5).map { schedule.time(of: $0) } == [0, 0.25, 0.5, 0.75, 1])
    #expect(schedule.count(at: 0) == 1)
    #expect(schedule.count(at: 0.24) == 1)
    #expect(schedule.count(at: 1) == 5)
    #expect(schedule.count == .max && schedule.length == .infinity)
    #expect(schedule.rate(at: 1e9) == 4)
    #expect(Schedule.constant(0).count == 0)
    #expect(Schedule.constant(0).count(at: .infinity) == 0)
    #expect(Schedule.constant(0).time(of: 0) == nil)
    #expect(Schedule.constant(4).count(at: .infinity) == .max)
  }

  @Test("A ramp from nothing and back")
  func ramps() throws {
    let schedule = Schedule(stages: [Stage(length: 10, from: 0, to: 100), Stage(length: 10, from: 100, to: 0)])
    #expect(schedule.count == 1_000)
    #expect(schedule.exactCount(at: 5) == 125)
    #expect(schedule.exactCount(at: 10) == 500)
    #expect(schedule.exactCount(at: 15) == 875)
    #expect(schedule.time(of: 125) == 5)
    #expect(schedule.time(of: 500) == 10)
    #expect(schedule.time(of: 875) == 15)
    // The way down is the way up, told from its end, without losing a digit.
    for index in 1...500 {
      let (up, down) = (try #require(schedule.time(of: index)), try #require(schedule.time(of: 1_000 - index)))
      #expect(abs(up - (20 - down)) < 1e-12)
    }
    #expect([0, 5, 10, 15, 20, 21].map { schedule.rate(at: $0) } == [0, 50, 100, 50, 0, 0])
  }

  @Test("Where nothing is sent, and where there is no time")
  func gaps() {
    let schedule = Schedule(stages: [
      Stage(length: 2, from: 0, to: 0), Stage(length: 1, from: 2, to: 2), Stage(length: 0, from: 0, to: 1e6),
      Stage(length: 10, from: 0, to: 0), Stage(length: 1, from: 2, to: 2), Stage(length: 5, from: 0, to: 0),
    ])
    #expect((0..<5).map { schedule.time(of: $0) } == [2, 2.5, 13, 13.5, nil])
    #expect(
      [0, 1.9, 2, 2.5, 3, 12.9, 13, 13.5, 19, 100].map { schedule.count(at: $0) } == [0, 0, 1, 2, 2, 2, 3, 4, 4, 4])
    #expect([1, 2, 3, 13, 14].map { schedule.rate(at: $0) } == [0, 2, 0, 2, 0])
    let nothing = Schedule(stages: [])
    #expect(nothing.count == 0 && nothing.length == 0 && nothing.count(at: 1) == 0 && nothing.rate(at: 0) == 0)
    #expect(nothing.time(of: 0) == nil)
  }

  @Test("Fractions are carried over joints")
  func fractions() throws {
    // A third of a sending each: every third stage sends one.
    let schedule = Schedule(stages: Array(repeating: Stage(length: 1, from: 1.0 / 3, to: 1.0 / 3), count: 30))
    #expect(schedule.count == 10)
    for index in 0..<10 { #expect(abs(try #require(schedule.time(of: index)) - 3 * Double(index)) < 1e-9) }
    let tenths = Schedule(stages: Array(repeating: Stage(length: 0.1, from: 10, to: 10), count: 3))
    #expect(tenths.count == 3)
  }

  @Test("Ten million a second for an hour")
  func precision() throws {
    let hour = Schedule(stages: [Stage(length: 3_600, from: 1e7, to: 1e7)])
    #expect(hour.count == 36_000_000_000)
    for index in [35_999_999_999, 35_999_999_990, 17_999_999_999, 12_345_678_901] {
      let due = try #require(hour.time(of: index))
      #expect(abs(due - Double(index) / 1e7) < 1e-12 * 3_600)
      #expect(hour.count(at: due) == index + 1)
    }
    let down = Schedule(stages: [Stage(length: 3_600, from: 1e7, to: 0)])
    #expect(down.count == 18_000_000_000)
    // The last one is due √(2/s) before the end, s = 1e7/3600.
    let last = try #require(down.time(of: down.count - 1))
    #expect(abs(3_600 - last - (2 * 3_600 / 1e7).squareRoot()) < 1e-9)
  }

  @Test("Parts of a load make the whole", arguments: 1...20 as ClosedRange<UInt64>)
  func scaled(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let schedule = Self.random(&random)
    let quarter = schedule.scaled(by: 0.25)
    for _ in 0..<50 {
      let time = Double.random(in: 0...20, using: &random)
      let (whole, part) = (schedule.exactCount(at: time), quarter.exactCount(at: time))
      #expect(abs(whole - 4 * part) <= 1e-6 + 1e-9 * whole)
    }
  }
}
