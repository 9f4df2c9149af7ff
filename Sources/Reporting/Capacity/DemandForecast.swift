import Measurement

/// A demand over the capacity that a search has found: whether it fits, and what waits if it does not.
public struct DemandForecast: Sendable, Equatable, Encodable {
  /// Whether the demand fits.
  public enum Verdict: String, Sendable, Encodable {
    /// Its peak is not above the range of the sustained rate, whose lower end long trials have passed.
    case fits
    /// Its peak is above the range: notifications have to wait.
    case late
    /// No trial proves either.
    case uncertain
  }

  /// A reconnect storm at the beginning of the demand's peak.
  public struct Storm: Sendable, Equatable, Encodable {
    /// The number of connections.
    public var connections: Int
    /// Seconds until they are back, in which nothing is sent.
    public var seconds: Double
    /// The evidence of `seconds`.
    public var basis: Basis
    /// The most notifications that wait at a time.
    public var largest: Double
    /// Seconds from the storm's beginning until none wait any more.
    public var overAfterS: Double
  }

  public private(set) var verdict: Verdict
  /// The notifications of the demand.
  public private(set) var notifications: Double
  /// The length of the demand in seconds.
  public private(set) var lengthS: Double
  /// The highest rate, in notifications a second, and when it is first demanded.
  public private(set) var peakPerS: Double
  public private(set) var peakAtS: Double
  /// Notifications a second over the length of the demand.
  public private(set) var meanPerS: Double
  /// The share of the sustained rate that the peak leaves; negative when the peak is above the rate.
  public private(set) var headroom: Double
  /// The backlog with the sustained rate, and with both ends of its range; `nil` without a range, or without its upper
  /// end.
  public private(set) var atSustained: BacklogCourse
  public private(set) var atLower: BacklogCourse?
  public private(set) var atUpper: BacklogCourse?
  /// The number of connections that the peak needs, and its evidence; `nil` when no trial proves a number.
  public private(set) var connections: Int?
  public private(set) var connectionsBasis: Basis?
  /// A storm at the peak; `nil` when no trial proves how long one takes.
  public private(set) var storm: Storm?
  /// Sentences about what is assumed, or not known.
  public private(set) var notes: [String] = []

  /// The verdict in words, without a full stop.
  package private(set) var sentence = ""

  private enum CodingKeys: String, CodingKey {
    case verdict, notifications, lengthS, peakPerS, peakAtS, meanPerS, headroom, atSustained, atLower, atUpper
    case connections, connectionsBasis, storm, notes
  }

  /// `nil` without a demand, and when no rate passed.
  init?(_ document: CapacityDocument, _ analysis: CapacityAnalysis) {
    guard let demand = document.demand, let sustained = document.sustainedPerS,
      let course = BacklogCourse(demand, capacityPerS: sustained)
    else { return nil }
    let peak = demand.peak
    atSustained = course
    let range = document.sustainedRange
    atLower = range.flatMap { BacklogCourse(demand, capacityPerS: $0.lowerPerS) }
    atUpper = range?.upperPerS.flatMap { BacklogCourse(demand, capacityPerS: $0) }
    (notifications, lengthS) = (demand.notifications, demand.endS)
    (peakPerS, peakAtS) = (peak.perS, peak.fromS)
    meanPerS = notifications / lengthS
    headroom = 1 - peakPerS / sustained

    var doubt = Self.doubt(document, analysis, peakPerS)
    // Errors cost time: a demand with more of them than a trial may have has less than the sustained rate.
    let allowed = max(document.settings.errorLimit, analysis.plan?.errorShare ?? 0)
    if doubt == nil, peakPerS <= sustained, let share = demand.errorShare, share > allowed {
      doubt = "\(Unit.share.text(share)) of it was rejected, where trials have at most \(Unit.share.text(allowed))"
    }
    if doubt == nil, peakPerS <= (range?.lowerPerS ?? sustained) {
      verdict = .fits
    } else if doubt == nil, peakPerS > range?.upperPerS ?? sustained {
      verdict = .late
    } else {
      verdict = .uncertain
    }
    sentence = Self.sentence(self, demand, document, doubt)

    let need = ConnectionNeed(document)
    if let accepted = analysis.plan?.cases.first?.acceptedPerS, peakPerS > 0 {
      switch need.connections(for: peakPerS, accepted: accepted) {
      case .success(let number):
        (connections, connectionsBasis) = (number.count, number.basis)
        notes += need.notes(on: number, for: peakPerS)
      case .failure(let refusal): notes.append("connections for the peak: \(refusal)")
      }
    }
    storm = analysis.storms?.max { ($0.seconds ?? 0) < ($1.seconds ?? 0) }.flatMap { Self.storm($0, demand, sustained) }
    notes += Self.assumptions(document, analysis, demand) + demand.notes
  }

  /// The reason why the search proves nothing about a peak; `nil`: it does.
  private static func doubt(_ document: CapacityDocument, _ analysis: CapacityAnalysis, _ peak: Double) -> String? {
    switch document.ending {
    case .found: break
    case .generatorLimited:
      guard peak > document.sustainedRange?.lowerPerS ?? document.sustainedPerS ?? 0 else { return nil }
      return "no trial has shown how much is too much: the generator was too slow"
    case .unsettled, .interrupted, .nothingPassed: return "the search was not completed"
    }
    if let contradiction = analysis.contradiction, let range = document.sustainedRange, peak > range.lowerPerS,
      peak <= contradiction.acceptedPerS
    {
      return "trial \(contradiction.trial) took \(Unit.perSecond.text(contradiction.acceptedPerS)) as fast as possible"
    }
    return nil
  }

  private static func sentence(
    _ forecast: DemandForecast, _ demand: Demand, _ document: CapacityDocument, _ doubt: String?
  ) -> String {
    let peak = Unit.perSecond.text(forecast.peakPerS)
    switch forecast.verdict {
    case .fits: return "it fits: the peak, \(peak), leaves \(Unit.share.text(forecast.headroom)) of the sustained rate"
    case .late: return "it does not fit: \(backlog(forecast.atSustained, demand))"
    case .uncertain:
      if let doubt { return "whether it fits is not proven: the peak is \(peak), and \(doubt)" }
      let range = document.sustainedRange
      let lower = (range?.lowerPerS).map(Unit.perSecond.text) ?? "–"
      let upper = (range?.upperPerS).map { " to \(Unit.perSecond.text($0))" } ?? " at least"
      return
        "whether it fits is not proven: the peak, \(peak), is in the range of the sustained rate (\(lower)\(upper))"
    }
  }

  /// A backlog in words, without a full stop.
  package static func backlog(_ course: BacklogCourse, _ demand: Demand) -> String {
    guard course.largest > 0 else { return "nothing waits" }
    let after = course.lastOutS - demand.lastDueS
    let end =
      after > 0 ? "the last one is out \(Unit.seconds.text(after)) after the last was due" : "none is left at the end"
    return
      "up to \(grouped(course.largest)) notifications wait, at most \(Unit.seconds.text(course.longestDelayS)) each and \(Unit.seconds.text(course.longestS)) without a break; \(end)"
  }

  private static func storm(_ storm: StormForecast, _ demand: Demand, _ capacity: Double) -> Storm? {
    guard let seconds = storm.seconds, let basis = storm.basis else { return nil }
    let start = demand.peak.fromS
    let outage = BacklogCourse.Outage(fromS: start, toS: start + seconds)
    guard let course = BacklogCourse(demand, capacityPerS: capacity, outage: outage) else { return nil }
    // Those that wait when the storm begins are part of what it leaves.
    let over = course.points.first { $0.atS > start && $0.waiting == 0 }?.atS ?? outage.toS
    let most = course.points.filter { $0.atS >= start && $0.atS <= over }.map(\.waiting).max() ?? 0
    return Storm(
      connections: storm.connections, seconds: seconds, basis: basis, largest: most, overAfterS: over - start)
  }

  private static func assumptions(
    _ document: CapacityDocument, _ analysis: CapacityAnalysis, _ demand: Demand
  ) -> [String] {
    var notes: [String] = []
    if let held = document.heldS, demand.endS > held {
      notes.append(
        "the longest trial held the rate for \(Unit.seconds.text(held)), the demand lasts \(Unit.seconds.text(demand.endS)): that the rate lasts is assumed"
      )
    }
    if let share = demand.errorShare, let plan = analysis.plan, share > (plan.errorShareBelow ?? plan.errorShare) {
      notes.append(
        "\(Unit.share.text(share)) of the demand was rejected, \(plan.shareText(plan.cases[0])) in the trials: the capacity with so many errors is lower"
      )
    }
    return notes
  }
}
