/// The times at which sendings are due: a pure function, which needs no clock.
///
/// A schedule is the number of sendings that are due up to a time, H(t), with fractions. Sending k (from 0) is due at
/// H⁻¹(k), so the first at once, and a sending that would be due exactly at the end is not sent: in all there are
/// ⌈H(end)⌉. Fractions of a sending at the end of a stage count in the next: no sending is lost or doubled between
/// stages. Times are seconds from the start of the schedule. A query costs a search among the stages.
public struct Schedule: Sendable, Equatable {
  /// A part of a schedule in which the rate changes evenly.
  public struct Stage: Sendable, Equatable {
    /// The length in seconds; may be infinite when the rate is constant.
    public let length: Double
    /// Sendings a second at the beginning.
    public let from: Double
    /// Sendings a second at the end.
    public let to: Double

    /// Makes a stage. No argument may be negative; only `length` may be infinite, and only when `from` equals `to`.
    public init(length: Double, from: Double, to: Double) {
      precondition(length >= 0 && from >= 0 && to >= 0 && from.isFinite && to.isFinite, "not a stage")
      precondition(length.isFinite || from == to, "a ramp needs a length")
      self.length = length
      self.from = from
      self.to = to
    }

    var count: Double { count(at: length) }

    /// Sendings that are due in the first `time` seconds of the stage.
    func count(at time: Double) -> Double {
      // A special case, because 0 · ∞ is not a number, and a stage without length has no end rate.
      guard time > 0, from > 0 || to > 0 else { return 0 }
      return (from + rate(at: time)) / 2 * time
    }

    /// When this many (less than `count`) are due: t = (−r₀ + √(r₀² + 2sk)) / s, written so that nothing cancels out.
    func time(of count: Double) -> Double {
      guard count > 0 else { return 0 }
      if from == to { return count / from }
      let slope = (to - from) / length
      // A falling ramp is a rising one in reverse.
      let (low, part) = slope > 0 ? (from, count) : (to, self.count - count)
      guard part > 0 else { return length }
      let time = 2 * part / (low + (low * low + 2 * abs(slope) * part).squareRoot())
      return slope > 0 ? min(length, time) : max(0, length - time)
    }

    func rate(at time: Double) -> Double { from == to ? from : from + (to - from) * min(1, time / length) }
  }

  /// The stages, in order.
  public let stages: [Stage]
  /// Where each stage begins: seconds, and sendings before it.
  private let starts: [(time: Double, count: Double)]
  /// Seconds until the last stage ends; may be infinite.
  public let length: Double
  /// H at the end.
  private let exactCount: Double

  /// Joins stages. Only the last stage may be infinite.
  public init(stages: [Stage]) {
    precondition(stages.dropLast().allSatisfy { $0.length.isFinite }, "a stage follows one that never ends")
    self.stages = stages
    var starts: [(time: Double, count: Double)] = []
    var (time, count) = (0.0, 0.0)
    for stage in stages {
      starts.append((time, count))
      time += stage.length
      count = Self.settled(count + stage.count)
    }
    self.starts = starts
    (length, exactCount) = (time, count)
  }

  /// A schedule with one rate, in sendings a second, that never ends.
  public static func constant(_ rate: Double) -> Schedule {
    Schedule(stages: [Stage(length: .infinity, from: rate, to: rate)])
  }

  /// The same stages at `factor` times their rates, for one of several senders of a load.
  public func scaled(by factor: Double) -> Schedule {
    Schedule(stages: stages.map { Stage(length: $0.length, from: $0.from * factor, to: $0.to * factor) })
  }

  public static func == (a: Schedule, b: Schedule) -> Bool { a.stages == b.stages }

  /// The total number of sendings; `Int.max` if unlimited.
  public var count: Int { exactCount < Self.endless ? Int(exactCount.rounded(.up)) : .max }

  /// H(t): how many are due at `time`, with the fraction of the next one.
  package func exactCount(at time: Double) -> Double {
    guard let (stage, start) = stage({ $0.time <= time }) else { return 0 }
    return min(start.count + stage.count(at: min(stage.length, time - start.time)), exactCount)
  }

  /// The number of sendings with a due time not later than `time`; `Int.max` if too many to count exactly.
  public func count(at time: Double) -> Int {
    guard time >= 0 else { return 0 }
    let exact = exactCount(at: time)
    guard exact < Self.endless else { return .max }
    var count = Int(exact) + 1
    // Both functions round; the due time decides.
    while count > 0, !isDue(count - 1, at: time) { count -= 1 }
    while isDue(count, at: time) { count += 1 }
    return count
  }

  private func isDue(_ index: Int, at time: Double) -> Bool {
    guard let due = self.time(of: index) else { return false }
    return due <= time
  }

  /// The time at which sending `index` (from 0) is due; `nil` when the schedule ends before.
  public func time(of index: Int) -> Double? { time(ofExact: Double(index)) }

  /// H⁻¹(k), also of fractions; `nil` when the schedule ends before. If nothing is due for some time, the end of this
  /// time.
  package func time(ofExact count: Double) -> Double? {
    guard count < exactCount, let (stage, start) = stage({ $0.count <= count }) else { return nil }
    return start.time + min(stage.length, stage.time(of: count - start.count))
  }

  /// The rate at `time`, in sendings a second: the later stage's where two meet, and 0 from the end on.
  public func rate(at time: Double) -> Double {
    guard time < length, let (stage, start) = stage({ $0.time <= time }) else { return 0 }
    return stage.rate(at: time - start.time)
  }

  /// The last stage whose start fulfils the condition.
  private func stage(_ isWanted: ((time: Double, count: Double)) -> Bool) -> (
    Stage, start: (time: Double, count: Double)
  )? {
    guard let index = starts.lastIndex(where: isWanted) else { return nil }
    return (stages[index], starts[index])
  }

  /// A number of sendings that no run reaches, and from which on numbers are not exact.
  private static let endless = 1e15

  /// Three stages of 0.1 s at 10/s make 3 sendings, and not 3.0000000000000004, of which there would be four.
  private static func settled(_ count: Double) -> Double {
    let whole = count.rounded()
    return abs(count - whole) <= 1e-9 + 1e-12 * whole ? whole : count
  }
}
