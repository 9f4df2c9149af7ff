import Bytes
import Synchronization

/// A fault and what is left of it, shared by all connections.
///
/// Loops ask at the same time: each notification takes its own number, so exactly every n-th is hit, and exactly `times`
/// of them are.
final class ActiveFault: Sendable {
  let fault: HTTP2Fault
  private let counted = Atomic<Int>(0)
  private let taken = Atomic<Int>(0)
  /// When it was set, in ns of the loops' clock; `Int64.min`: no loop has it yet.
  private let began = Atomic<Int64>(.min)
  /// The allowance that is left to each token, of a fault that throttles.
  private let buckets = Mutex(TokenBuckets())

  init(_ fault: HTTP2Fault) { self.fault = fault }

  /// Notes when it was set, if no other loop has.
  func begin(at tick: Int64) {
    _ = began.compareExchange(expected: .min, desired: tick, ordering: .relaxed)
  }

  /// Whether it is its time.
  func isInForce(at tick: Int64) -> Bool {
    let (from, until) = (fault.occasion.from, fault.occasion.until)
    guard from != nil || until != nil else { return true }
    let passed = tick - began.load(ordering: .relaxed)
    return passed >= from?.nanoseconds ?? 0 && passed < until?.nanoseconds ?? .max
  }

  /// When its time begins, in ns of the loops' clock.
  var firstTick: Int64 { began.load(ordering: .relaxed) + (fault.occasion.from?.nanoseconds ?? 0) }

  /// When its time ends.
  var endTick: Int64 {
    fault.occasion.until.map { began.load(ordering: .relaxed) + $0.nanoseconds } ?? .max
  }

  /// Counts one notification and returns whether it is an n-th one.
  func isHit(every interval: Int) -> Bool {
    counted.wrappingAdd(1, ordering: .relaxed).newValue % max(1, interval) == 0
  }

  /// Whether one more is hit: not once `times` were.
  func takesOne() -> Bool {
    guard let times = fault.occasion.times else {
      taken.wrappingAdd(1, ordering: .relaxed)
      return true
    }
    guard taken.load(ordering: .relaxed) < times else { return false }
    return taken.wrappingAdd(1, ordering: .relaxed).newValue <= times
  }

  /// Hits so far.
  var hits: Int { min(taken.load(ordering: .relaxed), fault.occasion.times ?? .max) }
  /// Hits that are left; `nil`: any number.
  var left: Int? { fault.occasion.times.map { $0 - hits } }

  /// Counts one notification to a token; `true` if that is more than the rate allows.
  func exceeds(_ perSecond: Double, _ token: RawSpan, at tick: Int64) -> Bool {
    let key = ContentDigest(token).value
    return buckets.withLock { !$0.take(key, perSecond, at: tick) }
  }
}

/// Notifications that tokens may still have, by the digest of the token.
private struct TokenBuckets {
  /// The tokens that are remembered. Further ones replace all: each may then have its burst again.
  static let maximumCount = 100_000

  private var left: [UInt64: (count: Double, tick: Int64)] = [:]

  mutating func take(_ key: UInt64, _ perSecond: Double, at tick: Int64) -> Bool {
    // One at least, and what a second brings.
    let most = max(1, perSecond)
    var count = most
    if let before = left[key] {
      count = min(most, before.count + Double(max(0, tick - before.tick)) * perSecond / 1e9)
    } else if left.count >= Self.maximumCount {
      left.removeAll(keepingCapacity: true)
    }
    let isAllowed = count >= 1
    left[key] = (isAllowed ? count - 1 : count, tick)
    return isAllowed
  }
}
