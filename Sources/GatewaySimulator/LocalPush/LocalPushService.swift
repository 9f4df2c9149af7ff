import DeviceProtocol
import TLSTransport

/// The provider's own server for devices without internet: local push connectivity.
///
/// `Documentation/local-push.md` has the protocol, and says what of it is an assumption.
public struct LocalPushService: Sendable {
  /// A message that the server has for a user at a time of the run.
  public struct Planned: Sendable, Equatable {
    /// From the start of the server.
    public var time: Duration
    /// A text, an invitation to a call, or an action in a call.
    public var content: LocalPushMessage.Content

    public init(time: Duration, content: LocalPushMessage.Content) { (self.time, self.content) = (time, content) }
  }

  /// Where the notification channel of the extension, and the control channel of the app, are. Either may be left out.
  public var notifications: SimulatorOptions.Address?
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
  public init(notifications: SimulatorOptions.Address? = nil, control: SimulatorOptions.Address? = nil) {
    (self.notifications, self.control) = (notifications, control)
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

  /// A moment at which the server ends, and comes back later.
  public struct Restart: Sendable, Equatable {
    /// From the start of the server.
    public var time: Duration
    /// How long nobody listens.
    public var pause: Duration

    public init(time: Duration, pause: Duration) { (self.time, self.pause) = (time, pause) }
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
enum LocalPushChannel: String, Sendable { case notification, control }

/// The requests that the server has for devices, by kind.
enum LocalPushKind: CaseIterable, Sendable { case text, invite, callAction, heartbeat, directory }
