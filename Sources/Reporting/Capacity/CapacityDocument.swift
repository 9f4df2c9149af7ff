import Measurement

/// The result of a capacity run: all trials, the rate found, and the plan of a campaign.
///
/// As JSON it is `{"schema":2,"kind":"capacity",…}` with the trials and, under `analysis`, the conclusions. The
/// analysis is computed again when a document is read, so old documents benefit from newer programs.
public struct CapacityDocument: Sendable, Equatable, Codable {
  /// How the search ended.
  public enum Ending: String, Sendable, Codable {
    /// The rate passed a long trial, and the rate a step above it failed twice.
    case found
    /// The rate passed; the generator was too slow to test higher ones.
    case generatorLimited = "generator_limited"
    /// Trials ran out; the rate passed, but need not be confirmed.
    case unsettled
    /// Not even the lowest rate passed.
    case nothingPassed = "nothing_passed"
    /// The search was interrupted.
    case interrupted
  }

  /// The settings of the search. Names end in their unit.
  public struct Settings: Sendable, Equatable, Codable {
    /// The relative distance from the found rate to a rate that fails: 0.03 is 3 %.
    public var precision = 0.03
    /// The length of a trial's measured phase.
    public var trialS = 10.0
    /// The length of a long trial's measured phase.
    public var confirmS = 30.0
    /// The time before each measured phase.
    public var settleS = 2.0
    /// The maximum send lag (99th percentile).
    public var lagLimitUs = 50_000
    /// The maximum share of rejected notifications.
    public var errorLimit = 0.01
    /// The maximum share of second and later sendings.
    public var resentLimit = 0.1
    /// The command that made the trials; `nil`: apnscope itself did.
    public var trialCommand: String?
    public init() {}
  }

  /// A campaign to plan: a number of notifications, optionally within a time.
  public struct Target: Sendable, Equatable, Codable {
    public var notifications: Int
    /// The time in seconds; `nil`: none.
    public var withinS: Double?

    public init(notifications: Int, withinS: Double?) {
      self.notifications = notifications
      self.withinS = withinS
    }
  }

  /// 1 in documents of 0.1.0, whose `target` is named `campaign`; they are converted to the current schema when read.
  public var schema = 2
  public var kind = "capacity"
  /// The time of the start: UTC, RFC 3339.
  public var started = ""
  /// The time of the end: UTC, RFC 3339.
  public var ended = ""
  public var environment = Environment()
  /// The common settings of all trials, by their names in a plan file of `load`.
  public var plan: [String: RunResult.PlanValue] = [:]
  public var settings = Settings()
  /// How the search ended.
  public var ending = Ending.interrupted
  /// Notifications a second that are sustained; absent when no rate passed.
  public var sustainedPerS: Double?
  /// The range of the sustained rate; absent if no rate passed, and in documents of 0.1.0.
  public var sustainedRange: SustainedRange?
  /// The number of connections in the trials of the search.
  public var connections = 1
  /// The campaign to plan; `nil`: none.
  public var target: Target?
  /// The demand to lay over the capacity; `nil`: none.
  public var demand: Demand?
  /// The numbers of connections whose reopening at once is asked for; `nil`: none are.
  public var storms: [Int]?
  /// The fleet of devices that tells when the last user has the campaign; `nil`: none does.
  public var devices: MeasuredFleet?
  /// The trials, in order: the search's, then the sweeps'.
  public var trials: [CapacityTrial] = []

  public init() {}

  /// The seconds for which a trial has held the sustained rate, its settling included; `nil`: no trial passed at it.
  package var heldS: Double? {
    guard let sustainedPerS else { return nil }
    return trials.filter { $0.verdict == .passed && ($0.offeredPerS ?? 0) >= sustainedPerS }
      .map { $0.settleS + $0.measuredS }.max()
  }

  private enum CodingKeys: String, CodingKey {
    case schema, kind, started, ended, environment, plan, settings, ending, sustainedPerS, sustainedRange, connections
    case target, demand, storms, devices, trials
  }

  private enum EarlierKey: String, CodingKey { case campaign }

  private enum AnalysisKey: String, CodingKey { case analysis }

  /// Decodes a document of this schema or of 0.1.0.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    kind = try container.decode(String.self, forKey: .kind)
    started = try container.decode(String.self, forKey: .started)
    ended = try container.decode(String.self, forKey: .ended)
    environment = try container.decode(Environment.self, forKey: .environment)
    plan = try container.decode([String: RunResult.PlanValue].self, forKey: .plan)
    settings = try container.decode(Settings.self, forKey: .settings)
    ending = try container.decode(Ending.self, forKey: .ending)
    sustainedPerS = try container.decodeIfPresent(Double.self, forKey: .sustainedPerS)
    sustainedRange = try container.decodeIfPresent(SustainedRange.self, forKey: .sustainedRange)
    connections = try container.decode(Int.self, forKey: .connections)
    let earlier = try decoder.container(keyedBy: EarlierKey.self)
    target =
      try container.decodeIfPresent(Target.self, forKey: .target)
      ?? earlier.decodeIfPresent(Target.self, forKey: .campaign)
    demand = try container.decodeIfPresent(Demand.self, forKey: .demand)
    storms = try container.decodeIfPresent([Int].self, forKey: .storms)
    devices = try container.decodeIfPresent(MeasuredFleet.self, forKey: .devices)
    trials = try container.decode([CapacityTrial].self, forKey: .trials)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schema, forKey: .schema)
    try container.encode(kind, forKey: .kind)
    try container.encode(started, forKey: .started)
    try container.encode(ended, forKey: .ended)
    try container.encode(environment, forKey: .environment)
    try container.encode(plan, forKey: .plan)
    try container.encode(settings, forKey: .settings)
    try container.encode(ending, forKey: .ending)
    try container.encodeIfPresent(sustainedPerS, forKey: .sustainedPerS)
    try container.encodeIfPresent(sustainedRange, forKey: .sustainedRange)
    try container.encode(connections, forKey: .connections)
    try container.encodeIfPresent(target, forKey: .target)
    try container.encodeIfPresent(demand, forKey: .demand)
    try container.encodeIfPresent(storms, forKey: .storms)
    try container.encodeIfPresent(devices, forKey: .devices)
    try container.encode(trials, forKey: .trials)
    var more = encoder.container(keyedBy: AnalysisKey.self)
    try more.encode(CapacityAnalysis(self), forKey: .analysis)
  }
}
