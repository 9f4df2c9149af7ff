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
  /// - Parts are taken in the order of their segments, whatever order they are given in, and listed in `parts`.
  /// - Stalls are concatenated; bins are dropped. A single part keeps its series, bins, stalls and timeline.
  /// - Values absent from an old document are absent from the result: writes, causes, cipher suites and reasons of
  ///   failures.
  /// - Timelines are joined likewise; the connections of each part are numbered after the previous parts'.
  /// - Phases are joined by name, resources add up, also most memory: it may have been on several machines.
  /// - Invariants and thresholds are evaluated again; an invariant that fails in a part stays failed, even if another
  ///   part's numbers compensate. Missing parts are a failed invariant as well. The limit is the generator if it was
  ///   any part's, otherwise the gateway if it was any part's.
  /// - The start is that of all parts, if all were to begin at the same time: the latest, with all missed notifications.
  /// - The environment is that of the first part, with all hosts. The plan is that of the whole stream (`of_whole`), if
  ///   the parts agree in what is divided among them, otherwise that of the first part. Labels are those that all parts
  ///   have.
  ///
  /// Mismatches that do not prevent merging are in `warnings`, after those of the parts: differing plans, missing or
  /// repeated segments, measured phases that do not overlap.
  ///
  /// - Parameters:
  ///   - parts: the results of the segments, each with a name for messages.
  ///   - unreadable: documents that should have been parts and could not be read, each with its name and the reason.
  ///   - allowsMissing: segments, documents and ends of runs may be missing; they stay warnings.
  ///   - thresholds: judged on the merged result, with those of the parts' plans.
  ///   - ledger: the gateway's books of the same runs, which tell how far the clocks of machines are from the gateway's.
  /// - Throws: a `MergeError` without parts, or if the parts differ in kind, schema or method of measurement, or a
  ///   histogram has the wrong unit.
  public static func merging(
    _ parts: [Part], unreadable: [String] = [], allowsMissing: Bool = false, thresholds: [Threshold] = [],
    ledger: Ledger? = nil
  ) throws(MergeError) -> RunResult {
    var merger = Merger()
    for part in parts { try merger.add(part) }
    return try merger.result(
      unreadable: unreadable, allowsMissing: allowsMissing, thresholds: thresholds, ledger: ledger)
  }

  /// Whether every histogram has its expected unit, so that they can be added.
  var hasUnits: Bool {
    func has(_ batches: Batches) -> Bool { batches.notifications.unit == .count && batches.bytes.unit == .bytes }
    return latency.hasUnits && has(batches) && binary.lossWindow.unit == .count
      && resources.loopLagUs.unit == .microseconds
      && phases.allSatisfy {
        $0.sendLagUs.unit == .microseconds && ($0.latency?.hasUnits ?? true) && ($0.batches.map(has) ?? true)
          && ($0.binary.lossWindow.map { $0.unit == .count } ?? true)
      }
  }

  // MARK: numbers

  /// Adds everything that adds up, and is the same in whatever order it is added.
  mutating func add(_ other: RunResult) {
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

  /// The number of connection numbers in use: those that were asked for, or, in a merged result, those that occur.
  var connectionCount: Int {
    let seen = timeline.spans.reduce(0) { max($0, sum($1.connection, 1)) }
    if let asked = connections.asked, (0..<1_000_000_000).contains(asked) { return max(seen, asked) }
    guard plan["of_whole"] != .flag(true), case .number(let planned) = plan["connections"], (0..<1e9).contains(planned)
    else { return seen }
    return max(seen, Int(planned))
  }

  /// The thresholds of a segment's plan, which are judged on the merged result only.
  var plannedThresholds: [String] {
    switch plan["threshold"] {
    case .list(let expressions): expressions
    case .text(let expression): [expression]
    default: []
    }
  }
}

/// The joined value of two; `nil` if either is unknown.
func both<Value>(_ a: Value?, _ b: Value?, _ join: (Value, Value) -> Value) -> Value? {
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
  static var nothing: Self {
    var sample = Self()
    (sample.writes, sample.closedByCause, sample.stalledMs) = (0, [:], 0)
    return sample
  }

  mutating func add(_ other: Self) {
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
