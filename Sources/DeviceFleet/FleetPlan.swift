import DeviceProtocol
import Measurement
import NIOCore

/// A fleet of simulated devices: which ones, where they connect, and how they behave.
public struct FleetPlan: Sendable {
  /// The reason why a plan cannot be carried out.
  public struct PlanError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A sentence without a full stop.
    public let description: String

    init(_ description: String) { self.description = description }
  }

  /// Where the gateway's device channel listens.
  public struct Gateway: Sendable {
    /// The name that the certificate has to be for; resolved unless there are addresses.
    public var host: String
    public var port: Int
    /// The addresses of the name; empty: it is resolved for each connection.
    package var addresses: [SocketAddress] = []

    public init(host: String, port: Int) { (self.host, self.port) = (host, port) }
  }

  /// How devices connect.
  public struct Connections: Sendable, Equatable {
    /// New devices per second of the whole fleet at the beginning; above 0.
    public var rate = 1_000.0
    /// The longest time of a TCP connect, and of a TLS handshake.
    public var connectTimeout = Duration.seconds(10)
    public var handshakeTimeout = Duration.seconds(10)
    /// The wait after a first failure; it doubles with each further one, and varies by half.
    public var backoff = Duration.milliseconds(250)
    /// The longest wait.
    public var maximumBackoff = Duration.seconds(30)
    /// Attempts that are made at a time; further devices wait for their turn. It bounds what a storm asks of the gateway's
    /// queue of connections, and of this process.
    public var maximumConnecting = 512

    init() {}
  }

  /// How devices acknowledge.
  public struct Acknowledging: Sendable, Equatable {
    /// From a notification to the acknowledgement, which is of all that came until then.
    public var delay = Duration.zero
    /// The share of devices that never acknowledge.
    public var neverShare = 0.0

    init() {}
  }

  /// Bounds of what grows with the gateway's answers.
  public struct Limits: Sendable, Equatable {
    /// The longest message in bytes; a longer one ends its connection.
    public var longestMessage = 64 << 10
    /// Bytes of unfinished messages of all devices; a connection that exceeds them is ended.
    public var bufferedBytes = 64 << 20
    /// Different reasons of failures that are counted by name; further ones count as "other".
    public var reasons = 32
    /// Seconds after a storm whose connections are counted by second.
    public var stormSeconds = 600
    /// Campaigns that are counted by name; further ones count as "other".
    public var campaigns = 100
    /// Samples over time; when there are more, each is of twice the time.
    public var samples = 10_000

    init() {}
  }

  public var gateway: Gateway
  /// How devices use local push, whose notification channel `gateway` then is; `nil`: they use the device channel.
  public var localPush: LocalPushPlan?
  /// The number of the first device in its population.
  public var first: UInt64 = 0
  /// Devices of the whole fleet, 1 to 10,000,000.
  public var count = 1
  /// The part of the fleet that is run, from 0 and below `segments`: every `segments`-th device.
  public var segment = 0
  /// The number of parts.
  public var segments = 1
  /// The topics of the apps that each device has, 1 to 64.
  public var topics = ["com.example.app"]
  /// The environment whose tokens are asked for.
  public var environment = DeviceMessage.Registration.Environment.production
  /// The language of the users, as a BCP 47 tag; empty: none is told.
  public var language = ""
  /// The seed of everything that chance decides.
  public var seed: UInt64 = 1
  /// The seed of the population's tokens, which a token is checked against; `nil`: any token is right.
  public var tokenSeed: UInt64?
  /// Whether the gateway's certificate has to be for its host.
  public var verifiesName = true
  public var connections = Connections()
  public var acknowledging = Acknowledging()
  public var presence = PresencePlan()
  /// When the fleet ends; `nil`: when it is stopped.
  public var duration: Duration?
  /// It ends when a device has been online, and for this time no notification came and no connection began or ended.
  public var untilIdle: Duration?
  /// It ends when for this time no device could be online from the beginning on.
  public var giveUp = Duration.seconds(10)
  public var limits = Limits()
  /// Event loops.
  public var threads = 1

  /// Makes the plan of one device.
  public init(gateway: Gateway) { self.gateway = gateway }

  var numbers: SegmentNumbers { SegmentNumbers(segment: segment, segments: segments) }
  /// Devices of this segment.
  package var devices: Int { numbers.count(among: count) }

  var rules: FleetRules {
    var rules = FleetRules(topics: topics)
    (rules.environment, rules.language, rules.tokenSeed) = (environment, language, tokenSeed)
    rules.longestMessage = limits.longestMessage
    return rules
  }

  /// When the device of this place in the whole fleet comes first, in nanoseconds since the start.
  func start(of place: Int) -> Int64 { Int64(min(Double(place) / connections.rate * 1e9, Double(Int64.max / 4))) }

  /// Throws what is wrong with the plan.
  package func check() throws(PlanError) {
    guard (1...10_000_000).contains(count) else { throw PlanError("a fleet has 1 to 10M devices") }
    guard (1...1_000_000).contains(segments), (0..<segments).contains(segment) else {
      throw PlanError("a segment is one of 1 to 1M")
    }
    guard devices > 0 else { throw PlanError("\(count) devices cannot be divided among \(segments) segments") }
    guard first <= UInt64(Int64.max) - UInt64(count) else { throw PlanError("the devices' numbers are too large") }
    guard (1...FleetRules.mostApps).contains(topics.count), Set(topics).count == topics.count,
      topics.allSatisfy({ !$0.isEmpty && $0.utf8.count <= 1_024 })
    else { throw PlanError("a device has 1 to \(FleetRules.mostApps) different topics") }
    guard localPush?.isPossible ?? true else {
      throw PlanError("networks have different names, their shares are 100% at most, and times are at least 1 ms")
    }
    guard localPush == nil || presence.restoring == nil else {
      throw PlanError("users of local push have no tokens, so a restored device would be the same one")
    }
    guard connections.rate > 0, connections.rate.isFinite else { throw PlanError("devices have to come at some rate") }
    guard connections.maximumConnecting > 0, threads > 0 else { throw PlanError("there is nothing to connect with") }
    let shares =
      [acknowledging.neverShare, presence.lowPowerShare, presence.resetShare] + presence.absences.map(\.share)
    guard shares.allSatisfy({ (0...1).contains($0) }) else { throw PlanError("a share is from 0 to 1") }
    let storms = presence.storms
    guard storms.count <= 1_000, presence.absences.count <= 1_000 else {
      throw PlanError("a fleet has at most 1,000 storms and 1,000 time spans")
    }
    guard zip(storms, storms.dropFirst()).allSatisfy({ $0.time < $1.time }) else {
      throw PlanError("two storms have the same time")
    }
    let networks = localPush?.networks.map(\.name) ?? []
    for case let name? in storms.map(\.network) where !networks.contains(name) {
      throw PlanError("a storm hits the network '\(name)', which devices do not join")
    }
  }
}
