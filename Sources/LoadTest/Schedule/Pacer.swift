/// Computes how many sendings are due at each wake-up, and when the next one will be.
package struct Pacer: Sendable {
  package enum Arrivals: Sendable, Equatable {
    /// As even as the schedule's rate.
    case even
    /// At random, see `PoissonArrivals`.
    case poisson(seed: UInt64)
  }

  private enum Times {
    case even(Schedule, LoopNumbers)
    case poisson(PoissonArrivals)
    case recorded(RecordedSchedule)
  }

  private var times: Times
  private let limit: Int
  /// The number of sendings returned by `due(at:)` so far.
  package private(set) var count = 0

  /// - Parameter limit: how many there are in all, should the schedule have more.
  package init(_ schedule: Schedule, _ arrivals: Arrivals = .even, limit: Int = .max) {
    self.limit = limit
    times =
      switch arrivals {
      case .even: .even(schedule, LoopNumbers())
      case .poisson(let seed): .poisson(PoissonArrivals(schedule, seed: seed))
      }
  }

  /// Of the schedule's sendings, evenly spaced, every `step`-th, beginning with number `first`.
  package init(_ schedule: Schedule, first: Int, step: Int, limit: Int = .max) {
    self.init(schedule, LoopNumbers(first: max(0, first), step: max(1, step)), limit: limit)
  }

  /// Of the schedule's sendings, evenly spaced, those with these numbers.
  package init(_ schedule: Schedule, _ numbers: LoopNumbers, limit: Int = .max) {
    self.limit = limit
    times = .even(schedule, numbers)
  }

  package init(_ schedule: RecordedSchedule, limit: Int = .max) {
    self.limit = limit
    times = .recorded(schedule)
  }

  /// How many more are due at `time` than were returned before.
  ///
  /// Calling `due(at:)` at `dueTime(ofNext: 0)` returns at least 1. The cost of evenly spaced sendings does not depend
  /// on their number; random ones cost some nanoseconds each.
  package mutating func due(at time: Double) -> Int {
    let left = max(0, limit - count)
    let due: Int
    switch times {
    case .even(let schedule, let share): due = max(0, min(left, share.count(among: schedule.count(at: time)) - count))
    case .recorded(let schedule): due = max(0, min(left, schedule.count(at: time, known: count) - count))
    case .poisson(var arrivals):
      due = arrivals.skip(dueAt: time, limit: left)
      times = .poisson(arrivals)
    }
    count += due
    return due
  }

  /// Takes the next `taken` sendings, due or not, and returns the due times of the first and the last; `nil` when fewer
  /// are left.
  package mutating func take(_ taken: Int) -> (first: Double, last: Double)? {
    guard taken > 0, taken <= limit - count else { return nil }
    defer { count += taken }
    guard case .poisson(var arrivals) = times else {
      guard let first = time(of: count), let last = time(of: count + taken - 1) else { return nil }
      return (first, last)
    }
    defer { times = .poisson(arrivals) }
    guard let first = arrivals.nextDue else { return nil }
    arrivals.skip(taken - 1)
    guard let last = arrivals.next() else { return nil }
    return (first, last)
  }

  /// When the next sending not returned by `due(at:)` is due, or the `index`-th (from 0) after it; `nil` at the end.
  /// Random sendings are drawn up to it.
  package func dueTime(ofNext index: Int = 0) -> Double? {
    guard index < limit - count else { return nil }
    guard case .poisson(var ahead) = times else { return time(of: count + index) }
    for _ in 0..<index where ahead.next() == nil { return nil }
    return ahead.nextDue
  }

  /// When sending `index` is due, returned by `due(at:)` or not; `nil` if it does not exist, and for random sendings,
  /// which are only known in sequence.
  package func time(of index: Int) -> Double? {
    switch times {
    case .even(let schedule, let share): schedule.time(of: share.number(index))
    case .recorded(let schedule): schedule.time(of: index)
    case .poisson: nil
    }
  }
}

extension LoadPlan {
  /// The pacer of one of several event loops; `nil` when nothing is due at a time.
  ///
  /// - Parameter limit: how many it sends at most.
  func pacer(_ share: LoopShare, limit: Int) -> Pacer? {
    let numbers = share.numbers
    switch pace {
    case .unlimited: return nil
    case .scheduled(let schedule, let isPoisson):
      guard isPoisson else {
        return Pacer(schedule, whole != nil ? numbers.among(workload.segmentNumbers) : numbers, limit: limit)
      }
      // Independent Poisson processes are together one, also across machines that share a load.
      let stream = share.part.multipliedReportingOverflow(by: workload.segments).partialValue &+ workload.segment
      return Pacer(
        schedule.scaled(by: whole != nil ? numbers.share / Double(workload.segments) : numbers.share),
        .poisson(seed: workload.seed &+ UInt64(truncatingIfNeeded: stream)),
        limit: limit)
    case .recorded(let replay, let speed):
      return Pacer(
        RecordedSchedule(
          replay, speed: speed, first: numbers.first * workload.segments + workload.segment,
          step: numbers.step * workload.segments),
        limit: limit)
    }
  }
}
