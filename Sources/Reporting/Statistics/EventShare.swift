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
}
