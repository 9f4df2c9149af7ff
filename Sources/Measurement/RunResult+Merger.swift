/// Joins results of segments of one load one after the other, as they are read.
///
/// Memory is that of the merged result, and some hundred bytes a part: no part is kept. The result is the same in
/// whatever order parts are added.
extension RunResult {
  public struct Merger: Sendable {
    /// The most seconds of a merged series: more than a day. Parts of so different times are no parts of one load.
    package static let maximumSeconds = 200_000

    /// The sums so far, without series, stalls and timeline.
    private var sums: RunResult?
    /// The part itself while there is one only: it keeps its series, bins, stalls and timeline.
    private var single: RunResult?
    /// The first that was added, for errors.
    private var reference: (name: String, kind: String, schema: Int, measuredBy: Int?)?
    /// That of the lowest segment, whose environment and plan the result has.
    private var first: (key: PartBrief.Key, environment: Environment, replay: Replay?)?
    private var briefs: [PartBrief] = []
    private var plans = DistinctPlans()
    private var course = JoinedCourse()

    /// A merger without parts.
    public init() {}

    /// The number of parts so far.
    public var count: Int { briefs.count }

    /// The name of the first part that was added; `nil` without any.
    public var firstName: String? { reference?.name }

    /// Adds a part.
    ///
    /// - Throws: a `MergeError` if it differs from the first in kind, schema or method of measurement, a histogram has
    ///   the wrong unit, or the parts' series are of more than 200,000 different seconds. Then it is not added.
    public mutating func add(_ part: Part) throws(MergeError) {
      let result = part.result
      try check(part)
      let brief = PartBrief(part, planIndex: plans.index(of: result.plan))
      guard course.add(result, part: briefs.count) else {
        throw MergeError(
          description:
            "\(part.name): the series of all parts are of more than \(Self.maximumSeconds) seconds, so they are not of one load"
        )
      }
      single = briefs.isEmpty ? result : nil
      if reference == nil { reference = (part.name, result.kind, result.schema, result.measuredBy) }
      if first.map({ brief.key < $0.key }) ?? true { first = (brief.key, result.environment, result.replay) }
      briefs.append(brief)
      if sums == nil {
        sums = result
        sums?.dropCourse()
      } else {
        sums?.add(result)
      }
    }

    private func check(_ part: Part) throws(MergeError) {
      let result = part.result
      if let reference {
        guard reference.kind == result.kind else {
          throw MergeError(
            description:
              "\(part.name) is a result of '\(result.kind)', \(reference.name) of '\(reference.kind)'")
        }
        guard reference.schema == result.schema else {
          throw MergeError(
            description: "\(part.name) has schema \(result.schema), \(reference.name) has \(reference.schema)")
        }
        guard reference.measuredBy == result.measuredBy else {
          let isOld = reference.measuredBy == nil || result.measuredBy == nil
          let (name, other) =
            reference.measuredBy == nil ? (reference.name, part.name) : (part.name, reference.name)
          throw MergeError(
            description:
              "\(name) is of \(isOld ? "apnscope 0.1.0" : "another apnscope"), whose rates and latencies cover other times than those of \(other)"
          )
        }
      }
      guard result.hasUnits else { throw MergeError(description: "\(part.name): a histogram has the wrong unit") }
    }

    /// The merged result of all parts.
    ///
    /// - Parameters:
    ///   - unreadable: documents that should have been parts and could not be read, each with its name and the reason.
    ///   - allowsMissing: segments, documents and ends of runs may be missing; they stay warnings.
    ///   - thresholds: judged on the merged result, with those of the parts' plans.
    ///   - ledger: the gateway's books of the same runs.
    /// - Throws: a `MergeError` without parts.
    public func result(
      unreadable: [String] = [], allowsMissing: Bool = false, thresholds: [Threshold] = [], ledger: Ledger? = nil
    ) throws(MergeError) -> RunResult {
      guard var merged = single ?? sums, let first else {
        throw MergeError(description: "there is nothing to merge")
      }
      // In whatever order they were added.
      let order = briefs.indices.sorted { briefs[$0].key < briefs[$1].key }
      let parts = order.map { briefs[$0] }
      (merged.environment, merged.replay) = (first.environment, first.replay)
      let interruptions = parts.compactMap(\.interrupted)
      merged.interrupted = interruptions.first { $0.cause == .lost } ?? interruptions.first
      merged.started = parts.map(\.started).min() ?? ""
      merged.start = joined(parts.map(\.start))
      merged.labels = PartBrief.commonLabels(of: parts)
      merged.merged = together(parts.map(\.span), isOfOneRun: parts.count == 1 && !parts[0].isMerged)
      let longest = parts.map(\.measuredS).max() ?? 0
      merged.measuredS = merged.merged?.together == false ? 0 : longest
      merged.rates = merged.measuredS > 0 ? PartBrief.rates(of: parts, over: longest) : Rates()
      if single == nil {
        course.join(parts: order.map { ($0, briefs[$0]) }, into: &merged)
        merged.resources.cpuUserS = finite(parts.reduce(0) { $0 + $1.cpuUserS })
        merged.resources.cpuSystemS = finite(parts.reduce(0) { $0 + $1.cpuSystemS })
        PartBrief.joinPhases(of: parts, into: &merged)
      }
      merged.environment.hosts = unique(parts.flatMap(\.hosts))
      if merged.environment.hosts?.count == 1 { merged.environment.hosts = nil }
      let offsets = ledger.map { ClockOffsets($0) }
      let all = parts.flatMap { part in
        guard let offsets, offsets.canCompare(parts.count), part.segments.count == 1 else { return part.segments }
        var segment = part.segments[0]
        segment.clockOffsetS = offsets.offset(of: part.lives) ?? segment.clockOffsetS
        return [segment]
      }
      merged.parts = Array(all.sorted().prefix(Segment.maximumListed))

      merged.plan = plans.merged(parts)
      var warnings = parts.flatMap { part in
        part.warnings.map { warning in
          // Reasons are named below; a part that was merged before names its own parts.
          let isNamed = parts.count == 1 || part.isMerged || part.reasons.contains(warning)
          return isNamed ? warning : "\(part.name): \(warning)"
        }
      }
      warnings += plans.differences(parts)
      let missing = Missing(parts, unreadable: unreadable)
      if let segments = missing.segments { merged.plan["segment"] = .text(segments.text) }
      warnings += missing.warnings
      warnings += overlapWarnings(merged.merged, longest: longest)
      warnings += clockWarnings(merged.parts ?? [])
      warnings += startWarnings(parts)
      merged.verdict = PartBrief.verdict(of: parts, merged, thresholds, &warnings)
      merged.verdict.invariants += missing.invariants(allowed: allowsMissing)
      merged.warnings = Self.limited(unique(warnings))
      return merged
    }

    /// The most warnings of a merged result; those of each part are in `parts`.
    private static let maximumWarnings = 1_000

    private static func limited(_ warnings: [String]) -> [String] {
      guard warnings.count > maximumWarnings else { return warnings }
      return warnings.prefix(maximumWarnings) + ["and \(warnings.count - maximumWarnings) more warnings"]
    }
  }

  /// Clocks that are so far off that it shows in times by the second.
  private static func clockWarnings(_ segments: [Segment]) -> [String] {
    let off = segments.filter { abs($0.clockOffsetS ?? 0) >= tolerableClockOffsetS }
    guard !off.isEmpty else { return [] }
    let names = off.map { segment in
      let offset = segment.clockOffsetS ?? 0
      return "\(segment.segment) by \((abs(offset) * 10).rounded() / 10) s \(offset > 0 ? "ahead" : "behind")"
    }
    return ["\(clockWarning)\(Segments.list(names))"]
  }

  /// Seconds.
  private static let tolerableClockOffsetS = 0.5
  private static let clockWarning = "by the gateway's books, clocks of machines are not the gateway's: segment "

  /// Segments that were to begin at different times: a relative time, or a clock that was in another period.
  private static func startWarnings(_ parts: [PartBrief]) -> [String] {
    let planned = Set(parts.compactMap(\.start?.planned))
    guard planned.count > 1 || (planned.count == 1 && parts.contains { $0.start == nil }) else { return [] }
    let times = planned.count > 1 ? "between \(planned.min() ?? "") and \(planned.max() ?? "")" : "some at no time"
    return ["\(startWarning)\(times)"]
  }

  private static let startWarning = "the segments were not to begin at the same time: "

  /// Whether a text is a warning that is made anew from all parts.
  static func isJoinedWarning(_ text: String) -> Bool {
    Segments.isWarning(text) || isOverlapWarning(text) || text.hasPrefix(clockWarning) || text.hasPrefix(startWarning)
  }

  /// The parts of a result that `JoinedCourse` and `PartBrief` join.
  fileprivate mutating func dropCourse() {
    (series, stalls, timeline, bins) = ([], nil, Timeline(), nil)
    for index in phases.indices { phases[index].rates = nil }
  }
}

/// The facts of a part that a merger keeps.
struct PartBrief: Sendable {
  /// The order of parts: by segment, then by start, host and name.
  struct Key: Sendable, Comparable {
    var segment: Int
    var segments: String
    var started: String
    var host: String
    var name: String

    static func < (a: Self, b: Self) -> Bool {
      (a.segment, a.segments, a.started, a.host, a.name) < (b.segment, b.segments, b.started, b.host, b.name)
    }
  }

  let key: Key
  let name: String
  let started: String
  let start: RunResult.Start?
  let labels: [String: String]
  let hosts: [String]
  /// Whether it is a merged result itself.
  let isMerged: Bool
  let span: RunResult.Merged
  let measuredS: Double
  let rates: RunResult.Rates
  let drainS: Double
  /// Sendings of the measured phase and the drain that were accepted.
  let acceptedInBoth: Double
  let phases: [(name: RunPhase, seconds: Double, rates: RunResult.Rates?)]
  let (cpuUserS, cpuSystemS): (Double, Double)
  let stalledS: Double?
  /// How many numbers its connections have.
  let connections: Int
  let interrupted: RunResult.Interruption?
  /// Without those that more parts may change.
  let warnings: [String]
  let reasons: [String]
  let outcome: RunResult.Verdict.Outcome?
  let limit: RunResult.Verdict.Limit
  let brokenInvariants: [RunResult.Verdict.Invariant]
  let thresholds: [String]
  /// Nothing may be open at its end.
  let leavesNothingOpen: Bool
  let segment: String?
  let plan: Int
  let segments: [RunResult.Segment]
  let lives: [ClockOffsets.Life]

  init(_ part: RunResult.Part, planIndex: Int) {
    let result = part.result
    (name, started, start, labels) = (part.name, result.started, result.start, result.labels ?? [:])
    hosts = result.environment.hosts ?? [result.environment.host]
    isMerged = result.merged != nil
    span = result.measuredSpan
    (measuredS, rates) = (result.measuredS, result.rates)
    drainS = result.phase(.drain)?.seconds ?? 0
    acceptedInBoth = result.phases.filter { $0.name == .measured || $0.name == .drain }
      .reduce(0) { $0 + Double($1.sendings.accepted) }
    phases = result.phases.map { ($0.name, $0.seconds, $0.rates) }
    (cpuUserS, cpuSystemS) = (result.resources.cpuUserS, result.resources.cpuSystemS)
    stalledS = result.stalls?.totalS
    connections = result.connectionCount
    interrupted = result.interrupted
    warnings = result.warnings.filter { !RunResult.isJoinedWarning($0) }
    reasons = result.verdict.reasons ?? []
    (outcome, limit) = (result.verdict.outcome, result.verdict.limitedBy)
    brokenInvariants = result.verdict.invariants.filter { !$0.holds && !Missing.judges($0) }
    thresholds = result.verdict.thresholds.map(\.expression) + result.plannedThresholds
    leavesNothingOpen =
      result.plan["markers"] != .text("off") && result.plan["leave_unknown"] != .flag(true)
      && result.interrupted?.cause != .lost
    if case .text(let text)? = result.plan["segment"] { segment = text } else { segment = nil }
    plan = planIndex
    segments = result.parts ?? [RunResult.Segment(result)]
    lives = result.connectionLives
    let numbers = segment.flatMap { Segments($0) }
    key = Key(
      segment: numbers?.numbers.keys.min() ?? .max, segments: segment ?? "", started: started,
      host: hosts.first ?? "", name: name)
  }

  var isLost: Bool { interrupted?.cause == .lost }

  /// Labels that all parts have, with the same value; `nil` if there are none.
  static func commonLabels(of parts: [PartBrief]) -> [String: String]? {
    let common = (parts.first?.labels ?? [:]).filter { label in parts.allSatisfy { $0.labels[label.key] == label.value }
    }
    return common.isEmpty ? nil : common
  }

  static func rates(of parts: [PartBrief], over measured: Double) -> RunResult.Rates {
    if parts.count == 1 { return parts[0].rates }
    var rates = RunResult.Rates()
    // A part that measured nothing has no rates, and adds nothing.
    func counted(_ path: KeyPath<RunResult.Rates, Double?>) -> Double? {
      let sum = parts.filter { $0.measuredS > 0 }.reduce(0 as Double?) { sum, part in
        both(sum, part.rates[keyPath: path]) { $0 + $1 * part.measuredS }
      }
      return sum.map { finite($0 / measured) }
    }
    rates.writtenPerS = counted(\.writtenPerS)
    rates.writtenBytesPerS = counted(\.writtenBytesPerS)
    let isBehind = parts.contains { $0.rates.basis == .measuredAndDrain }
    rates.basis = parts.contains { $0.rates.basis == nil } ? nil : isBehind ? .measuredAndDrain : .measured
    func base(_ part: PartBrief, _ basis: RunResult.Rates.Basis?) -> Double {
      basis == .measuredAndDrain ? part.measuredS + part.drainS : part.measuredS
    }
    func accepted(_ part: PartBrief) -> Double? {
      guard isBehind, part.rates.basis == .measured else {
        let base = base(part, part.rates.basis)
        return base > 0 ? part.rates.acceptedPerS.map { $0 * base } : 0
      }
      return part.acceptedInBoth
    }
    let accepted = parts.reduce(0 as Double?) { both($0, accepted($1), +) }
    // As in the merged result: the longest of each phase.
    let drain = parts.map { base($0, rates.basis) - $0.measuredS }.max() ?? 0
    let longest = measured + drain
    rates.acceptedPerS = longest > 0 ? accepted.map { finite($0 / longest) } : nil
    return rates
  }

  /// Sets the rates of each phase, over the longest of all parts.
  static func joinPhases(of parts: [PartBrief], into merged: inout RunResult) {
    for index in merged.phases.indices {
      let name = merged.phases[index].name
      let phases = parts.compactMap { part in part.phases.first { $0.name == name } }
      let longest = phases.map(\.seconds).max() ?? 0
      guard phases.allSatisfy({ $0.rates != nil }) else {
        merged.phases[index].rates = nil
        continue
      }
      var rates = RunResult.Rates()
      for path in [\.writtenPerS, \.acceptedPerS, \.writtenBytesPerS]
        as [WritableKeyPath<RunResult.Rates, Double?>]
      {
        // A phase of no length has no rates, and adds nothing.
        let counted = phases.reduce(0 as Double?) { sum, phase in
          both(sum, phase.seconds > 0 ? phase.rates?[keyPath: path].map { $0 * phase.seconds } : 0, +)
        }
        rates[keyPath: path] = longest > 0 ? counted.map { finite($0 / longest) } : nil
      }
      merged.phases[index].rates = rates
    }
    merged.phases.sort { $0.name.index < $1.name.index }
  }

  static func verdict(
    of parts: [PartBrief], _ merged: RunResult, _ thresholds: [Threshold], _ warnings: inout [String]
  ) -> RunResult.Verdict {
    var verdict = RunResult.Verdict()
    let limits = Set(parts.map(\.limit))
    verdict.limitedBy = [.generator, .gateway].first { limits.contains($0) } ?? .schedule
    verdict.outcome = worst(of: parts.map(\.outcome))
    let said = Set(parts.flatMap(\.reasons))
    warnings.removeAll { said.contains($0) }
    // A merged result names its own parts.
    let reasons = unique(
      parts.flatMap { part in part.isMerged ? part.reasons : part.reasons.map { "\(part.name): \($0)" } })
    verdict.reasons = reasons
    warnings += reasons
    verdict.invariants = merged.invariants(usesMarkers: parts.allSatisfy(\.leavesNothingOpen))
    for part in parts {
      for invariant in part.brokenInvariants {
        verdict.invariants.append(.init("\(part.name): \(invariant.name)", holds: false, detail: invariant.detail))
      }
    }
    for expression in unique(parts.flatMap(\.thresholds) + thresholds.map(\.expression)) {
      do {
        verdict.thresholds.append(try Threshold(expression).judge(merged))
      } catch {
        warnings.append("a threshold cannot be evaluated again: \(error)")
      }
    }
    return verdict
  }
}

/// `nil` if a part has no outcome and none has failed.
private func worst(of outcomes: [RunResult.Verdict.Outcome?]) -> RunResult.Verdict.Outcome? {
  if outcomes.contains(.failed) { return .failed }
  if outcomes.contains(nil) { return nil }
  return outcomes.contains(.unproven) ? .unproven : .proven
}
