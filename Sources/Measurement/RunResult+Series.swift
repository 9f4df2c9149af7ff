/// How a run went over time: its seconds, its phases, and the lives of its connections.
extension RunResult {
  /// What happened in one second. Counts are of this second alone, `up` and `backlog` are as it ended.
  public struct Sample: Sendable, Equatable, Codable {
    /// When it began, in seconds since the run's start.
    public var tS = 0.0
    public var written = 0
    /// Batches that they were written in; `nil` when the document, or that of a merged part, is from before they were
    /// counted.
    public var writes: Int?
    public var accepted = 0
    public var errors = 0
    /// The parts of `errors` with each status.
    public var errorsByStatus: [String: Int] = [:]
    /// Left out because they would have been late.
    public var skipped = 0
    public var opened = 0
    public var closed = 0
    /// The parts of `closed` with each cause; causes that closed none are left out. `nil` as with `writes`.
    public var closedByCause: [String: Int]?
    public var up = 0
    /// Notifications that are due, or are to be sent again, and are not written yet; 0 when nothing is due at a time.
    public var backlog = 0
    /// Of what was written in this second.
    public var sendLagP99Us = 0
    /// How late the event loops' clocks came in this second.
    public var loopLagP99Us = 0
    /// Cores of this process in use.
    public var cpu = 0.0
    /// Resident bytes of this process.
    public var rssBytes = 0
    public init() {}
  }

  /// The same counts for one phase: connect, warm-up, measured, drain.
  public struct Phase: Sendable, Equatable, Codable {
    public var name = ""
    public var seconds = 0.0
    public var notifications = Notifications()
    public var sendings = Sendings()
    public var skipped = 0
    public var connections = Connections()
    public var errorResponses: [String: Int] = [:]
    public var sendLagUs = LatencyHistogram(.microseconds)
    public init() {}
  }

  /// What each connection did when, as far as there was room for it.
  public struct Timeline: Sendable, Equatable, Codable {
    public enum State: String, Sendable, Codable {
      /// From the attempt to connect to the end of the TLS handshake, or to its failure.
      case handshake
      /// Until its last byte is settled.
      case up
      /// Waiting after a failure.
      case backOff = "back-off"
    }

    public struct Span: Sendable, Equatable, Codable {
      /// Its number in the run, from 0; it stays the same when the connection is made again.
      public var connection: Int
      public var state: State
      /// Seconds since the run's start, as in the series.
      public var fromS: Double
      public var toS: Double
      public init(connection: Int, _ state: State, fromS: Double, toS: Double) {
        self.connection = connection
        self.state = state
        self.fromS = fromS
        self.toS = toS
      }
    }

    /// Spans that are not kept, because there was no room.
    public var omitted = 0
    /// In the order in which they began.
    public var spans: [Span] = []
    public init() {}
  }
}

extension RunResult.Sample {
  /// What documents from before it was counted do not have is 0 or empty, or `nil` where that would be taken for a count.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    tS = try container.decode(Double.self, forKey: .tS)
    written = try container.decode(Int.self, forKey: .written)
    writes = try container.decodeIfPresent(Int.self, forKey: .writes)
    accepted = try container.decode(Int.self, forKey: .accepted)
    errors = try container.decode(Int.self, forKey: .errors)
    errorsByStatus = try container.decodeIfPresent([String: Int].self, forKey: .errorsByStatus) ?? [:]
    skipped = try container.decodeIfPresent(Int.self, forKey: .skipped) ?? 0
    opened = try container.decode(Int.self, forKey: .opened)
    closed = try container.decode(Int.self, forKey: .closed)
    closedByCause = try container.decodeIfPresent([String: Int].self, forKey: .closedByCause)
    up = try container.decode(Int.self, forKey: .up)
    backlog = try container.decodeIfPresent(Int.self, forKey: .backlog) ?? 0
    sendLagP99Us = try container.decode(Int.self, forKey: .sendLagP99Us)
    loopLagP99Us = try container.decodeIfPresent(Int.self, forKey: .loopLagP99Us) ?? 0
    cpu = try container.decode(Double.self, forKey: .cpu)
    rssBytes = try container.decodeIfPresent(Int.self, forKey: .rssBytes) ?? 0
  }
}

extension RunResult.Phase {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    name = try container.decode(String.self, forKey: .name)
    seconds = try container.decode(Double.self, forKey: .seconds)
    notifications = try container.decode(RunResult.Notifications.self, forKey: .notifications)
    sendings = try container.decode(RunResult.Sendings.self, forKey: .sendings)
    skipped = try container.decodeIfPresent(Int.self, forKey: .skipped) ?? 0
    connections = try container.decode(RunResult.Connections.self, forKey: .connections)
    errorResponses = try container.decode([String: Int].self, forKey: .errorResponses)
    sendLagUs = try container.decode(LatencyHistogram.self, forKey: .sendLagUs)
  }
}
