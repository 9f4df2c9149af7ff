/// The outcome of a push, as far as responses prove it.
public enum Fate: String, Sendable, CaseIterable {
  case accepted, rejected
  /// Certainly not processed; it may be sent again.
  case discarded
  /// Undecided: no answer proves anything about it.
  case unknown
}

/// The number of pushes with each fate. The four add up to the pushes that were sent.
public struct FateCounts: Sendable, Equatable {
  /// Accepted by the gateway, which does not mean delivered to a device.
  public var accepted = 0
  /// Rejected with a response.
  public var rejected = 0
  /// Certainly not processed, since the gateway closed the connection before them.
  public var discarded = 0
  /// Undecided: no response proves anything about them.
  public var unknown = 0

  /// No pushes.
  public init() {}
}
