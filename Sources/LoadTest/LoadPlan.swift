import NIOCore
import TLSTransport

/// A load in full: the notifications, the schedule, the connections, and the end. All defaults are those of the
/// command.
public struct LoadPlan: Sendable {
  /// The gateway's host and port.
  public struct Gateway: Sendable {
    public var host = "localhost"
    public var port = 2195
    /// The addresses that the host was resolved to: nothing else is connected to. `nil`: it is looked up for each connection.
    public var addresses: GatewayAddresses?
    public init() {}
  }

  /// When each notification is due.
  public enum Pace: Sendable {
    /// As fast as the gateway takes them.
    case unlimited
    case scheduled(Schedule, isPoisson: Bool)
    /// At the recorded times, divided by a speed.
    case recorded(Replay, speed: Double)
  }

  /// The treatment of notifications that could not be written in time.
  public enum Behind: String, Sendable, CaseIterable {
    /// They are sent late; their lag counts from when they were due.
    case catchUp = "catch-up"
    /// Those that are later than `lateness` are not sent, but counted.
    case skip
  }

  /// How notifications are gathered into writes.
  public struct Batching: Sendable {
    /// Most plaintext bytes of a write: one full TLS record.
    public var bytes = 16_384
    /// Most notifications of a write.
    public var notifications = Int.max
    /// How long a batch waits to become full while the socket has something of ours unsent.
    public var linger = Duration.milliseconds(5)
    public init() {}
  }

  /// How many connections there are, how long they live, and how they are made again.
  public struct Connections: Sendable {
    public var count = 1
    /// The time over which connection starts are spread.
    public var stagger = Duration.milliseconds(100)
    public var socket = SocketOptions(sendBuffer: 65_536, noDelay: true, notSentLowWater: 16_384)
    /// The time, or the number of notifications, after which a connection is closed gracefully and reopened.
    public var lifetime: Duration?
    public var notifications: Int?
    /// The timeouts of TCP connects and TLS handshakes.
    public var connectTimeout = Duration.seconds(5)
    public var handshakeTimeout = Duration.seconds(10)
    /// Wait after a failed attempt; doubled with each further one up to the second, then half of it by chance.
    public var backoff = Duration.milliseconds(50)
    public var maximumBackoff = Duration.seconds(5)
    /// The time without any useful connection after which the run ends.
    public var giveUp = Duration.seconds(10)
    /// The same while none was ever made and attempts fail; a gateway that is started beside the run needs less.
    public var patienceWithNobody = Duration.seconds(3)
    public init() {}
  }

  public var gateway = Gateway()
  public var workload = WorkloadPlan()
  /// Recorded notifications, which are sent instead of those of the workload.
  public var replay: Replay?
  public var pace = Pace.unlimited
  public var behind = Behind.catchUp
  /// How late a notification may be before `skip` leaves it out.
  package static let lateness = Duration.milliseconds(100)
  /// How long a gateway may take to refuse a connection: one that the gateway closes within this time, before it has
  /// settled anything, was never up. Refusals come right after the handshake; the slowest answers that were usual, error
  /// responses, came after 800 ms.
  package static let settling = Duration.seconds(1)
  /// Notifications in all; `nil`: as many as are due until `duration` ends.
  public var count: Int?
  public var duration = Duration.seconds(60)
  public var warmUp = Duration.zero
  /// The time limit of the drain: the last answers, and the resends they cause.
  public var drain = Duration.seconds(10)
  public var batching = Batching()
  public var connections = Connections()
  public var threads = System.coreCount
  /// A known-bad notification ends each connection's life, so that its rejection proves all before it accepted.
  public var usesMarkers = true
  /// The timeout of the answer to a marker.
  public var markerTimeout = Duration.seconds(5)
  /// How often a notification may be written before it is abandoned.
  public var maximumAttempts = 100
  /// Whether TLS sessions are resumed on reconnect.
  public var resumesSessions = true
  /// The gateway's certificate must be for its host.
  public var verifiesName = true
  /// Whether notifications left open by the end of a connection are resent, with the risk of duplicates.
  public var resendsUnknown = true
  /// Approximate memory for unsettled notifications of all connections. A connection whose share is full is closed with
  /// a marker, which settles it, and reopened.
  public var unsettledMemory = 64 << 20
  /// Maximum number of connection spans in the result.
  public var timelineLimit = 10_000

  public init() {}
}
