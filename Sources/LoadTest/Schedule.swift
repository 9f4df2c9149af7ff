import Glibc

/// When each sending is due: a pure function, so no clock is needed to ask it or to test it.
///
/// A schedule is the number of sendings that are due up to a time, H(t); sending k (from 0) is due when H reaches k + 1…
/// at H⁻¹(k). Stages follow each other and carry their fractions over: nothing is lost or doubled at their joints.
/// Times are seconds from the start of the schedule.
public struct Schedule: Sendable, Equatable {
  /// A part of a schedule in which the rate changes evenly.
  public struct Stage: Sendable, Equatable {
    /// Seconds; infinite for the last one if nothing else ends the run.
    public var length: Double
    /// Sendings a second at its beginning and its end.
    public var from: Double
    public var to: Double

    public init(length: Double, from: Double, to: Double) {
      self.length = length
      self.from = from
      self.to = to
    }

    /// Sendings that are due in the first `time` seconds of it.
    func count(at time: Double) -> Double {
      guard from != to else { return from * time }
      return from * time + (to - from) / length * time * time / 2
    }

    var count: Double { length.isInfinite ? (from > 0 ? .infinity : 0) : count(at: length) }

    /// When so many are due: t = (−r₀ + √(r₀² + 2sk)) / s, written so that nothing cancels out.
    func time(of count: Double) -> Double {
      guard count > 0 else { return 0 }
      guard from != to else { return count / from }
      let slope = (to - from) / length
      let root = max(0, from * from + 2 * slope * count).squareRoot()
      return 2 * count / (from + root)
    }
  }

  public var stages: [Stage]

  public init(stages: [Stage]) { self.stages = stages }

  /// The same rate for ever.
  public static func constant(_ rate: Double) -> Schedule {
    Schedule(stages: [Stage(length: .infinity, from: rate, to: rate)])
  }

  /// Seconds until the last stage ends.
  public var length: Double { stages.reduce(0) { $0 + $1.length } }

  /// Sendings in all.
  public var count: Double { stages.reduce(0) { $0 + $1.count } }

  /// H(t): how many are due at `time`, with the fraction of the next one.
  public func exactCount(at time: Double) -> Double {
    var (rest, total) = (time, 0.0)
    for stage in stages {
      if rest <= stage.length { return total + stage.count(at: max(0, rest)) }
      total += stage.count
      rest -= stage.length
    }
    return total
  }

  /// How many sendings are due at `time`: those with a due time not later than it.
  public func count(at time: Double) -> Int {
    guard time >= 0 else { return 0 }
    let exact = exactCount(at: time)
    guard exact < 1e18 else { return .max }
    // Sending 0 is due at once, sending k when k have gone by.
    var count = Int(exact.rounded(.down)) + 1
    // Both functions round; the due time decides.
    while count > 0, (self.time(of: count - 1) ?? .infinity) > time { count -= 1 }
    while let next = self.time(of: count), next <= time { count += 1 }
    return count
  }

  /// H⁻¹(k): when sending `index` (from 0) is due; `nil` when the schedule ends before.
  public func time(of index: Int) -> Double? {
    var rest = Double(index)
    var start = 0.0
    for stage in stages {
      let count = stage.count
      if rest < count { return start + stage.time(of: rest) }
      rest -= count
      start += stage.length
    }
    return nil
  }

  /// The rate that is asked for at `time`.
  public func rate(at time: Double) -> Double {
    var rest = time
    for stage in stages {
      if rest <= stage.length {
        guard stage.from != stage.to else { return stage.from }
        return stage.from + (stage.to - stage.from) * max(0, rest) / stage.length
      }
      rest -= stage.length
    }
    return 0
  }
}
