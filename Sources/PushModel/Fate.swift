/// The outcome of a push, as far as it is proven.
public enum Fate: String, Sendable, CaseIterable {
  case accepted, rejected
  /// Certainly not processed; it may be sent again.
  case discarded
  /// Undecided: no answer proves anything about it.
  case unknown
}

/// The number of pushes with each fate. The four add up to the pushes that were sent.
public struct FateCounts: Sendable, Equatable {
  public var accepted = 0
  public var rejected = 0
  public var discarded = 0
  /// Left open: no answer proves anything about them.
  public var unknown = 0

  public init() {}
}
