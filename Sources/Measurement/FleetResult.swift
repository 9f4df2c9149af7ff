/// The books of a fleet of simulated devices: what they received, and what became of their connections.
///
/// Of a whole fleet or a segment of it; those of segments add up (`merging`). Written as JSON with names in snake case.
public struct FleetResult: Sendable, Equatable, Codable {
  /// The version of the document's schema.
  public var schema = 1
  /// The kind of the document, which distinguishes it from other ones.
  public var kind = "devices"
  /// The time of the start in UTC, RFC 3339.
  public var started = ""
  /// The time of the end in UTC, RFC 3339.
  public var ended = ""
  /// The machine and the software.
  public var environment = Environment()
  /// Names and values that the user gave the run; `nil` without any.
  public var labels: [String: String]?
  /// The options in effect, by their names.
  public var plan: [String: RunResult.PlanValue] = [:]
  /// The part of the fleet, as `2/4`; of a merged result all of its parts.
  public var segment = "1/1"
  /// Whether somebody ended the run before the end that its plan has.
  public var interrupted = false
  public var devices = Devices()
  public var connections = Connections()
  public var registrations = Registrations()
  public var notifications = Notifications()
  public var latency = Latency()
  /// By name; those without one first.
  public var campaigns: [Campaign] = []
  /// Counts that only local push has; `nil`: devices used the device channel.
  public var localPush: LocalPush?
  /// Errors of the gateway by name; a duplicate is one of them.
  public var faults: [String: Int] = [:]
  /// When the last notification came, in UTC, RFC 3339; `nil`: none did.
  public var lastReceived: String?
  /// Storms in the order of their times.
  public var storms: [Storm] = []
  public var timeline = Timeline()
  public var resources = Resources()
  /// Sentences without a full stop.
  public var warnings: [String] = []

  /// A result without counts.
  public init() {}

  /// Devices by what became of them.
  public struct Devices: Sendable, Equatable, Codable {
    /// The devices of the fleet, or of the segment.
    public var asked = 0
    /// The part of `asked` that was online at any time.
    public var everOnline = 0
    /// The part of `asked` that was online when the run ended.
    public var onlineAtEnd = 0
    /// Restores: a device has as many as it has later generations.
    public var restored = 0

    package init() {}
  }

  /// Connections: `attempted = opened + failed + abandoned`.
  public struct Connections: Sendable, Equatable, Codable {
    /// Why a connection ended.
    public enum Cause: String, Sendable, Hashable, CaseIterable {
      /// The device went, and said so.
      case left
      /// The device went without a word, by a reset.
      case reset
      /// A storm.
      case storm
      /// The device was restored.
      case restored
      /// The run ended.
      case end
      /// The gateway said that it closes the connection.
      case gatewayOffline = "gateway_offline"
      /// The gateway refused what the device needs.
      case refused
      /// The device heard nothing for too long, or a request was not acknowledged in time: over local push.
      case silence, unanswered
      /// The gateway closed it, or it was reset.
      case peerFin = "peer_fin"
      case peerRst = "peer_rst"
      /// The gateway's bytes are no messages.
      case message
      /// Unfinished messages took more than the limit.
      case memory
      /// TLS or the system failed.
      case error
    }

    /// Attempts to connect.
    public var attempted = 0
    /// The part of `attempted` that could be written to: TCP, and TLS if there is.
    public var opened = 0
    /// The part of `attempted` that failed, by reason.
    public var failed: [String: Int] = [:]
    /// The part of `attempted` that the end of the run cut off.
    public var abandoned = 0
    /// The ends of `opened` by cause.
    public var closed = NamedCounts<Cause>()

    package init() {}

    /// The sum of `failed`.
    public var failures: Int { failed.values.reduce(0, sum) }
  }

  /// Requests for tokens.
  public struct Registrations: Sendable, Equatable, Codable {
    public var asked = 0
    /// The part of `asked` that was answered with a token.
    public var tokens = 0
    /// The part of `tokens` that is not the token of the seed.
    public var wrongTokens = 0
    /// Tokens that the gateway replaced.
    public var tokenChanges = 0
    /// Refusals by reason, also of other requests than registrations.
    public var refused: [String: Int] = [:]

    package init() {}
  }

  /// Notifications, each counted once: `received = online + stored + repeated`.
  public struct Notifications: Sendable, Equatable, Codable {
    public var received = 0
    /// The part of `received` that the gateway sent as soon as it came.
    public var online = 0
    /// The part of `received` that waited at the gateway.
    public var stored = 0
    /// The part of `received` that the gateway sent on an earlier connection, too.
    public var repeated = 0
    /// Notifications whose sequence was not above the last one, which are in no other count.
    public var duplicates = 0
    /// Acknowledgements, each of one or more notifications.
    public var acknowledgements = 0
    /// Bytes of the payloads of `received`.
    public var payloadBytes = 0
    /// The part of `received` that tells a time after the one at which it came: two clocks differ, and latencies are wrong.
    public var early = 0

    package init() {}
  }

  /// Times in microseconds.
  public struct Latency: Sendable, Equatable, Codable {
    /// From when the gateway read a notification to when the device had it, by path.
    public var onlineUs = LatencyHistogram(.microseconds)
    public var storedUs = LatencyHistogram(.microseconds)
    public var repeatedUs = LatencyHistogram(.microseconds)
    /// From when a notification was due, and from when it was written, of those whose payloads tell it.
    public var fromDue = Paths()
    public var fromWritten = Paths()
    /// From the attempt to connect to when the connection could be written to.
    public var connectUs = LatencyHistogram(.microseconds)
    /// From the attempt to connect to when the device said that it is online.
    public var readyUs = LatencyHistogram(.microseconds)

    package init() {}
  }

  /// Times to when the device had a notification in microseconds, by path.
  public struct Paths: Sendable, Equatable, Codable {
    public var onlineUs = LatencyHistogram(.microseconds)
    public var storedUs = LatencyHistogram(.microseconds)
    public var repeatedUs = LatencyHistogram(.microseconds)

    package init() {}
  }

  /// The notifications that belong together, by the name in their payloads: when the devices had them.
  public struct Campaign: Sendable, Equatable, Codable {
    /// The name; `nil`: those whose payloads have none.
    public var name: String?
    /// Notifications that were received.
    public var received = 0
    /// The part of `received` that the gateway sent as soon as it came: their devices were connected.
    public var online = 0
    /// The part of `received` whose payload tells when it was due.
    public var dated = 0
    /// UNIX nanoseconds of the earliest time at which one was due; `nil`: none tells.
    public var firstDueNs: Int64?
    /// UNIX nanoseconds of the earliest time at which the gateway read one.
    public var firstSentNs: Int64?
    /// UNIX nanoseconds at which the last one of `online` came, and of `received`; `nil`: none did.
    public var lastOnlineNs: Int64?
    public var lastNs: Int64?

    package init(name: String?) { self.name = name }

    /// The beginning, in UNIX nanoseconds: when the first one was due, if all tell, or else when the gateway read it.
    public var beganNs: Int64? { dated == received ? firstDueNs : firstSentNs }
    /// Seconds from the beginning to when the last device that was connected had its notification.
    public var lastOnlineS: Double? { seconds(to: lastOnlineNs) }
    /// Seconds from the beginning to when the last device had its notification, of those that had one at all.
    public var lastS: Double? { seconds(to: lastNs) }

    private func seconds(to end: Int64?) -> Double? {
      guard let end, let beganNs else { return nil }
      return (Double(end) - Double(beganNs)) / 1e9
    }
  }

  /// The course of a storm.
  public struct Storm: Sendable, Equatable, Codable {
    /// The only network that it hit; `nil`: it hit all devices.
    public var network: String?
    /// Seconds from the start of the run to the storm.
    public var atS: Double
    /// The time within which devices came back, in seconds.
    public var withinS: Double
    /// Devices that lost their connection.
    public var lost = 0
    /// The part of `lost` that was online again before the next storm.
    public var back = 0
    /// Seconds from the storm to when the last one of `back` was online; `nil`: none was.
    public var lastBackS: Double?
    /// Seconds from the storm to the last notification that had waited for one of `back` when it came back; `nil`: none had.
    public var lastStoredS: Double?
    /// Connections opened in each of the first seconds after the storm, up to the last one in which any was.
    public var openedPerS: [Int] = []
    /// The highest of these.
    public var peakOpenedPerS = 0

    package init(atS: Double, withinS: Double, network: String? = nil) {
      (self.atS, self.withinS, self.network) = (atS, withinS, network)
    }
  }

  /// The course of the run.
  public struct Timeline: Sendable, Equatable, Codable {
    /// The time of a sample in seconds, a power of two.
    public var periodS = 1
    /// In the order of time.
    public var samples: [Sample] = []

    package init() {}
  }

  /// The events of one period.
  public struct Sample: Sendable, Equatable, Codable {
    /// UNIX seconds of its beginning, a multiple of the period.
    public var time: Int
    /// Seconds that devices were online, all together, looked at once a second.
    public var onlineS = 0
    public var opened = 0
    public var received = 0

    package init(time: Int, onlineS: Int = 0, opened: Int = 0, received: Int = 0) {
      (self.time, self.onlineS, self.opened, self.received) = (time, onlineS, opened, received)
    }
  }

  /// Resources that the process used.
  public struct Resources: Sendable, Equatable, Codable {
    public var cpuUserS = 0.0
    public var cpuSystemS = 0.0
    /// Most resident memory in bytes; of a merged result that of all parts.
    public var maxRssBytes = 0

    package init() {}
  }
}
