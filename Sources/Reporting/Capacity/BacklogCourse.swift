/// The backlog when a demand is laid over a capacity: what exceeds the capacity waits, and is sent in order as soon as
/// there is room.
///
/// Notifications are a fluid here, so all values are exact for rates that are constant within each step, and none is
/// rounded to whole notifications:
///
///     waiting │      /\          grows by demand − capacity
///             │     /  \         shrinks by capacity − demand
///             └────/────\─────── time
///                  |─ longest ─|
public struct BacklogCourse: Sendable, Equatable, Encodable {
  /// Notifications that wait at a time.
  package struct Point: Sendable, Equatable {
    package var atS: Double
    package var waiting: Double
  }

  /// A time in which nothing is sent.
  package struct Outage: Sendable, Equatable {
    package var fromS: Double
    package var toS: Double
    package init(fromS: Double, toS: Double) { (self.fromS, self.toS) = (fromS, toS) }
  }

  /// Notifications a second that are sent while any wait.
  public private(set) var capacityPerS: Double
  /// The most notifications that wait at a time.
  public private(set) var largest = 0.0
  /// When that is; `nil` when none ever wait.
  public private(set) var largestAtS: Double?
  /// The longest that a notification waits, in seconds.
  public private(set) var longestDelayS = 0.0
  /// The longest time in which notifications wait without a break, and all such times together, in seconds.
  public private(set) var longestS = 0.0
  public private(set) var totalS = 0.0
  /// When the last notification has been sent.
  public private(set) var lastOutS = 0.0
  /// Corners of the backlog over time, which is linear between them, and 0 before the first and after the last.
  package private(set) var points: [Point] = []

  private enum CodingKeys: String, CodingKey {
    case capacityPerS, largest, largestAtS, longestDelayS, longestS, totalS, lastOutS
  }

  private let outage: Outage?
  private var now = 0.0
  private var waiting = 0.0
  private var since: Double?

  /// Lays a demand over a capacity; `nil` unless the capacity is finite and above 0.
  ///
  /// - Parameter outage: a time in which nothing is sent; `nil`: none.
  package init?(_ demand: Demand, capacityPerS: Double, outage: Outage? = nil) {
    guard capacityPerS.isFinite, capacityPerS > 0 else { return nil }
    self.capacityPerS = capacityPerS
    self.outage = outage.flatMap { $0.toS > $0.fromS ? $0 : nil }
    for index in 0..<demand.count {
      let step = demand.step(index)
      pass(until: step.toS, step.perS)
    }
    if let outage, now < outage.toS, waiting > 0 { pass(until: outage.toS, 0) }
    if waiting > 0 { advance(to: .infinity, 0, capacityPerS) }
    lastOutS = max(demand.lastDueS, points.last?.atS ?? 0)
  }

  /// The waiting notifications at a time.
  package func waiting(at time: Double) -> Double {
    guard let next = points.firstIndex(where: { $0.atS >= time }), next > 0 else {
      return points.first.map { $0.atS == time ? $0.waiting : 0 } ?? 0
    }
    let (left, right) = (points[next - 1], points[next])
    guard right.atS > left.atS else { return right.waiting }
    return left.waiting + (right.waiting - left.waiting) * (time - left.atS) / (right.atS - left.atS)
  }

  /// Passes a time of one rate, divided by the outage.
  private mutating func pass(until end: Double, _ rate: Double) {
    if let outage, outage.toS > now, outage.fromS < end {
      if outage.fromS > now { advance(to: outage.fromS, rate, capacityPerS) }
      advance(to: min(end, outage.toS), rate, 0)
    }
    if end > now { advance(to: end, rate, capacityPerS) }
  }

  private mutating func advance(to end: Double, _ rate: Double, _ capacity: Double) {
    let growth = rate - capacity
    guard waiting > 0 || growth > 0 else {
      now = end
      return
    }
    if since == nil {
      since = now
      points.append(Point(atS: now, waiting: 0))
    }
    let empty = growth < 0 ? now + waiting / -growth : .infinity
    let last = min(end, empty)
    noteDelays(until: last, rate, growth, isOut: capacity == 0)
    waiting = empty <= end ? 0 : max(0, waiting + growth * (last - now))
    now = last
    points.append(Point(atS: now, waiting: waiting))
    if waiting > largest { (largest, largestAtS) = (waiting, now) }
    guard waiting == 0 else { return }
    let length = now - (since ?? now)
    (longestS, totalS, since) = (max(longestS, length), totalS + length, nil)
    now = max(now, end.isFinite ? end : now)
  }

  /// A notification's delay changes linearly within a time of one rate, but for the last one that is sent before the
  /// outage: the next one waits for its end as well.
  private mutating func noteDelays(until end: Double, _ rate: Double, _ growth: Double, isOut: Bool) {
    guard rate > 0 else { return }
    note(delayOf: waiting, at: now, isOut: isOut)
    note(delayOf: max(0, waiting + growth * (end - now)), at: end, isOut: isOut)
    guard let outage, now < outage.fromS else { return }
    let start = now
    let time = (outage.fromS - (waiting - growth * start) / capacityPerS) * capacityPerS / rate
    guard time > start, time < end else { return }
    let ahead = max(0, waiting + growth * (time - start)) / capacityPerS
    longestDelayS = max(longestDelayS, ahead + (outage.toS - outage.fromS))
  }

  private mutating func note(delayOf ahead: Double, at time: Double, isOut: Bool) {
    var delay = ahead / capacityPerS
    if let outage, isOut || (time < outage.toS && time + delay > outage.fromS) {
      delay += outage.toS - max(time, outage.fromS)
    }
    longestDelayS = max(longestDelayS, delay)
  }
}
