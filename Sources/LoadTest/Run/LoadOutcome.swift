import Measurement

/// How a run stands, for whoever watches it.
public struct LoadProgress: Sendable {
  public var phase = ""
  public var elapsed = 0.0
  public var written = 0
  public var writtenPerSecond = 0.0
  public var accepted = 0
  public var errors = 0
  public var connections = 0
  /// In the last second; in microseconds.
  public var sendLag99 = 0
  public var cpu = 0.0
}

/// What a run counted and measured: the whole, and each of its phases.
public struct LoadOutcome: Sendable {
  public struct Phase: Sendable {
    public var name: String
    public var seconds: Double
    /// Of user and system time of this process.
    var cpu: Double
    /// Seconds for which the event loops could have run and had no processor, all together.
    var waited = 0.0
    var tally: LoadTally
    var measurements: LoadMeasurements
  }

  public let plan: LoadPlan
  /// UTC, RFC 3339.
  public internal(set) var started = ""
  /// It ended because no connection could be made any more.
  public internal(set) var wasCutOff = false
  public internal(set) var processor = (user: 0.0, system: 0.0)
  /// Most resident bytes of this process.
  public internal(set) var maximumMemory = 0
  public var phases: [Phase] = []
  public var series: [RunResult.Sample] = []
  public var timeline = RunResult.Timeline()

  init(plan: LoadPlan) { self.plan = plan }
}
