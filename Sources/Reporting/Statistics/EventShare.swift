/// The share of tries in which an event occurs, or its bound if none did: no event in n tries means a share below 3/n,
/// with 95 % confidence.
///
/// The "rule of three" (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", 1983), for events
/// that come independently of each other.
package enum EventShare: Sendable, Equatable {
  case measured(Double)
  case lessThan(Double)
  /// Nothing was tried.
  case unknown

  package init(events: Int, of tries: Int) {
    guard tries > 0, events >= 0 else {
      self = .unknown
      return
    }
    self = events > 0 ? .measured(Double(events) / Double(tries)) : .lessThan(min(1, 3 / Double(tries)))
  }

  /// A second of a series: its number of tries and events.
  package typealias Second = (events: Double, tries: Double)

  /// The 95 % confidence interval of the share; `nil` if there were no tries, or if the seconds cannot show whether
  /// events are independent or in bursts: fewer than 20 seconds, or other events than the total's.
  ///
  /// The interval is Wilson's score interval (1927), which stays between 0 and 1 however rare the events are, for the
  /// effective number of independent tries: the tries divided by the ratio of the variance of the seconds' events, by
  /// batch means, to the variance of independent events. Simulated series of 20 to 300 s, nominally 95 %: it holds the
  /// true share in at least 94 %, with 5 to 300 independent events, in bursts of 5 or 50, or with a frequency that is
  /// correlated from second to second (AR(1), φ 0.8); without the ratio it is 14 to 98 %.
  package static func interval(events: Int, of tries: Int, seconds: [Second]) -> ClosedRange<Double>? {
    guard tries > 0, (0...tries).contains(events), seconds.count >= 20 else { return nil }
    guard events > 0 else { return interval(events: 0, of: Double(tries)) }
    let seen = seconds.reduce(0) { $0 + $1.events }
    guard abs(seen - Double(events)) <= 0.1 * Double(events) else { return nil }
    let share = seen / seconds.reduce(0) { $0 + $1.tries }
    guard share.isFinite else { return nil }
    let count = Double(seconds.count)
    let half = BatchMeans.halfWidth(seconds.map { $0.events - share * $0.tries }, length: count)
    let bound = half / Distributions.normalBound(0.95)
    let dispersion = max(1, bound * bound * count / (seen / count))
    guard dispersion.isFinite else { return nil }
    return interval(events: Double(events) / dispersion, of: Double(tries) / dispersion)
  }

  /// Wilson's, of independent tries.
  static func interval(events: Double, of tries: Double) -> ClosedRange<Double>? {
    guard tries > 0, events >= 0, events <= tries else { return nil }
    let (share, z) = (events / tries, Distributions.normalBound(0.95))
    let square = z * z / tries
    let middle = (share + square / 2) / (1 + square)
    let half = z / (1 + square) * (share * (1 - share) / tries + square / (4 * tries)).squareRoot()
    // At the extremes the bounds are exactly 0 and 1; rounding may differ a little.
    return (events == 0 ? 0 : max(0, middle - half))...(events == tries ? 1 : min(1, middle + half))
  }
}
