/// How often something happens, also when it did not: none in n tries means less than 3/n, with 95 % confidence.
///
/// The "rule of three" (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", 1983).
public enum EventShare: Sendable, Equatable {
  case measured(Double)
  case lessThan(Double)
  /// Nothing was tried.
  case unknown

  public init(events: Int, of tries: Int) {
    guard tries > 0, events >= 0 else {
      self = .unknown
      return
    }
    self = events > 0 ? .measured(Double(events) / Double(tries)) : .lessThan(min(1, 3 / Double(tries)))
  }

  /// Where the share lies with 95 % confidence, when events come independently of each other; `nil` when nothing was tried.
  ///
  /// Wilson's score interval (1927), which stays between 0 and 1 however rare the events are.
  public static func interval(events: Int, of tries: Int) -> ClosedRange<Double>? {
    guard tries > 0, (0...tries).contains(events) else { return nil }
    let (count, share, z) = (Double(tries), Double(events) / Double(tries), Distributions.normalBound(0.95))
    let square = z * z / count
    let middle = (share + square / 2) / (1 + square)
    let half = z / (1 + square) * (share * (1 - share) / count + square / (4 * count)).squareRoot()
    // At the ends it is 0 and 1; rounding may say a little else.
    return (events == 0 ? 0 : max(0, middle - half))...(events == tries ? 1 : min(1, middle + half))
  }
}
