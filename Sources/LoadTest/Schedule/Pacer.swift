/// Tells a sender how many sendings are due each time it wakes up, and when the next one will be.
public struct Pacer: Sendable {
  public enum Arrivals: Sendable, Equatable {
    /// As even as the schedule's rate.
    case even
    /// At random, see `PoissonArrivals`.
    case poisson(seed: UInt64)
  }

  private let schedule: Schedule
  private let limit: Int
  private var poisson: PoissonArrivals?
  /// Sendings that `due(at:)` has told of.
  public private(set) var count = 0

  /// - Parameter limit: how many there are in all, should the schedule have more.
  public init(_ schedule: Schedule, _ arrivals: Arrivals = .even, limit: Int = .max) {
    self.schedule = schedule
    self.limit = limit
    if case .poisson(let seed) = arrivals { poisson = PoissonArrivals(schedule, seed: seed) }
  }

  /// How many more are due at `time` than were told of before.
  ///
  /// Whoever asks again at `dueTime(ofNext: 0)` is told of at least one. Even sendings cost the same however many they
  /// are; of those at random each costs some nanoseconds.
  public mutating func due(at time: Double) -> Int {
    let left = max(0, limit - count)
    let due = poisson?.skip(dueAt: time, limit: left) ?? max(0, min(left, schedule.count(at: time) - count))
    count += due
    return due
  }

  /// When the next sending is due that `due(at:)` has not told of, or the `index`-th (from 0) behind it; `nil` when there
  /// are no more. Of sendings at random all up to it are drawn.
  public func dueTime(ofNext index: Int = 0) -> Double? {
    guard index < limit - count else { return nil }
    guard var ahead = poisson else { return schedule.time(of: count + index) }
    for _ in 0..<index where ahead.next() == nil { return nil }
    return ahead.nextDue
  }
}
