import Glibc
import Measurement

/// Due times of a Poisson process with the rate of a schedule.
///
/// A Poisson process of rate 1 has gaps that are exponentially distributed with mean 1; its k-th arrival E(k) is due at
/// H⁻¹(E(k)). The first sending is not due at once, and the number of sendings depends on the seed. Two processes with
/// different seeds and parts of a rate are together a process with the whole rate.
package struct PoissonArrivals: Sequence, IteratorProtocol, Sendable {
  private let schedule: Schedule
  private var random: SplitMix64
  /// E of the next one.
  private var arrival = 0.0

  package init(_ schedule: Schedule, seed: UInt64) {
    self.schedule = schedule
    random = SplitMix64(seed: seed)
    advance()
  }

  private mutating func advance() {
    // 53 bits, from 0 to below 1.
    arrival -= log1p(-Double(random.next() >> 11) * 0x1p-53)
  }

  /// When the next one is due; `nil` when the schedule ends before. It stays the next one.
  package var nextDue: Double? { schedule.time(ofExact: arrival) }

  /// Returns the due time of the next one, and advances.
  package mutating func next() -> Double? {
    guard let due = nextDue else { return nil }
    advance()
    return due
  }

  /// Skips that many.
  mutating func skip(_ count: Int) {
    for _ in 0..<count { advance() }
  }

  /// Goes past all that are due at `time`, at most `limit`, and returns how many they are.
  mutating func skip(dueAt time: Double, limit: Int) -> Int {
    var count = 0
    // Evaluates H once instead of H⁻¹ for each; rounding is resolved by the due time.
    let exact = schedule.exactCount(at: time)
    while count < limit, arrival < exact {
      advance()
      count += 1
    }
    while count < limit, let due = nextDue, due <= time {
      advance()
      count += 1
    }
    return count
  }
}
