import Foundation
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
    var tally: LoadTally
    var measurements: LoadMeasurements
  }

  public struct Sample: Sendable {
    public var time: Double
    public var written: Int
    public var accepted: Int
    public var errors: Int
    public var opened: Int
    public var closed: Int
    public var up: Int
    public var sendLag99: Int
    public var cpu: Double
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
  public var series: [Sample] = []

  init(plan: LoadPlan) { self.plan = plan }
}

enum Clock {
  /// CLOCK_MONOTONIC.
  static func nanoseconds() -> Int64 {
    var time = timespec()
    // Safe: the structure lives through the call.
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// UTC now, RFC 3339 with milliseconds.
  static func utc() -> String {
    rfc3339(Int64(Date.now.timeIntervalSince1970 * 1e9))
  }

  /// Most resident bytes so far.
  static func maximumMemory() -> Int {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(0), &usage)
    return usage.ru_maxrss * 1_024
  }

  /// User and system seconds of this process.
  static func processor() -> (user: Double, system: Double) {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(0), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return (seconds(usage.ru_utime), seconds(usage.ru_stime))
  }
}

/// Collects what the loops counted, a sample a second, and cuts it into phases.
struct Recorder {
  private let crew: Crew
  private let progress: @Sendable (LoadProgress) -> Void
  /// Gets the books at each step, so that who watches asks no event loop.
  private let publish: @Sendable (LoadSnapshot) -> Void
  private var sendLag99 = 0
  private let began = Clock.nanoseconds()
  private var phaseBegan = Clock.nanoseconds()
  private var sampled = Clock.nanoseconds()
  private var atSample = LoadTally()
  private var processor = Clock.processor()
  private var phaseProcessor = Clock.processor()
  /// Which phase is on; progress shows it.
  var phaseName = "connect"
  private(set) var series: [LoadOutcome.Sample] = []

  init(
    _ crew: Crew, _ progress: @escaping @Sendable (LoadProgress) -> Void,
    publish: @escaping @Sendable (LoadSnapshot) -> Void
  ) {
    self.crew = crew
    self.progress = progress
    self.publish = publish
  }

  mutating func step() async -> LoadTally {
    let tally = await tally()
    publish(LoadSnapshot(tally, phase: phaseName, sendLag99: sendLag99))
    let now = Clock.nanoseconds()
    let seconds = Double(now - sampled) / 1e9
    guard seconds >= 1 else { return tally }
    let used = Clock.processor()
    let cpu = (used.user + used.system - processor.user - processor.system) / seconds
    let lag = await crew.gather { $0.measurements.sendLag.quantile(0.99) }.max() ?? 0
    sendLag99 = lag
    let closed = tally.closed.values.reduce(0, +) - atSample.closed.values.reduce(0, +)
    let errors = tally.errorResponses.values.reduce(0, +)
    series.append(
      LoadOutcome.Sample(
        time: Double(sampled - began) / 1e9, written: tally.sendings.written - atSample.sendings.written,
        accepted: tally.accepted - atSample.accepted,
        errors: errors - atSample.errorResponses.values.reduce(0, +), opened: tally.opened - atSample.opened,
        closed: closed, up: tally.up, sendLag99: lag, cpu: cpu))
    progress(
      LoadProgress(
        phase: phaseName, elapsed: Double(now - began) / 1e9, written: tally.sendings.written,
        writtenPerSecond: Double(tally.sendings.written - atSample.sendings.written) / seconds,
        accepted: tally.accepted, errors: errors, connections: tally.up, sendLag99: lag, cpu: cpu))
    (sampled, atSample, processor) = (now, tally, used)
    return tally
  }

  private func tally() async -> LoadTally {
    var sum = LoadTally()
    for part in await crew.gather({ $0.tally }) { sum += part }
    return sum
  }

  /// Counts stay cumulative; what was measured is that of the phase.
  mutating func endPhase(_ name: String) async -> LoadOutcome.Phase {
    var measurements = LoadMeasurements()
    for part in await crew.gather({ $0.takeMeasurements() }) { measurements.merge(part) }
    let now = Clock.nanoseconds()
    let used = Clock.processor()
    defer { (phaseBegan, phaseProcessor) = (now, used) }
    let tally = await tally()
    publish(LoadSnapshot(tally, phase: name == "drain" ? "over" : name, sendLag99: sendLag99))
    return LoadOutcome.Phase(
      name: name, seconds: Double(now - phaseBegan) / 1e9,
      cpu: used.user + used.system - phaseProcessor.user - phaseProcessor.system, tally: tally,
      measurements: measurements)
  }
}
