/// The cost of errors: how many notifications a second are accepted when one in N is rejected.
///
/// With each rejection the connection ends. L notifications after the rejected one are discarded, and nothing is
/// written for the time T until the first notification on the new connection: `G = N / ((N + L)/R + T)` for one
/// connection with the streaming rate R.
///
///     |── N good ones ──|bad|── L discarded ──|   T   |── N good ones ──|…
///     |<──────────── (N + L) / R ────────────>|
public struct GoodputLaw: Sendable, Equatable {
  /// R, notifications a second of one connection while nothing is rejected.
  public var streamingRate: Double
  /// L, the mean number of notifications that a rejection discards.
  public var discarded: Double
  /// T, seconds from the error's reading to the first notification on the new connection.
  public var downtime: Double
  /// The highest accepted rate measured with all connections together, in notifications a second, which predictions
  /// never exceed. `nil`: not measured.
  public var ceiling: Double?

  /// A law with these parameters; `nil` unless the rate is positive and finite, and the other values are finite and not
  /// negative.
  public init?(streamingRate: Double, discarded: Double, downtime: Double) {
    guard streamingRate > 0, streamingRate.isFinite, discarded >= 0, discarded.isFinite, downtime >= 0,
      downtime.isFinite
    else { return nil }
    self.streamingRate = streamingRate
    self.discarded = discarded
    self.downtime = downtime
  }

  /// G₁, in notifications a second, if a share p = 1/N is rejected. For p = 0 the result is R.
  public func goodput(errorShare: Double) -> Double {
    guard errorShare > 0 else { return streamingRate }
    let good = 1 / min(1, errorShare)
    return good / ((good + discarded) / streamingRate + downtime)
  }

  /// The goodput of c connections together: `min(c·G₁, K / ((1 + pL)·c_msg + p·h))`, and no more than `ceiling`.
  ///
  /// - Parameters:
  ///   - errorShare: p, from 0 to 1.
  ///   - connections: c, not negative.
  ///   - cores: K, c_msg and h of the side whose cores are the first to be fully used; `nil`: no such limit.
  public func goodput(errorShare: Double, connections: Int, cores: Cores?) -> Double {
    let share = min(1, max(0, errorShare))
    let together = min(Double(max(0, connections)) * goodput(errorShare: share), ceiling ?? .infinity)
    guard let cores else { return together }
    let work = (1 + share * discarded) * cores.secondsPerNotification + share * cores.secondsPerHandshake
    return work > 0 ? min(together, cores.count / work) : together
  }

  /// The number of cores, and the processor time in seconds that notifications and handshakes need.
  public struct Cores: Sendable, Equatable {
    /// K, the number of cores.
    public var count: Double
    /// c_msg, seconds of processor time for a notification.
    public var secondsPerNotification: Double
    /// h, seconds of processor time for the handshake of a connection.
    public var secondsPerHandshake: Double

    public init(_ count: Double, secondsPerNotification: Double, secondsPerHandshake: Double) {
      self.count = max(0, count)
      self.secondsPerNotification = max(0, secondsPerNotification)
      self.secondsPerHandshake = max(0, secondsPerHandshake)
    }
  }
}
