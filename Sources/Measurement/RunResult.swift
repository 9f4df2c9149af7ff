/// The result of a load run: the document that `apnscope load --output` writes.
///
/// `notifications` counts each distinct notification once, by its final fate; `sendings` counts each time that one was
/// written. Names are the contract's; durations end in their unit.
public struct RunResult: Sendable, Equatable, Codable {
  /// The version of the document's schema.
  public var schema = 1
  /// The kind of the document, which distinguishes it from other ones.
  public var kind = "load"
  /// The method by which its figures were computed: `currentMeasure`, or `nil` in documents of 0.1.0, whose
  /// `accepted_per_s` is of the whole run's shares, whose latencies cover the whole run, and whose send lag excludes
  /// notifications that were never sent.
  public var measuredBy: Int?
  /// The time of the start in UTC, RFC 3339.
  public var started = ""
  /// The planned and the actual start of the schedule; `nil` when it began as soon as the connections were made.
  public var start: Start?
  /// The generator's machine and software.
  public var environment = Environment()
  /// The user's labels: values by name (`RunLabel`); `nil` without any.
  public var labels: [String: String]?
  /// The effective plan: every setting by its name in a plan file.
  public var plan: [String: PlanValue] = [:]
  /// The replayed recording; absent for synthetic notifications.
  public var replay: Replay?
  /// The outcome of the run, its limit, and its checks.
  public var verdict = Verdict()
  /// The phase in which the run was interrupted; absent if it completed.
  public var interrupted: Interruption?
  /// How far the parts of a merged result overlap in time; absent in a single run's result.
  public var merged: Merged?
  /// The runs that a merged result is of, by segment; `nil` in a single run's result, and in documents from before they
  /// were listed.
  public var parts: [Segment]?
  /// The length of the measured phase in seconds, by which rates are divided; 0 if the run did not reach it, or if the
  /// parts of a merged result did not run together.
  public var measuredS = 0.0
  /// Counts of distinct notifications in the whole run.
  public var notifications = Notifications()
  /// Counts of sendings in the whole run.
  public var sendings = Sendings()
  /// Counts of notifications that were due but never sent, in the whole run.
  public var schedule = Schedule()
  /// The counts of each topic, in the order of the plan; `nil` when all notifications went over all connections.
  public var topics: [Topic]?
  /// The rates of the measured phase.
  public var rates = Rates()
  /// What only the binary protocol has.
  public var binary = Binary()
  /// Polls of the feedback service and listed tokens, in the whole run; `nil` when the service was not to be polled.
  public var feedback: Feedback?
  /// Attempts, connections and how they ended, in the whole run.
  public var connections = Connections()
  /// The latencies of the measured phase.
  public var latency = Latency()
  /// The sizes of writes in the measured phase.
  public var batches = Batches()
  /// The run second by second.
  public var series: [Sample] = []
  /// `nil` in documents from before there were bins, and of merged parts, whose clocks are not that near to each other.
  public var bins: Bins?
  /// The counts and figures of each phase that the run reached.
  public var phases: [Phase] = []
  /// Stalls of the generator; `nil` in older documents.
  public var stalls: Stalls?
  /// The times at which each connection was up, as far as there was room.
  public var timeline = Timeline()
  /// The processor time and memory of the generator.
  public var resources = Resources()
  /// Reasons why figures may be misleading, as sentences.
  public var warnings: [String] = []

  /// The way in which this apnscope computes the figures: each of the phase in which it was written.
  public static let currentMeasure = 2

  /// A result without counts.
  public init() {}

  /// The recorded notifications that were there to be sent.
  public struct Replay: Sendable, Equatable, Codable {
    /// The number of recorded notifications that could be sent.
    public var notifications = 0
    /// Seconds from the first to the last, as recorded.
    public var lengthS = 0.0
    /// Records other than notifications.
    public var skippedRecords = 0
    package init() {}
  }

  /// The point at which a run was interrupted.
  public struct Interruption: Sendable, Equatable, Codable {
    /// The cause, where it is known.
    public enum Cause: String, Sendable, Codable {
      /// The process was killed: these are its last saved books; later events are unknown.
      case lost
      /// A threshold with `,abort` did not hold.
      case threshold
    }

    /// The current phase. Drain occurs only for lost runs.
    public var phase: RunPhase
    /// Seconds of that phase.
    public var afterS: Double
    /// Left out when an end was asked for.
    public var cause: Cause?

    package init(phase: RunPhase, afterS: Double, cause: Cause? = nil) {
      self.phase = phase
      self.afterS = afterS
      self.cause = cause
    }
  }

  /// Distinct notifications by their fate, however often each was sent.
  public struct Notifications: Sendable, Equatable, Codable {
    /// All notifications: the sum of accepted, rejected, unknown, abandoned and pruned ones.
    public var generated = 0
    /// Notifications that were accepted in the end.
    public var accepted = 0
    /// Notifications that were rejected in the end.
    public var rejected = 0
    /// Notifications that were written and whose fate is unknown.
    public var unknown = 0
    /// Notifications that were given up at the limit of attempts or at the end of the run.
    public var abandoned = 0
    /// Notifications that were left out because the feedback service had listed their token; `nil` when that is not
    /// polled.
    public var pruned: Int?
    /// The part of `unknown`, `abandoned` and `pruned` that was written and may have been accepted, because the fate of
    /// the last sending is unknown. 0 in older documents.
    public var unproven = 0
    package init() {}
  }

  /// Sendings by their fate; a notification that is sent again counts again.
  public struct Sendings: Sendable, Equatable, Codable {
    /// Notifications that were handed to the transport, counted each time; without markers.
    public var written = 0
    /// The part of `written` that is a second or later sending of a notification.
    public var resent = 0
    /// The part of `written` that is proven accepted.
    public var accepted = 0
    /// The part of `written` that an error response with a status other than 10 names.
    public var rejected = 0
    /// The part of `written` that was discarded after an error on the connection.
    public var discarded = 0
    /// The part of `written` whose fate is unknown.
    public var unknown = 0
    /// What only the binary protocol has.
    public var binary = Binary()
    package init() {}

    /// Counts of a protocol that does not acknowledge. In the document they are among the other counts of sendings.
    public struct Binary: Sendable, Equatable {
      /// Notifications that are invalid on purpose, so that the error response proves the earlier ones accepted; in no
      /// other count.
      public var markers = 0
      /// Markers that an error response named; others were discarded after an error, or got no answer. `nil` in older
      /// documents.
      public var markersAnswered: Int?
      package init() {}
    }
  }

  /// Notifications that the schedule asked for and that were not sent.
  public struct Schedule: Sendable, Equatable, Codable {
    /// Notifications that were due and skipped because they were late (`--behind skip`); in no other count.
    public var skipped = 0
    /// Notifications that were due but not sent at the end of the run, because it was late; in no other count.
    public var unsent = 0
    /// Both; send lag counts them until they were abandoned, which is less than the lag they would have had.
    public var neverSent: Int { skipped + unsent }
    package init() {}
  }

  /// Rates of the measured phase's own sendings, over its length; in `phases`, of each phase's.
  public struct Rates: Sendable, Equatable, Codable {
    /// The time over which `accepted_per_s` is.
    public enum Basis: String, Sendable, Codable {
      case measured
      /// The gateway was so far behind at the end that accepted and sent notifications differ.
      case measuredAndDrain = "measured_and_drain"
    }

    /// `nil`, like the next two, if there is no rate: nothing was measured, or segments did not run together.
    public var writtenPerS: Double?
    /// Written in the phase and proven accepted, then or later.
    public var acceptedPerS: Double?
    /// Bytes of plaintext per second.
    public var writtenBytesPerS: Double?
    /// `nil` in documents of 0.1.0, and in `phases`.
    public var basis: Basis?
    package init() {}
  }

  /// Figures of a protocol whose only answer is an error. In the document they are among the result's other fields.
  public struct Binary: Sendable, Equatable {
    /// Error responses in the whole run, by status.
    public var errorResponses: [String: Int] = [:]
    /// Responses and bytes of the gateway that settle no notification, in the whole run.
    public var answers = Answers()
    /// The number of notifications that each error response discarded, in the measured phase.
    public var lossWindow = LatencyHistogram(.count)
    package init() {}
  }

  /// Answers of gateways that settle nothing.
  public struct Answers: Sendable, Equatable, Codable {
    /// Error responses that name nothing the connection has sent; `error_responses` has them too.
    public var unresolved = 0
    /// Bytes that are not an error response.
    public var strayBytes = 0
    package init() {}
  }

  /// Counts of connections.
  public struct Connections: Sendable, Equatable, Codable {
    /// The connections that the plan asks for; `nil` in documents from before they were counted.
    public var asked: Int?
    /// The part of `asked` that was up at any time: the gateway settled a notification on it, or it stayed open for
    /// more than a second or until this side closed it. In documents without `refused` every opened connection counts.
    /// `nil` in documents from before they were counted.
    public var everUp: Int?
    /// Attempts to connect.
    public var attempted = 0
    /// The part of `attempted` that succeeded, including the TLS handshake.
    public var opened = 0
    /// The part of `opened` that resumed a TLS session.
    public var resumed = 0
    /// The part of `attempted` that failed.
    public var failed = 0
    /// Connections that the gateway closed within a second and before it had settled anything on them; a part of
    /// `opened` and of `closed`. `nil` in documents from before they were counted.
    public var refused: Int?
    /// Connections that ended, by cause.
    public var closed: NamedCounts<ConnectionEnd> = [:]
    /// Handshakes by TLS version and cipher suite: "TLS 1.2 ECDHE-ECDSA-AES128-GCM-SHA256"; `nil` in documents from
    /// before they were counted.
    public var suites: [String: Int]?
    /// The failed attempts by their reasons, in the words of the system or of OpenSSL; `nil` in documents from before
    /// they were counted.
    public var failures: [String: Int]?
    package init() {}
  }

  /// The sizes of writes, and why each was made.
  public struct Batches: Sendable, Equatable, Codable {
    /// The number of notifications in each write.
    public var notifications = LatencyHistogram(.count)
    /// The number of bytes in each write.
    public var bytes = LatencyHistogram(.bytes)
    /// The number of writes, by the reason why each was made.
    public var flushReasons: NamedCounts<FlushReason> = [:]
    package init() {}
  }

  /// The generator's own use of the machine.
  public struct Resources: Sendable, Equatable, Codable {
    /// Processor time in user mode, in seconds.
    public var cpuUserS = 0.0
    /// Processor time in the kernel, in seconds.
    public var cpuSystemS = 0.0
    /// The most resident memory, in bytes.
    public var maxRssBytes = 0
    /// The delays of the event loops' clocks, weighted by the time they cover: a stall of 5 ms counts as 5, 4, 3, 2 and
    /// 1. In documents of 0.1.0 each tick counts once.
    public var loopLagUs = LatencyHistogram(.microseconds)
    package init() {}
  }

  /// The outcome of the run, and the reasons, invariants and thresholds that it rests on.
  public struct Verdict: Sendable, Equatable, Codable {
    /// The limit of the rate.
    public enum Limit: String, Sendable, Codable { case generator, gateway, schedule }

    /// A condition of the caller's, and the measured value.
    public struct Threshold: Sendable, Equatable, Codable {
      /// The expression as written by the user.
      public var expression: String
      /// Left out when nothing was measured.
      public var value: Double?
      /// Whether the condition holds.
      public var passed: Bool
      /// Why the condition cannot be evaluated, or that it ended the run, which fails it; absent otherwise.
      public var reason: String?
      package init(expression: String, value: Double?, passed: Bool, reason: String? = nil) {
        self.expression = expression
        self.value = value
        self.passed = passed
        self.reason = reason
      }
    }

    /// A law that the counts must obey.
    public struct Invariant: Sendable, Equatable, Codable {
      /// The equation, such as `generated = accepted + rejected + unknown + abandoned`.
      public var name: String
      /// Whether the equation holds.
      public var holds: Bool
      /// The equation with the numbers.
      public var detail: String
      package init(_ name: String, holds: Bool, detail: String) {
        self.name = name
        self.holds = holds
        self.detail = detail
      }
    }

    /// What a run has proven.
    public enum Outcome: String, Sendable, Codable {
      /// Everything that was due was sent, and the fate of each notification is known.
      case proven
      /// Something is open: `reasons` says what.
      case unproven
      /// Nothing was accepted, the run was abandoned early, or not all connections came up.
      case failed
    }

    /// `nil` in documents that lack an outcome.
    public var outcome: Outcome?
    /// Reasons for the outcome, as sentences without a full stop; also among the warnings of the result.
    public var reasons: [String]?
    /// The side that kept the rate from being higher.
    public var limitedBy = Limit.schedule
    /// The conditions of the user.
    public var thresholds: [Threshold] = []
    /// The equations that the counts must obey.
    public var invariants: [Invariant] = []
    package init() {}
  }

  /// A setting's value: text, number, flag, or a list of texts.
  public enum PlanValue: Sendable, Equatable, Codable {
    case text(String)
    case number(Double)
    case flag(Bool)
    case list([String])

    public init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let list = try? container.decode([String].self) {
        self = .list(list)
      } else {
        self = .text(try container.decode(String.self))
      }
    }

    public func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .text(let text): try container.encode(text)
      case .number(let number): try container.encode(number)
      case .flag(let flag): try container.encode(flag)
      case .list(let list): try container.encode(list)
      }
    }
  }
}

extension RunResult.Notifications {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    generated = try container.decode(Int.self, forKey: .generated)
    accepted = try container.decode(Int.self, forKey: .accepted)
    rejected = try container.decode(Int.self, forKey: .rejected)
    unknown = try container.decode(Int.self, forKey: .unknown)
    abandoned = try container.decode(Int.self, forKey: .abandoned)
    pruned = try container.decodeIfPresent(Int.self, forKey: .pruned)
    unproven = try container.decodeIfPresent(Int.self, forKey: .unproven) ?? 0
  }
}

extension RunResult.Verdict.Threshold {
  /// Documents of 0.1.0 have 0 where nothing was measured.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    expression = try container.decode(String.self, forKey: .expression)
    passed = try container.decode(Bool.self, forKey: .passed)
    reason = try container.decodeIfPresent(String.self, forKey: .reason)
    let stored = try container.decodeIfPresent(Double.self, forKey: .value)
    value = stored == 0 && reason != nil ? nil : stored
  }
}

extension RunResult.Schedule {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    skipped = try container.decode(Int.self, forKey: .skipped)
    unsent = try container.decodeIfPresent(Int.self, forKey: .unsent) ?? 0
  }
}

extension KeyedDecodingContainer {
  /// Documents from before it was counted have no `schedule`.
  func decode(_ type: RunResult.Schedule.Type, forKey key: Key) throws -> RunResult.Schedule {
    try decodeIfPresent(type, forKey: key) ?? RunResult.Schedule()
  }

  /// Documents from before `answers` lack the key.
  func decode(_ type: RunResult.Answers.Type, forKey key: Key) throws -> RunResult.Answers {
    try decodeIfPresent(type, forKey: key) ?? RunResult.Answers()
  }

  /// Documents from before `timeline` lack the key.
  func decode(_ type: RunResult.Timeline.Type, forKey key: Key) throws -> RunResult.Timeline {
    try decodeIfPresent(type, forKey: key) ?? RunResult.Timeline()
  }
}
