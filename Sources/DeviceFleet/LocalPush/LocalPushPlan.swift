import Measurement

/// How the devices of a fleet use local push.
public struct LocalPushPlan: Sendable {
  /// A Wi-Fi network on which the extension may run.
  public struct Network: Sendable {
    /// Its SSID.
    public var name: String
    /// The share of joinings that are of this network, from 0 to 1.
    public var share: Double
    /// Where the notification channel is for devices on this network; `nil`: where `FleetPlan.gateway` is.
    public var server: FleetPlan.Gateway?

    public init(name: String, share: Double, server: FleetPlan.Gateway? = nil) {
      (self.name, self.share, self.server) = (name, share, server)
    }
  }

  /// The networks on which the extension may run; what is left of all joinings is of other ones. Empty: every network is one.
  public var networks: [Network] = []
  /// A device that has heard nothing for this time gives the connection up; the sample has 30 s.
  public var silence = Duration.seconds(30)
  /// How long a request waits for its acknowledgement; the sample has 10 s.
  public var requestTimeout = Duration.seconds(10)
  /// An invitation that comes later than this after it was sent is a missed call. No number is known: the default is the time
  /// after which the request has failed.
  public var callTime = Duration.seconds(10)

  /// A device that is always on a network of its app.
  public init() {}

  /// Whether the numbers make sense.
  var isPossible: Bool {
    networks.count <= 1_000 && networks.allSatisfy { (0...1).contains($0.share) && !$0.name.isEmpty }
      && networks.reduce(0) { $0 + $1.share } <= 1 + 1e-9 && Set(networks.map(\.name)).count == networks.count
      && [silence, requestTimeout, callTime].allSatisfy { $0 >= .milliseconds(1) }
  }

  /// The network that a draw from 0 to below 1 joins.
  func network(drawn: Double) -> JoinedNetwork {
    guard !networks.isEmpty else { return .any }
    var sum = 0.0
    for (place, network) in networks.enumerated() {
      sum += network.share
      if drawn < sum { return .network(place) }
    }
    return .other
  }
}

/// The network that a device has joined last.
enum JoinedNetwork: Equatable {
  /// Every network is one on which the extension runs, or the device does not use local push.
  case any
  /// One of the plan, by its place.
  case network(Int)
  /// One on which the extension does not run.
  case other
}
