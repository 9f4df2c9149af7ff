import DeviceProtocol
import TLSTransport

/// The provider's own server for devices without internet: local push connectivity.
///
/// `Documentation/local-push.md` has the protocol, and says what of it is an assumption.
public struct LocalPushService: Sendable {
  /// The most networks.
  public static let maximumNetworks = 64
  /// The most bytes of a network's name, as of an SSID.
  public static let longestName = 32

  /// A Wi-Fi network, told from others by the address that its devices connect to: a registration does not say where a device
  /// is.
  public struct Network: Sendable {
    /// An SSID; empty: the network has no name.
    public var name: String
    /// Where the notification channel of extensions is.
    public var address: SimulatorOptions.Address

    public init(name: String = "", address: SimulatorOptions.Address) { (self.name, self.address) = (name, address) }

    /// Whether a name can be that of a network: it is told in lines of text, so it has no control characters.
    public static func isPossible(_ name: String) -> Bool {
      name.utf8.count <= LocalPushService.longestName
        && !name.unicodeScalars.contains {
          [.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
        }
    }
  }

  /// A message that the server has at a time of the run.
  public struct Planned: Sendable, Equatable {
    /// From the start of the server.
    public var time: Duration
    public var message: LocalPushOffer

    public init(time: Duration, message: LocalPushOffer) { (self.time, self.message) = (time, message) }
  }

  /// The networks, by different names, at most `maximumNetworks`; none: there is no notification channel.
  public var networks: [Network] = []
  /// Where the control channel of the app is; `nil`: there is none. It is for users on every network.
  public var control: SimulatorOptions.Address?
  /// `nil`: plain TCP.
  public var tls: TLSContext?
  /// The time between heartbeats on a notification channel; the sample has 10 s.
  public var heartbeat = Duration.seconds(10)
  /// How long a request waits for its acknowledgement; the sample has 10 s.
  public var requestTimeout = Duration.seconds(10)
  /// The least time between two directories on a control channel: users who come and go within it are told of once.
  public var directoryInterval = Duration.seconds(1)
  /// The longest message of a device in bytes.
  public var maximumMessageLength = 64 << 10
  /// Requests on a connection that are not acknowledged; further ones are not sent.
  public var maximumUnacknowledged = 100
  /// Users that a directory has; those who came first are in it.
  public var maximumDirectoryUsers = 200
  /// Messages to be sent, in ascending order of their times.
  public var planned: [Planned] = []
  /// Messages per second to users by chance, from the start on; 0: none.
  public var rate = 0.0
  /// The share of these that are invitations to a call; the others are texts.
  public var callShare = 0.0
  public var faults = LocalPushFaults()

  /// A server without messages of its own, and without faults.
  public init(networks: [Network], control: SimulatorOptions.Address? = nil) {
    (self.networks, self.control) = (networks, control)
  }

  /// As above, with one network that has no name.
  public init(notifications: SimulatorOptions.Address? = nil, control: SimulatorOptions.Address? = nil) {
    self.init(networks: notifications.map { [Network(address: $0)] } ?? [], control: control)
  }

  /// The fault of the networks, and of whatever names one, as a sentence without a full stop; `nil`: there is none.
  var problem: String? {
    if networks.count > Self.maximumNetworks { return "local push has at most \(Self.maximumNetworks) networks" }
    if Set(networks.map(\.name)).count < networks.count { return "networks of local push have different names" }
    if !networks.allSatisfy({ Network.isPossible($0.name) }) {
      return "the name of a network has at most \(Self.longestName) bytes, and no control characters"
    }
    let receivers = planned.compactMap { planned -> String? in
      if case .network(let name) = planned.message.receiver { name } else { nil }
    }
    for name in faults.restarts.compactMap(\.outage.network) + receivers
    where !networks.contains(where: { $0.name == name }) {
      return "local push has no network '\(name)'"
    }
    return nil
  }
}

/// Faults of the server of local push.
public struct LocalPushFaults: Sendable, Equatable {
  /// A moment at which open connections fall silent: the server neither reads nor writes them any more, and does not close
  /// them.
  public struct Silence: Sendable, Equatable {
    /// From the start of the server.
    public var time: Duration
    /// The share of the open connections, from 0 to 1.
    public var share: Double

    public init(time: Duration, share: Double) { (self.time, self.share) = (time, share) }
  }

  /// A moment at which the server or a network ends, and comes back later.
  public struct Restart: Sendable, Equatable {
    /// From the start of the server.
    public var time: Duration
    public var outage: Outage

    public init(time: Duration, outage: Outage) { (self.time, self.outage) = (time, outage) }
    /// The whole server ends.
    public init(time: Duration, pause: Duration) { self.init(time: time, outage: Outage(pause: pause)) }
  }

  /// The time for which nobody listens at the addresses of the server, or at that of a network.
  public struct Outage: Sendable, Equatable {
    /// The fate of open connections.
    public enum Ending: String, Sendable, CaseIterable, Codable {
      /// They are closed.
      case closed
      /// They stay open, messages on them are ignored, and nothing is written: an access point that dies ends no connection.
      case silent
    }

    /// How long nobody listens.
    public var pause: Duration
    /// The name of the network; `nil`: the whole server, with its control channel.
    public var network: String?
    public var ending: Ending

    public init(pause: Duration, network: String? = nil, ending: Ending = .closed) {
      (self.pause, self.network, self.ending) = (pause, network, ending)
    }
  }

  /// The share of heartbeats that are not sent, from 0 to 1.
  public var lostHeartbeats = 0.0
  /// In ascending order of their times.
  public var silences: [Silence] = []
  public var restarts: [Restart] = []

  /// No fault.
  public init() {}
}

/// The channels of local push: a device has a connection for each.
enum LocalPushChannel: Sendable, Hashable {
  /// On the network of this place among those of the service.
  case notification(network: Int)
  case control

  /// `nil`: the channel is that of an app, on whichever network.
  var network: Int? {
    switch self {
    case .notification(let network): network
    case .control: nil
    }
  }
}

/// The requests that the server has for devices, by kind.
enum LocalPushKind: CaseIterable, Sendable { case text, invite, callAction, heartbeat, directory }
