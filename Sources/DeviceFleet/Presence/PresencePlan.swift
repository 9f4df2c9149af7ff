/// When the devices of a fleet are reachable.
///
/// A device wants to be online from its start on, unless chance, a time span or a storm keeps it away. All draws are
/// pure functions of the seed and the device's number, so that a fleet behaves the same again, however many processes
/// and event loops share it.
public struct PresencePlan: Sendable, Equatable {
  /// The length of a stay, drawn anew for each.
  public enum Length: Sendable, Equatable {
    /// Exponentially distributed around a mean.
    case mean(Duration)
    /// Uniformly distributed.
    case range(ClosedRange<Duration>)
  }

  /// A time span in which a share of the devices is offline.
  public struct Absence: Sendable, Equatable {
    /// From the fleet's start; the end is not part of it.
    public var span: Range<Duration>
    /// From 0 to 1; each span has devices of its own.
    public var share: Double

    public init(span: Range<Duration>, share: Double) { (self.span, self.share) = (span, share) }
  }

  /// A moment at which all connections are lost at once.
  public struct Storm: Sendable, Equatable {
    /// From the fleet's start.
    public var time: Duration
    /// Each device comes back at a time of its own within this.
    public var within: Duration
    /// The only network of local push that is hit, by its name: devices that are on it, and come back to it. `nil`: all are.
    public var network: String?

    public init(time: Duration, within: Duration, network: String? = nil) {
      (self.time, self.within, self.network) = (time, within, network)
    }

    /// Whether a device is hit that is on this network; `nil`: on none of local push.
    func hits(_ name: String?) -> Bool { network == nil || network == name }
  }

  /// How devices are restored from a copy: each time they ask for other tokens.
  public enum Restoring: Sendable, Equatable {
    /// Restored devices per second of the whole fleet, at random times.
    case rate(Double)
    /// The share of devices that come back restored, each time they come back.
    case share(Double)
  }

  /// How long a device stays online; `nil`: until something else ends it.
  public var online: Length?
  /// How long it stays away after that.
  public var offline = Length.mean(.seconds(10))
  /// Time spans in which a share of the devices is offline.
  public var absences: [Absence] = []
  /// Moments at which all connections are lost, in ascending order.
  public var storms: [Storm] = []
  /// `nil`: no device is restored.
  public var restoring: Restoring?
  /// The share of devices that save power, for which background notifications wait.
  public var lowPowerShare = 0.0
  /// The share of leavings that reset the connection instead of telling the gateway.
  public var resetShare = 0.0

  /// Makes the plan of devices that come and stay.
  public init() {}

  /// The last storm that has hit a network of local push by then, by its place in `storms`; `nil`: none has.
  ///
  /// - Parameters:
  ///   - time: in nanoseconds since the fleet's start.
  ///   - network: its name; `nil`: a device is on none of local push.
  func lastStorm(at time: Int64, on network: String?) -> Int? {
    storms.lastIndex { $0.time.nanoseconds <= time && $0.hits(network) }
  }
}
