/// Merges results of segments of one load.
extension RunResult {
  /// A result and its name in messages, e.g. the name of its file.
  public struct Part: Sendable {
    /// The name in messages.
    public var name: String
    /// The result.
    public var result: RunResult

    /// Makes a part.
    ///
    /// - Parameters:
    ///   - name: the name in messages, such as that of the file.
    ///   - result: the result of one segment.
    public init(_ name: String, _ result: RunResult) {
      self.name = name
      self.result = result
    }
  }

  /// The reason why results cannot be merged.
  public struct MergeError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A sentence with the names of the parts.
    public let description: String
  }

  /// Joins results of segments of one load, which ran at the same time, into one.
  ///
  /// - Counts are added; histograms merge exactly.
  /// - `measured_s` and each phase have the length of the longest part's. A rate is the sum of the counts of all
  ///   measured phases, over that length: the sum of the rates if all lengths are equal, and never above it. When a
  ///   part's accepted rate is over its measured phase and its drain, all parts' are. Parts that did not run together
  ///   have no rates (`Merged`).
  /// - The series is joined by wall clock, in whole seconds since the first part's start; counts, connections, cores
  ///   and memory add up, of lags the largest is kept. A part whose samples drift past a second has none in it.
  /// - Counts of topics are added by topic, when all parts have topics.
  /// - Stalls are concatenated; bins are dropped. A single part keeps its series, bins, stalls and timeline.
  /// - Values absent from an old document are absent from the result: writes, causes, cipher suites and reasons of
  ///   failures.
  /// - Timelines are joined likewise; the connections of each part are numbered after the previous parts'.
  /// - Phases are joined by name, resources add up, also most memory: it may have been on several machines.
  /// - Invariants and thresholds are evaluated again; an invariant that fails in a part stays failed, even if another
  ///   part's numbers compensate. Missing parts are a failed invariant as well. The limit is the generator if it was
  ///   any part's, otherwise the gateway if it was any part's.
  /// - The start is that of all parts, if all were to begin at the same time: the latest, with all missed notifications.
  /// - The environment and the plan are those of the first part, with all hosts and segments. Labels are those that all
  ///   parts have.
  ///
  /// Mismatches that do not prevent merging are in `warnings`, after those of the parts: differing plans, missing or
  /// repeated segments, measured phases that do not overlap.
  ///
  /// - Parameters:
  ///   - parts: the results of the segments, each with a name for messages.
  ///   - unreadable: documents that should have been parts and could not be read, each with its name and the reason.
  ///   - allowsMissing: segments, documents and ends of runs may be missing; they stay warnings.
  ///   - thresholds: judged on the merged result, with those of the parts' plans.
  /// - Throws: a `MergeError` without parts, or if the parts differ in kind, schema or method of measurement, or a
  ///   histogram has the wrong unit.
  public static func merging(
    _ parts: [Part], unreadable: [String] = [], allowsMissing: Bool = false, thresholds: [Threshold] = []
  ) throws(MergeError) -> RunResult {
    guard var merged = parts.first?.result else { throw MergeError(description: "there is nothing to merge") }
    for part in parts { try check(part, against: parts[0]) }
    for part in parts.dropFirst() { merged.add(part.result) }
    let results = parts.map(\.result)
    let interruptions = results.compactMap(\.interrupted)
    merged.interrupted = interruptions.first { $0.cause == .lost } ?? interruptions.first
    merged.started = results.map(\.started).min() ?? ""
    merged.start = joined(results.map(\.start))
    merged.labels = commonLabels(of: results)
    merged.merged = together(results)
    let longest = results.map(\.measuredS).max() ?? 0
    merged.measuredS = merged.merged?.together == false ? 0 : longest
    merged.rates = merged.measuredS > 0 ? rates(of: results, over: longest) : Rates()
    if parts.count > 1 { merged.joinCourses(of: results) }
    merged.environment.hosts = unique(results.flatMap { $0.environment.hosts ?? [$0.environment.host] })
    if merged.environment.hosts?.count == 1 { merged.environment.hosts = nil }

    // Segments that one part lacks may be in another, so these warnings are computed again, as are those about
    // overlap.
    var warnings = parts.flatMap { part in
      part.result.warnings.filter { !Segments.isWarning($0) && !isOverlapWarning($0) }
        .map { warning in
          // Reasons are named below; a part that was merged before names its own parts.
          let isNamed =
            parts.count == 1 || part.result.merged != nil || part.result.verdict.reasons?.contains(warning) == true
          return isNamed ? warning : "\(part.name): \(warning)"
        }
    }
    warnings += differences(of: parts)
    let missing = Missing(parts, unreadable: unreadable)
    if let segments = missing.segments { merged.plan["segment"] = .text(segments.text) }
    warnings += missing.warnings
    warnings += overlapWarnings(merged.merged, longest: longest)
    merged.verdict = verdict(of: parts, merged, thresholds, &warnings)
    merged.verdict.invariants += missing.invariants(allowed: allowsMissing)
    merged.warnings = unique(warnings)
    return merged
  }

  /// Labels that all parts have, with the same value; `nil` if there are none.
  private static func commonLabels(of results: [RunResult]) -> [String: String]? {
    let common = (results.first?.labels ?? [:]).filter { label in
      results.allSatisfy { $0.labels?[label.key] == label.value }
    }
    return common.isEmpty ? nil : common
  }

  private static func check(_ part: Part, against first: Part) throws(MergeError) {
    let (a, b) = (first.result, part.result)
    guard a.kind == b.kind else {
      throw MergeError(description: "\(part.name) is a result of '\(b.kind)', \(first.name) of '\(a.kind)'")
    }
    guard a.schema == b.schema else {
      throw MergeError(description: "\(part.name) has schema \(b.schema), \(first.name) has \(a.schema)")
    }
    guard a.measuredBy == b.measuredBy else {
      let isOld = a.measuredBy == nil || b.measuredBy == nil
      let (name, other) = a.measuredBy == nil ? (first.name, part.name) : (part.name, first.name)
      throw MergeError(
        description:
          "\(name) is of \(isOld ? "apnscope 0.1.0" : "another apnscope"), whose rates and latencies cover other times than those of \(other)"
      )
    }
    for result in [a, b] where !result.hasUnits {
      throw MergeError(description: "\(part.name): a histogram has the wrong unit")
    }
  }

  /// Whether every histogram has its expected unit, so that they can be added.
  private var hasUnits: Bool {
    func has(_ batches: Batches) -> Bool { batches.notifications.unit == .count && batches.bytes.unit == .bytes }
    return latency.hasUnits && has(batches) && binary.lossWindow.unit == .count
      && resources.loopLagUs.unit == .microseconds
      && phases.allSatisfy {
        $0.sendLagUs.unit == .microseconds && ($0.latency?.hasUnits ?? true) && ($0.batches.map(has) ?? true)
          && ($0.binary.lossWindow.map { $0.unit == .count } ?? true)
      }
  }

  // MARK: numbers

  private static func rates(of results: [RunResult], over measured: Double) -> Rates {
    if results.count == 1 { return results[0].rates }
    var rates = Rates()
    // A part that measured nothing has no rates, and adds nothing.
    func counted(_ path: KeyPath<Rates, Double?>) -> Double? {
      let sum = results.filter { $0.measuredS > 0 }.reduce(0 as Double?) { sum, result in
        both(sum, result.rates[keyPath: path]) { $0 + $1 * result.measuredS }
      }
      return sum.map { finite($0 / measured) }
    }
    rates.writtenPerS = counted(\.writtenPerS)
    rates.writtenBytesPerS = counted(\.writtenBytesPerS)
    let isBehind = results.contains { $0.rates.basis == .measuredAndDrain }
    rates.basis = results.contains { $0.rates.basis == nil } ? nil : isBehind ? .measuredAndDrain : .measured
    func base(_ result: RunResult, _ basis: Rates.Basis?) -> Double {
      let drain = result.phase(.drain)?.seconds ?? 0
      return basis == .measuredAndDrain ? result.measuredS + drain : result.measuredS
    }
    func accepted(_ result: RunResult) -> Double? {
      guard isBehind, result.rates.basis == .measured else {
        let base = base(result, result.rates.basis)
        return base > 0 ? result.rates.acceptedPerS.map { $0 * base } : 0
      }
      return result.phases.filter { $0.name == .measured || $0.name == .drain }
        .reduce(0) { $0 + Double($1.sendings.accepted) }
    }
    let accepted = results.reduce(0 as Double?) { both($0, accepted($1), +) }
    // As in the merged result: the longest of each phase.
    let drain = results.map { base($0, rates.basis) - $0.measuredS }.max() ?? 0
    let longest = measured + drain
    rates.acceptedPerS = longest > 0 ? accepted.map { finite($0 / longest) } : nil
    return rates
  }

  /// Joins the series, phases and timelines of all parts on one clock. A single part's stay unchanged.
  private mutating func joinCourses(of results: [RunResult]) {
    let delays = Self.startDelays(of: results)
    bins = nil
    series = Self.joined(zip(results, delays).map { ($0.series, delay: $1) })
    stalls = Self.joined(zip(results, delays).map { ($0.stalls, delay: $1) })
    timeline = Self.joined(
      zip(results, delays).map { ($0.timeline, connections: $0.connectionCount, delay: $1) })
  }

  private static func joined(_ parts: [(stalls: Stalls?, delay: Double)]) -> Stalls? {
    var joined = Stalls()
    for (stalls, delay) in parts {
      guard let stalls else { return nil }
      joined.count = sum(joined.count, stalls.count)
      joined.totalS = finite(joined.totalS + stalls.totalS)
      joined.longestMs = max(joined.longestMs, stalls.longestMs)
      joined.listed += stalls.listed.map { .init(tS: finite($0.tS + delay), ms: $0.ms) }
    }
    joined.listed.sort { $0.tS < $1.tS }
    joined.listed.removeLast(max(0, joined.listed.count - Stalls.maximumListed))
    return joined
  }

  /// Everything that adds up.
  private mutating func add(_ other: RunResult) {
    latency.merge(other.latency)
    batches.add(other.batches)
    binary.lossWindow.merge(other.binary.lossWindow)
    resources.loopLagUs.merge(other.resources.loopLagUs)
    notifications += other.notifications
    sendings += other.sendings
    schedule.skipped = sum(schedule.skipped, other.schedule.skipped)
    schedule.unsent = sum(schedule.unsent, other.schedule.unsent)
    connections += other.connections
    topics = both(topics, other.topics, Self.joined)
    if let others = other.feedback {
      if feedback == nil { feedback = others } else { feedback?.add(others) }
    }
    binary.errorResponses.merge(other.binary.errorResponses, uniquingKeysWith: sum)
    binary.answers.unresolved = sum(binary.answers.unresolved, other.binary.answers.unresolved)
    binary.answers.strayBytes = sum(binary.answers.strayBytes, other.binary.answers.strayBytes)
    resources.cpuUserS = finite(resources.cpuUserS + other.resources.cpuUserS)
    resources.cpuSystemS = finite(resources.cpuSystemS + other.resources.cpuSystemS)
    resources.maxRssBytes = sum(resources.maxRssBytes, other.resources.maxRssBytes)
    for phase in other.phases {
      if let index = phases.firstIndex(where: { $0.name == phase.name }) {
        phases[index].add(phase)
      } else {
        // Drain is the last phase.
        phases.insert(phase, at: phases.last?.name == .drain ? phases.count - 1 : phases.count)
      }
    }
  }

  /// The topics of both, those of the first in its order before others.
  private static func joined(_ first: [Topic], _ second: [Topic]) -> [Topic] {
    var topics = first
    for topic in second {
      if let index = topics.firstIndex(where: { $0.topic == topic.topic }) {
        topics[index].add(topic)
      } else {
        topics.append(topic)
      }
    }
    return topics
  }

  /// Whole seconds from the first start to each result's, so that seconds stay aligned and merging in steps gives the
  /// same result; 0 without a start time.
  private static func startDelays(of results: [RunResult]) -> [Double] {
    let starts = results.map { unixSeconds($0.started)?.rounded() }
    let first = starts.compactMap { $0 }.min() ?? 0
    return starts.map { ($0 ?? first) - first }
  }

  private static func joined(_ parts: [(series: [Sample], delay: Double)]) -> [Sample] {
    var seconds: [Double: Sample] = [:]
    for (series, delay) in parts {
      for sample in series {
        let second = finite(sample.tS.rounded(.down) + delay)
        seconds[second, default: .nothing].add(sample)
        seconds[second]?.tS = second
      }
    }
    return seconds.values.sorted { $0.tS < $1.tS }
  }

  private static func joined(_ timelines: [(timeline: Timeline, connections: Int, delay: Double)]) -> Timeline {
    var joined = Timeline()
    var first = 0
    for (timeline, connections, delay) in timelines {
      joined.omitted = sum(joined.omitted, timeline.omitted)
      for var span in timeline.spans {
        span.connection = sum(first, span.connection)
        (span.fromS, span.toS) = (finite(span.fromS + delay), finite(span.toS + delay))
        joined.spans.append(span)
      }
      first = sum(first, connections)
    }
    joined.spans.sort { ($0.fromS, $0.connection) < ($1.fromS, $1.connection) }
    return joined
  }

  /// The number of connection numbers in use: the plan's, or, in a merged result, those that occur.
  private var connectionCount: Int {
    let seen = timeline.spans.reduce(0) { max($0, sum($1.connection, 1)) }
    guard case .number(let planned) = plan["connections"], (0..<1e9).contains(planned) else { return seen }
    return max(seen, Int(planned))
  }

  // MARK: mismatches

  /// The settings that differ between the plans; paths of secrets are ignored.
  private static func differences(of parts: [Part]) -> [String] {
    let first = parts[0]
    return parts.dropFirst().compactMap { part in
      let (a, b) = (first.result.plan, part.result.plan)
      let names = Set(a.keys).union(b.keys).subtracting(["segment", "keylog"]).filter { a[$0] != b[$0] }.sorted()
      return names.isEmpty
        ? nil : "the plan of \(part.name) differs from that of \(first.name): \(names.joined(separator: ", "))"
    }
  }

  // MARK: the verdict

  private static func verdict(
    of parts: [Part], _ merged: RunResult, _ thresholds: [Threshold], _ warnings: inout [String]
  ) -> Verdict {
    var verdict = Verdict()
    let limits = parts.map(\.result.verdict.limitedBy)
    verdict.limitedBy = [.generator, .gateway].first { limits.contains($0) } ?? .schedule
    verdict.outcome = worst(of: parts.map(\.result.verdict.outcome))
    var reasons: [String] = []
    for part in parts {
      let said = part.result.verdict.reasons ?? []
      warnings.removeAll { said.contains($0) }
      // A merged result names its own parts.
      reasons += part.result.merged == nil ? said.map { "\(part.name): \($0)" } : said
    }
    verdict.reasons = unique(reasons)
    warnings += unique(reasons)
    verdict.invariants = merged.invariants(
      usesMarkers: parts.allSatisfy {
        $0.result.plan["markers"] != .text("off") && $0.result.plan["leave_unknown"] != .flag(true)
          && $0.result.interrupted?.cause != .lost
      })
    for part in parts {
      for invariant in part.result.verdict.invariants where !invariant.holds && !Missing.judges(invariant) {
        verdict.invariants.append(.init("\(part.name): \(invariant.name)", holds: false, detail: invariant.detail))
      }
    }
    let expressions = parts.flatMap { $0.result.verdict.thresholds.map(\.expression) + $0.result.plannedThresholds }
    for expression in unique(expressions + thresholds.map(\.expression)) {
      do {
        verdict.thresholds.append(try Threshold(expression).judge(merged))
      } catch {
        warnings.append("a threshold cannot be evaluated again: \(error)")
      }
    }
    return verdict
  }

  /// The thresholds of a segment's plan, which are judged on the merged result only.
  private var plannedThresholds: [String] {
    switch plan["threshold"] {
    case .list(let expressions): expressions
    case .text(let expression): [expression]
    default: []
    }
  }
}

/// `nil` if a part has no outcome and none has failed.
private func worst(of outcomes: [RunResult.Verdict.Outcome?]) -> RunResult.Verdict.Outcome? {
  if outcomes.contains(.failed) { return .failed }
  if outcomes.contains(nil) { return nil }
  return outcomes.contains(.unproven) ? .unproven : .proven
}

/// The joined value of two; `nil` if either is unknown.
private func both<Value>(_ a: Value?, _ b: Value?, _ join: (Value, Value) -> Value) -> Value? {
  guard let a, let b else { return nil }
  return join(a, b)
}

/// The distinct texts, in the order of their first occurrence.
func unique(_ texts: [String]) -> [String] {
  var seen: Set<String> = []
  return texts.filter { seen.insert($0).inserted }
}

extension RunResult.Notifications {
  fileprivate static func += (sum: inout Self, other: Self) {
    for path in [\.generated, \.accepted, \.rejected, \.unknown, \.abandoned, \.unproven]
      as [WritableKeyPath<Self, Int>]
    {
      sum.add(other, path)
    }
    // A run that is not to prune has pruned nothing.
    if let more = other.pruned { sum.pruned = Measurement.sum(sum.pruned ?? 0, more) }
  }
}

extension RunResult.Sendings {
  fileprivate static func += (sum: inout Self, other: Self) {
    for path in [\.written, \.resent, \.accepted, \.rejected, \.discarded, \.unknown, \.binary.markers]
      as [WritableKeyPath<Self, Int>]
    { sum.add(other, path) }
    sum.binary.markersAnswered = both(sum.binary.markersAnswered, other.binary.markersAnswered, Measurement.sum)
  }
}

extension RunResult.Connections {
  fileprivate static func += (sum: inout Self, other: Self) {
    for path in [\.attempted, \.opened, \.resumed, \.failed] as [WritableKeyPath<Self, Int>] { sum.add(other, path) }
    sum.asked = both(sum.asked, other.asked, Measurement.sum)
    sum.everUp = both(sum.everUp, other.everUp, Measurement.sum)
    sum.refused = both(sum.refused, other.refused, Measurement.sum)
    sum.closed.merge(other.closed, Measurement.sum)
    sum.suites = both(sum.suites, other.suites) { $0.merging($1, uniquingKeysWith: Measurement.sum) }
    sum.failures = both(sum.failures, other.failures) { $0.merging($1, uniquingKeysWith: Measurement.sum) }
  }
}

extension RunResult.Topic {
  fileprivate mutating func add(_ other: Self) {
    if share != other.share { share = nil }
    notifications += other.notifications
    sendings += other.sendings
    schedule.skipped = sum(schedule.skipped, other.schedule.skipped)
    schedule.unsent = sum(schedule.unsent, other.schedule.unsent)
    errorResponses.merge(other.errorResponses, uniquingKeysWith: sum)
    connections += other.connections
  }
}

extension RunResult.Phase {
  fileprivate mutating func add(_ other: Self) {
    notifications += other.notifications
    sendings += other.sendings
    skipped = sum(skipped, other.skipped)
    connections += other.connections
    binary.errorResponses.merge(other.binary.errorResponses, uniquingKeysWith: sum)
    sendLagUs.merge(other.sendLagUs)
    // Together they wrote over the longer of both.
    let (a, b) = (self.seconds, other.seconds)
    rates = both(rates, other.rates) { $0.joined(a, $1, b) }
    latency = both(latency, other.latency) { $0.merging($1) }
    batches = both(batches, other.batches) { $0.adding($1) }
    binary.lossWindow = both(binary.lossWindow, other.binary.lossWindow) { $0.merging($1) }
    seconds = max(seconds, other.seconds)
  }
}

extension LatencyHistogram {
  fileprivate func merging(_ other: Self) -> Self {
    var sum = self
    sum.merge(other)
    return sum
  }
}

extension RunResult.Rates {
  /// - Parameters:
  ///   - seconds: the length of this phase.
  ///   - otherSeconds: the length of the other phase.
  fileprivate func joined(_ seconds: Double, _ other: Self, _ otherSeconds: Double) -> Self {
    var sum = Self()
    let longest = max(seconds, otherSeconds)
    for path in [\.writtenPerS, \.acceptedPerS, \.writtenBytesPerS] as [WritableKeyPath<Self, Double?>] {
      // A phase of no length has no rates, and adds nothing.
      let counted = both(
        seconds > 0 ? self[keyPath: path].map { $0 * seconds } : 0,
        otherSeconds > 0 ? other[keyPath: path].map { $0 * otherSeconds } : 0, +)
      sum[keyPath: path] = longest > 0 ? counted.map { finite($0 / longest) } : nil
    }
    return sum
  }
}

extension RunResult.Batches {
  fileprivate mutating func add(_ other: Self) {
    notifications.merge(other.notifications)
    bytes.merge(other.bytes)
    flushReasons.merge(other.flushReasons, sum)
  }

  fileprivate func adding(_ other: Self) -> Self {
    var sum = self
    sum.add(other)
    return sum
  }
}

extension RunResult.Sample {
  /// A second in which nothing was done, and that is known.
  fileprivate static var nothing: Self {
    var sample = Self()
    (sample.writes, sample.closedByCause, sample.stalledMs) = (0, [:], 0)
    return sample
  }

  fileprivate mutating func add(_ other: Self) {
    for path in [
      \.written, \.accepted, \.errors, \.skipped, \.opened, \.closed, \.up, \.backlog, \.rssBytes,
    ] as [WritableKeyPath<Self, Int>] {
      self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
    }
    errorsByStatus.merge(other.errorsByStatus, uniquingKeysWith: sum)
    writes = both(writes, other.writes, sum)
    if let more = other.pruned { pruned = sum(pruned ?? 0, more) }
    if let more = other.feedbackTuples { feedbackTuples = sum(feedbackTuples ?? 0, more) }
    closedByCause = both(closedByCause, other.closedByCause) { $0.merging($1, sum) }
    sendLagP99Us = max(sendLagP99Us, other.sendLagP99Us)
    stalledMs = both(stalledMs, other.stalledMs, max)
    loopLagP99Us = max(loopLagP99Us, other.loopLagP99Us)
    cpu = finite(cpu + other.cpu)
  }
}

private protocol Counts {}
extension RunResult.Notifications: Counts {}
extension RunResult.Sendings: Counts {}
extension RunResult.Connections: Counts {}

extension Counts {
  fileprivate mutating func add(_ other: Self, _ path: WritableKeyPath<Self, Int>) {
    self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
  }
}
