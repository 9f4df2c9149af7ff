/// The run over time: its seconds, its phases, and the lives of its connections.
extension RunResult {
  /// The events of one second. `up` and `backlog` are values at its end; all other counts are of this second alone.
  public struct Sample: Sendable, Equatable, Codable {
    /// The second's beginning, in seconds since the run's start.
    public var tS = 0.0
    public var written = 0
    /// The number of writes; `nil` in documents, or with merged parts, from before they were counted.
    public var writes: Int?
    public var accepted = 0
    public var errors = 0
    /// The parts of `errors` with each status.
    public var errorsByStatus: [String: Int] = [:]
    /// Left out because they would have been late.
    public var skipped = 0
    /// Left out because the feedback service had listed their token; `nil` when that is not polled.
    public var pruned: Int?
    /// Tuples of the polls that were complete in this second; `nil` as `pruned`.
    public var feedbackTuples: Int?
    public var opened = 0
    public var closed = 0
    /// The parts of `closed` with each cause; causes that closed none are left out. `nil` as with `writes`.
    public var closedByCause: NamedCounts<ConnectionEnd>?
    public var up = 0
    /// Due notifications and resends that are not written yet; 0 without a schedule.
    public var backlog = 0
    /// The 99th percentile of the send lags of notifications written in this second.
    public var sendLagP99Us = 0
    /// The 99th percentile of the delay of the event loops' clocks in this second.
    public var loopLagP99Us = 0
    /// Milliseconds of this second in which an event loop was stalled (`stalls`); `nil` in older documents. Lags of
    /// such a second include the stall.
    public var stalledMs: Double?
    /// Cores of this process in use.
    public var cpu = 0.0
    /// Resident bytes of this process.
    public var rssBytes = 0
    package init() {}
  }

  /// Notifications written in each of many short bins of equal length, from the schedule's beginning on, for computing
  /// mean rates and their autocorrelation.
  public struct Bins: Sendable, Equatable, Codable {
    /// The first bin's beginning, in seconds since the run's start.
    public var fromS = 0.0
    /// 0.1, or twice that as often as a long run needs to keep their number within `most`.
    public var lengthS = 0.1
    /// Notifications; the last bin may be cut short by the run's end.
    public var written: [Int] = []

    package static let most = 36_000

    package init() {}
  }

  /// Stalls: times in which an event loop of the generator did not run, because the machine or the process was stopped.
  public struct Stalls: Sendable, Equatable, Codable {
    /// A stall, and its length in milliseconds.
    public struct Stall: Sendable, Equatable, Codable {
      /// The stall's beginning, in seconds since the run's start.
      public var tS: Double
      public var ms: Double
      package init(tS: Double, ms: Double) { (self.tS, self.ms) = (tS, ms) }
    }

    /// The shortest stall, in milliseconds.
    package static let shortestMs = 10.0
    /// Most that are listed; all are counted.
    package static let maximumListed = 1_000

    /// The number of stalls in the measured phase; the next two values are of that phase, too.
    public var count = 0
    /// Seconds in which at least one event loop was stalled.
    public var totalS = 0.0
    public var longestMs = 0.0
    /// Stalls of the whole run, in order.
    public var listed: [Stall] = []
    package init() {}

    /// Whether stalls affect the lags of a phase of the given length: in total more than a hundredth of it, or one
    /// longer than `tolerableMs`.
    public func spoils(_ seconds: Double) -> Bool { totalS > 0.01 * seconds || longestMs > Self.tolerableMs }

    /// Milliseconds that a single stall may take.
    package static let tolerableMs = 50.0
  }

  /// The counts of one phase.
  ///
  /// Fates of sendings belong to the phase in which they were written, however late they become known; so do `latency`,
  /// `batches` and `loss_window`. Other counts belong to the phase in which they occurred.
  public struct Phase: Sendable, Equatable, Codable {
    public var name = RunPhase.connect
    public var seconds = 0.0
    public var notifications = Notifications()
    public var sendings = Sendings()
    public var skipped = 0
    public var connections = Connections()
    /// What only the binary protocol has.
    public var binary = Binary()
    public var sendLagUs = LatencyHistogram(.microseconds)
    /// `nil` in documents of 0.1.0, like the next two.
    public var rates: Rates?
    public var latency: Latency?
    public var batches: Batches?
    package init() {}

    /// Figures of a protocol whose only answer is an error. In the document they are among the phase's other fields.
    public struct Binary: Sendable, Equatable {
      /// Error responses, by status.
      public var errorResponses: [String: Int] = [:]
      /// The number of notifications that each error response discarded; `nil` in documents of 0.1.0.
      public var lossWindow: LatencyHistogram?
      package init() {}
    }
  }

  /// Each connection over time, up to a limit.
  public struct Timeline: Sendable, Equatable, Codable {
    /// The state of a connection.
    public enum State: String, Sendable, Codable {
      /// From the attempt to connect to the end of the TLS handshake, or to its failure.
      case handshake
      /// From the end of the handshake until the connection's last byte is settled.
      case up
      /// Waiting after a failure.
      case backOff = "back-off"
    }

    /// A time span in which a connection was in one state.
    public struct Span: Sendable, Equatable, Codable {
      /// Its number in the run, from 0; kept when the connection is reopened.
      public var connection: Int
      public var state: State
      /// Seconds since the run's start, as in the series.
      public var fromS: Double
      public var toS: Double
      package init(connection: Int, _ state: State, fromS: Double, toS: Double) {
        self.connection = connection
        self.state = state
        self.fromS = fromS
        self.toS = toS
      }
    }

    /// Spans that are not kept, because there was no room.
    public var omitted = 0
    /// Spans in the order in which they began.
    public var spans: [Span] = []
    package init() {}
  }
}

extension RunResult {
  /// A phase by name; `nil` if the run did not reach it, or the document lacks it.
  public func phase(_ name: RunPhase) -> Phase? { phases.first { $0.name == name } }
}

extension RunResult.Sample {
  /// Fields missing from older documents are 0 or empty, or `nil` where 0 would look like a count.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    tS = try container.decode(Double.self, forKey: .tS)
    written = try container.decode(Int.self, forKey: .written)
    writes = try container.decodeIfPresent(Int.self, forKey: .writes)
    accepted = try container.decode(Int.self, forKey: .accepted)
    errors = try container.decode(Int.self, forKey: .errors)
    errorsByStatus = try container.decodeIfPresent([String: Int].self, forKey: .errorsByStatus) ?? [:]
    skipped = try container.decodeIfPresent(Int.self, forKey: .skipped) ?? 0
    pruned = try container.decodeIfPresent(Int.self, forKey: .pruned)
    feedbackTuples = try container.decodeIfPresent(Int.self, forKey: .feedbackTuples)
    opened = try container.decode(Int.self, forKey: .opened)
    closed = try container.decode(Int.self, forKey: .closed)
    closedByCause = try container.decodeIfPresent(NamedCounts<ConnectionEnd>.self, forKey: .closedByCause)
    up = try container.decode(Int.self, forKey: .up)
    backlog = try container.decodeIfPresent(Int.self, forKey: .backlog) ?? 0
    sendLagP99Us = try container.decode(Int.self, forKey: .sendLagP99Us)
    loopLagP99Us = try container.decodeIfPresent(Int.self, forKey: .loopLagP99Us) ?? 0
    stalledMs = try container.decodeIfPresent(Double.self, forKey: .stalledMs)
    cpu = try container.decode(Double.self, forKey: .cpu)
    rssBytes = try container.decodeIfPresent(Int.self, forKey: .rssBytes) ?? 0
  }
}
