import NIOCore
import TLSTransport

/// The whole plan of a load: notifications, schedule, connections, and end. The defaults are those of `apnscope load`.
public struct LoadPlan: Sendable {
  /// The gateway's host and port.
  public struct Gateway: Sendable {
    /// A name or an address.
    public var host = "localhost"
    public var port = 2195
    /// The only addresses to connect to, as the host was resolved; `nil`: the host is looked up for each connection.
    public var addresses: GatewayAddresses?
    public init() {}
  }

  /// When each notification is due.
  public enum Pace: Sendable {
    /// Each as soon as the gateway takes it.
    case unlimited
    /// At the times of a schedule, or at random times with its rates (a Poisson process).
    case scheduled(Schedule, isPoisson: Bool)
    /// At the recorded times, divided by a speed.
    case recorded(Replay, speed: Double)
  }

  /// The treatment of notifications that could not be written in time.
  public enum Behind: String, Sendable, CaseIterable {
    /// Late notifications are sent; the lag counts from the due time.
    case catchUp = "catch-up"
    /// Notifications that are later than `lateness` are not sent, but counted.
    case skip
  }

  /// How notifications are combined into writes.
  public struct Batching: Sendable {
    /// The maximum number of plaintext bytes of a write; by default a full TLS record.
    public var bytes = 16_384
    /// The maximum number of notifications of a write.
    public var notifications = Int.max
    /// How long a batch waits to become full while the socket has unsent bytes of earlier writes.
    public var linger = Duration.milliseconds(5)
    public init() {}
  }

  /// The numbers of a whole stream that its segments divide among them.
  public struct Whole: Sendable, Equatable {
    /// The number of connections of all segments.
    public let connections: Int
    /// The number of notifications of all segments; `nil`: all that are due.
    public let count: Int?
  }

  /// The number of connections, their lifetimes, and how they are reopened.
  public struct Connections: Sendable {
    /// The number of connections, at least 1.
    public var count = 1
    /// The time over which connection starts are spread.
    public var stagger = Duration.milliseconds(100)
    /// The options of the sockets; sizes in bytes.
    public var socket = SocketOptions(sendBuffer: 65_536, noDelay: true, notSentLowWater: 16_384)
    /// The time after which a connection is closed gracefully and reopened; `nil`: none.
    public var lifetime: Duration?
    /// The number of notifications after which a connection is closed gracefully and reopened; `nil`: none.
    public var notifications: Int?
    /// The timeout of a TCP connect.
    public var connectTimeout = Duration.seconds(5)
    /// The timeout of a TLS handshake.
    public var handshakeTimeout = Duration.seconds(10)
    /// The longest wait after the first failed attempt; doubled with each further failure, up to `maximumBackoff`. Each
    /// wait is random, from half of the longest one to all of it.
    public var backoff = Duration.milliseconds(50)
    /// The longest wait after any failed attempt.
    public var maximumBackoff = Duration.seconds(5)
    /// The time without any useful connection after which the run is given up.
    public var giveUp = Duration.seconds(10)
    /// The same limit while no connection was ever made and attempts fail: a gateway that is started together with the
    /// run is ready sooner.
    public var patienceWithNobody = Duration.seconds(3)
    public init() {}
  }

  public var gateway = Gateway()
  public var workload = WorkloadPlan()
  /// The topics whose payloads `workload` lists, each of which goes over connections of its own, with a certificate for
  /// it: at most `maximumTopics`, and no more than connections. Empty: all payloads go over all connections.
  public var topics: [String] = []
  /// When the schedule begins; `nil`: as soon as the connections are made.
  public var start: PlannedStart?
  /// The plan of the whole stream, if this is one of its segments, which sends its own notifications when they are due
  /// by the whole's `pace`. `takeSegment()` sets it.
  public internal(set) var whole: Whole?
  /// Recorded notifications, which are sent instead of those of the workload.
  public var replay: Replay?
  /// When each notification is due.
  public var pace = Pace.unlimited
  /// The treatment of late notifications.
  public var behind = Behind.catchUp
  /// How late a notification may be before `skip` leaves it out.
  package static let lateness = Duration.milliseconds(100)
  /// How long a gateway may take to refuse a connection: one that the gateway closes within this time, before it has
  /// settled anything, was never up. Refusals come right after the handshake; the slowest answers that were usual, error
  /// responses, came after 800 ms.
  package static let settling = Duration.seconds(1)
  /// The total number of notifications; `nil`: all that are due until `duration` ends.
  public var count: Int?
  /// The length of the run without warm-up and drain.
  public var duration = Duration.seconds(60)
  /// The time at the beginning that is not measured.
  public var warmUp = Duration.zero
  /// The time limit of the drain: the last answers, and the resends they cause.
  public var drain = Duration.seconds(10)
  public var batching = Batching()
  public var connections = Connections()
  /// The number of event loops, each on a thread; never more than connections, and at least one for each topic.
  public var threads = System.coreCount
  /// Whether a known-bad notification is written last on each connection: its rejection proves that all before it were
  /// accepted.
  public var usesMarkers = true
  /// The timeout of the response to a marker.
  public var markerTimeout = Duration.seconds(5)
  /// The maximum number of sendings of a notification, after which it is abandoned.
  public var maximumAttempts = 100
  /// Whether TLS sessions are resumed on reconnect.
  public var resumesSessions = true
  /// Whether the gateway's certificate must be valid for the host.
  public var verifiesName = true
  /// Whether notifications left open by the end of a connection are resent, with the risk of duplicates.
  public var resendsUnknown = true
  /// How the feedback service is polled; `nil`: not at all. A replay has tokens of its own, and is not pruned.
  public var feedback: Feedback?
  /// Approximate bytes of memory for unsettled notifications of all connections. A connection whose share is full is
  /// closed with a marker, which settles its notifications, and reopened.
  public var unsettledMemory = 64 << 20
  /// The maximum number of connection spans in the result.
  public var timelineLimit = 10_000

  public init() {}
}
