/// When a loop's share of the schedule is due.
struct Timetable {
  /// Nanoseconds of the monotonic clock, as all times here.
  let start: Int64
  /// Nothing is due at it or after it.
  private(set) var end: Int64
  /// `nil` without a schedule: then there is always something due.
  private var pacer: Pacer?
  /// The schedule delayed by the maximum lateness: sendings due in it that were not sent are skipped; `nil` without
  /// skipping.
  private var latePacer: Pacer?
  /// The schedule up to the sendings taken: it knows when the next one was due.
  private var takenPacer: Pacer?

  init(start: Int64, end: Int64, _ pacer: Pacer?, skipsLate: Bool) {
    (self.start, self.end, self.pacer, takenPacer) = (start, end, pacer, pacer)
    latePacer = skipsLate ? pacer : nil
  }

  var hasSchedule: Bool { pacer != nil }

  mutating func end(at time: Int64) { end = min(end, time) }

  /// How many have become due since the last call; `nil` without a schedule.
  mutating func due(at time: Int64) -> Int? {
    // A sending that would be due at the very end is not.
    let seconds = seconds(min(time, end - 1))
    return pacer?.due(at: seconds)
  }

  /// How many of the schedule's sendings are too late by now to be sent; `nil` when none ever is.
  mutating func late(at time: Int64) -> Int? {
    let seconds = seconds(min(time, end - 1)) - LoadPlan.lateness / .seconds(1)
    _ = latePacer?.due(at: seconds)
    return latePacer?.count
  }

  private func seconds(_ time: Int64) -> Double { Double(time - start) / 1e9 }

  /// When the next so many that were not taken yet are due; `nil` when there are not that many.
  mutating func take(_ count: Int) -> DueTimes? { takenPacer?.take(count).map { DueTimes($0, since: start) } }

  /// When these were due that were taken before; `nil` for random sendings, which are only known in sequence.
  func due(_ count: Int, from index: Int) -> DueTimes? {
    guard let first = pacer?.time(of: index), let last = pacer?.time(of: index + count - 1) else { return nil }
    return DueTimes((first, last), since: start)
  }
}

/// The due times of the first and the last of consecutive notifications; the times between are evenly spaced.
struct DueTimes: Equatable {
  /// Nanoseconds of the monotonic clock.
  var first: Int64
  var last: Int64

  init(_ time: Int64) { (first, last) = (time, time) }

  init(_ first: Int64, _ last: Int64) { (self.first, self.last) = (first, last) }

  /// - Parameter seconds: since `start`.
  init(_ seconds: (first: Double, last: Double), since start: Int64) {
    first = start + Int64(seconds.first * 1e9)
    last = start + Int64(seconds.last * 1e9)
  }
}
