import NIOCore
import TLSTransport

/// A load in full: what is sent, when, over which connections, and when it ends. All defaults are those of the command.
public struct LoadPlan: Sendable {
  public struct Gateway: Sendable {
    public var host = "localhost"
    public var port = 2195
    /// What the host was looked up to be: nothing else is connected to. `nil`: it is looked up for each connection.
    public var addresses: GatewayAddresses?
    public init() {}
  }

  /// When each notification is due.
  public enum Pace: Sendable {
    /// As fast as the gateway takes them.
    case unlimited
    case scheduled(Schedule, isPoisson: Bool)
    /// As a trace has recorded them, so many times as fast.
    case recorded(Replay, speed: Double)
  }

  /// What becomes of notifications that could not be written when they were due.
  public enum Behind: String, Sendable, CaseIterable {
    /// They are sent late; their lag counts from when they were due.
    case catchUp = "catch-up"
    /// Those that are later than `lateness` are not sent, but counted.
    case skip
  }

  public struct Batching: Sendable {
    /// Most plaintext bytes of a write: one full TLS record.
    public var bytes = 16_384
    /// Most notifications of a write.
    public var notifications = Int.max
    /// How long a batch waits to become full while the socket has something of ours unsent.
    public var linger = Duration.milliseconds(5)
    public init() {}
  }

  public struct Connections: Sendable {
    public var count = 1
    /// The starts are spread over so long.
    public var stagger = Duration.milliseconds(100)
    public var socket = SocketOptions(sendBuffer: 65_536, noDelay: true, notSentLowWater: 16_384)
    /// A connection is ended in good order after so long, or so many notifications, and made again.
    public var lifetime: Duration?
    public var notifications: Int?
    /// An attempt fails when TCP is not connected, or TLS not agreed on, after so long.
    public var connectTimeout = Duration.seconds(5)
    public var handshakeTimeout = Duration.seconds(10)
    /// Wait after a failed attempt; doubled with each further one up to the second, then half of it by chance.
    public var backoff = Duration.milliseconds(50)
    public var maximumBackoff = Duration.seconds(5)
    /// The run ends when no connection could be made, or was of use, for so long.
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
  public static let lateness = Duration.milliseconds(100)
  /// Notifications in all; `nil`: as many as are due until `duration` ends.
  public var count: Int?
  public var duration = Duration.seconds(60)
  public var warmUp = Duration.zero
  /// How long the end may take: the last answers, and what they leave to be sent again.
  public var drain = Duration.seconds(10)
  public var batching = Batching()
  public var connections = Connections()
  public var threads = System.coreCount
  /// A known-bad notification ends each connection's life, so that its rejection proves all before it accepted.
  public var usesMarkers = true
  /// A marker's answer is waited for so long.
  public var markerTimeout = Duration.seconds(5)
  /// How often a notification may be written before it is given up.
  public var maximumAttempts = 100
  /// A TLS session is resumed when its connection is made again.
  public var resumesSessions = true
  /// The gateway's certificate must be for its host.
  public var verifiesName = true
  /// What a connection's end left open is sent again, with the risk of a duplicate.
  public var resendsUnknown = true
  /// Bytes of memory, about, for what was written and is not settled, of all connections together. One whose share is full
  /// is ended with a marker, which settles it, and made again.
  public var unsettledMemory = 64 << 20
  /// Most spans of connections' lives that the result tells of.
  public var timelineLimit = 10_000

  public init() {}
}
