import Foundation
import Testing

@testable import Measurement

/// Merging lists the fields by hand. These tests see one that it does not list: it would be the first part's.
@Suite("No field is left out of a merged result")
struct MergedFieldsTests {
  // MARK: two parts that differ in everything

  private static func histogram(_ unit: LatencyHistogram.Unit, _ number: Int) -> LatencyHistogram {
    var histogram = LatencyHistogram(unit)
    histogram.record(1_000 * number, times: number)
    return histogram
  }

  private static func latency(_ number: Int) -> RunResult.Latency {
    var latency = RunResult.Latency.recording
    for (histogram, more) in zip(RunResult.Latency.histograms, 1...) {
      switch histogram.place {
      case .always(let path), .emptyBefore(let path): latency[keyPath: path].record(7, times: number * more)
      case .absentBefore(let path, _): latency[keyPath: path]?.record(7, times: number * more)
      }
    }
    return latency
  }

  private static func batches(_ number: Int) -> RunResult.Batches {
    var batches = RunResult.Batches()
    batches.notifications = histogram(.count, number)
    batches.bytes = histogram(.bytes, number)
    batches.flushReasons = [.full: number]
    return batches
  }

  private static func rates(_ number: Int) -> RunResult.Rates {
    var rates = RunResult.Rates()
    (rates.writtenPerS, rates.acceptedPerS, rates.writtenBytesPerS) = (Double(number), Double(number), Double(number))
    rates.basis = number == 1 ? .measured : .measuredAndDrain
    return rates
  }

  private static func connections(_ number: Int) -> RunResult.Connections {
    var connections = RunResult.Connections()
    (connections.asked, connections.everUp) = (number, number)
    (connections.attempted, connections.opened) = (number, number)
    (connections.resumed, connections.failed, connections.refused) = (number, number, number)
    connections.closed = [.rejected: number]
    (connections.suites, connections.failures) = (["TLS": number], ["refused": number])
    return connections
  }

  private static func sendings(_ number: Int) -> RunResult.Sendings {
    var sendings = RunResult.Sendings()
    (sendings.written, sendings.resent, sendings.accepted) = (number, number, number)
    (sendings.rejected, sendings.discarded, sendings.unknown) = (number, number, number)
    (sendings.binary.markers, sendings.binary.markersAnswered) = (number, number)
    return sendings
  }

  private static func notifications(_ number: Int) -> RunResult.Notifications {
    var notifications = RunResult.Notifications()
    (notifications.generated, notifications.accepted, notifications.rejected) = (number, number, number)
    (notifications.unknown, notifications.abandoned, notifications.unproven) = (number, number, number)
    notifications.pruned = number
    return notifications
  }

  private static func topic(_ number: Int) -> RunResult.Topic {
    var topic = RunResult.Topic("com.example.app", share: 0.5)
    (topic.notifications, topic.sendings) = (notifications(number), sendings(number))
    (topic.schedule.skipped, topic.schedule.unsent) = (number, number)
    (topic.errorResponses, topic.connections) = (["8": number], connections(number))
    return topic
  }

  private static func feedback(_ number: Int) -> RunResult.Feedback {
    var feedback = RunResult.Feedback()
    for path in RunResult.Feedback.counts { feedback[keyPath: path] = number }
    (feedback.prunes, feedback.failures) = (number == 1, ["refused": number])
    (feedback.tokens, feedback.listedTokens) = (number, number)
    return feedback
  }

  private static func phase(_ number: Int) -> RunResult.Phase {
    var phase = RunResult.Phase()
    (phase.name, phase.seconds, phase.skipped) = (.measured, Double(number), number)
    (phase.notifications, phase.sendings, phase.connections) = (
      notifications(number), sendings(number), connections(number)
    )
    phase.binary.errorResponses = ["8": number]
    phase.sendLagUs = histogram(.microseconds, number)
    (phase.rates, phase.latency, phase.batches) = (rates(number), latency(number), batches(number))
    phase.rates?.basis = nil
    phase.binary.lossWindow = histogram(.count, number)
    return phase
  }

  private static func sample(_ number: Int) -> RunResult.Sample {
    var sample = RunResult.Sample()
    sample.tS = Double(number) / 10
    (sample.written, sample.writes, sample.accepted) = (number, number, number)
    (sample.errors, sample.errorsByStatus, sample.skipped) = (number, ["8": number], number)
    (sample.pruned, sample.feedbackTuples) = (number, number)
    (sample.opened, sample.closed, sample.closedByCause) = (number, number, [.rejected: number])
    (sample.up, sample.backlog, sample.rssBytes) = (number, number, number)
    (sample.sendLagP99Us, sample.loopLagP99Us) = (number, number)
    (sample.stalledMs, sample.cpu) = (Double(number), Double(number))
    return sample
  }

  private static func environment(_ number: Int) -> Environment {
    var environment = Environment()
    (environment.host, environment.hosts) = ("host \(number)", ["host \(number)", "other \(number)"])
    (environment.kernel, environment.cpu) = ("kernel \(number)", "cpu \(number)")
    (environment.cores, environment.memoryBytes) = (number, number)
    (environment.openssl, environment.apnscope) = ("OpenSSL \(number)", "0.\(number)")
    (environment.commit, environment.command) = ("\(number)", ["load \(number)"])
    return environment
  }

  private static func part(_ number: Int) -> RunResult {
    var part = RunResult()
    (part.measuredBy, part.started) = (2, "2026-01-02T03:04:05.000Z")
    var start = RunResult.Start()
    (start.planned, start.actual) = ("2026-01-02T03:04:06.000Z", "2026-01-02T03:04:06.00\(number)Z")
    (start.lateS, start.missed) = (Double(number), number)
    (start.clockSynchronised, start.clockErrorS) = (number == 1, Double(number))
    part.start = start
    part.environment = environment(number)
    part.plan = ["segment": .text("\(number)/2"), "connections": .number(Double(number))]
    part.replay = .init()
    part.labels = ["number": "\(number)", "both": "same"]
    part.replay?.notifications = number
    part.replay?.lengthS = Double(number)
    part.replay?.skippedRecords = number
    part.verdict.outcome = number == 1 ? .proven : .unproven
    part.verdict.reasons = ["reason \(number)"]
    part.verdict.limitedBy = number == 1 ? .gateway : .generator
    part.verdict.thresholds = [
      .init(
        expression: "unknown<\(number)", value: Double(number), passed: number == 1,
        reason: number == 1 ? "one" : "two")
    ]
    part.verdict.invariants = [.init("invariant \(number)", holds: number == 1, detail: "\(number)")]
    part.interrupted = .init(phase: number == 1 ? .measured : .drain, afterS: Double(number), cause: .lost)
    part.merged = .init()
    part.merged?.runs = number
    part.merged?.shortestS = Double(number)
    part.merged?.fromS = Double(number)
    part.merged?.toS = Double(1_000 + number)
    part.measuredS = Double(number)
    (part.notifications, part.sendings) = (notifications(number), sendings(number))
    (part.schedule.skipped, part.schedule.unsent) = (number, number)
    part.rates = rates(number)
    part.binary.errorResponses = ["8": number]
    (part.binary.answers.unresolved, part.binary.answers.strayBytes) = (number, number)
    part.connections = connections(number)
    part.feedback = feedback(number)
    part.topics = [topic(number)]
    (part.latency, part.batches, part.binary.lossWindow) = (latency(number), batches(number), histogram(.count, number))
    part.series = [sample(number)]
    part.bins = .init()
    part.bins?.fromS = Double(number)
    part.bins?.lengthS = Double(number)
    part.bins?.written = [number]
    part.phases = [phase(number)]
    part.stalls = .init()
    part.stalls?.count = number
    part.stalls?.totalS = Double(number)
    part.stalls?.longestMs = Double(number)
    part.stalls?.listed = [.init(tS: Double(number), ms: Double(number))]
    part.timeline.omitted = number
    part.timeline.spans = [
      .init(connection: number, number == 1 ? .up : .handshake, fromS: Double(number), toS: Double(2 * number))
    ]
    (part.resources.cpuUserS, part.resources.cpuSystemS) = (Double(number), Double(number))
    (part.resources.maxRssBytes, part.resources.loopLagUs) = (number, histogram(.microseconds, number))
    part.warnings = ["warning \(number)"]
    var segment = RunResult.Segment(part)
    segment.clockOffsetS = Double(number)
    (segment.cpuCores, segment.sendLagP99Us) = (Double(number), number)
    part.parts = [segment]
    return part
  }

  /// The stored properties that are the same in both, however deep they are.
  private static func same(_ a: Any, _ b: Any, at path: String = "") -> [String] {
    if let a = a as? LatencyHistogram, let b = b as? LatencyHistogram { return a == b ? [path] : [] }
    let (inA, inB) = (Mirror(reflecting: a), Mirror(reflecting: b))
    let isWhole = inA.children.isEmpty || inA.displayStyle == .dictionary || inA.children.count != inB.children.count
    guard !isWhole else { return "\(a)" == "\(b)" ? [path] : [] }
    return zip(inA.children, inB.children).flatMap { x, y in
      // The elements of arrays and optionals have no names.
      same(x.value, y.value, at: x.label.map { $0 == "some" ? path : "\(path).\($0)" } ?? path)
    }
  }

  @Test("The two parts differ in every stored property that may differ, so each is seen")
  func parts() {
    let same = Set(Self.same(Self.part(1), Self.part(2)))
    // What has to be the same in parts of one load, or has one value only.
    let mayBe = [
      ".schema", ".kind", ".measuredBy", ".started", ".start.planned", ".interrupted.cause", ".merged.together",
      ".phases.name",
      ".phases.rates.basis", ".topics.topic", ".topics.share", ".parts.started", ".parts.interrupted.cause",
    ]
    #expect(same.subtracting(mayBe) == [], "set these in the parts")
    #expect(Self.same(RunResult(), RunResult()).count > 30)
  }

  // MARK: what becomes of each field

  private enum Rule {
    case sum, largest
    /// It is told of the first part only.
    case first
    /// Lists one after the other.
    case all
    /// It is worked out of the merged numbers, or of more than this field.
    case anew
    case dropped
  }

  /// By the names in JSON, with those of lists' elements behind the lists'; the longest beginning counts.
  private static let rules: [String: Rule] = [
    "": .sum,
    "schema": .first, "kind": .first, "measured_by": .first, "started": .first,
    "start.planned": .first, "start.actual": .anew, "start.late_s": .largest, "start.clock_synchronised": .anew,
    "start.clock_error_s": .largest, "environment": .first,
    "environment.hosts": .all, "plan": .first, "plan.segment": .anew, "replay": .first, "verdict": .anew,
    "interrupted": .first, "labels.both": .first, "labels.number": .dropped, "merged": .anew, "parts": .all,
    "measured_s": .largest,
    "topics.topic": .first, "topics.share": .first, "rates": .anew, "bins": .dropped,
    "feedback.prunes": .anew, "feedback.tokens": .dropped, "feedback.listed_tokens": .dropped,
    "series.t_s": .anew, "series.send_lag_p99_us": .largest, "series.loop_lag_p99_us": .largest,
    "series.stalled_ms": .largest, "phases.name": .first, "phases.seconds": .largest, "phases.rates": .anew,
    "stalls.longest_ms": .largest, "stalls.listed": .all, "timeline.spans": .all, "warnings": .anew,
  ]

  private static func rule(of path: String) -> (beginning: String, rule: Rule) {
    let beginning = rules.keys.filter { $0.isEmpty || path == $0 || path.hasPrefix($0 + ".") }
      .max { $0.count < $1.count }
    return (beginning ?? "", rules[beginning ?? ""] ?? .sum)
  }

  private static func document(_ result: RunResult) throws -> [String: Any] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return try #require(JSONSerialization.jsonObject(with: encoder.encode(result)) as? [String: Any])
  }

  /// Every number, text and list of a document by its path; of a histogram its count, of a list's elements the first.
  private static func leaves(_ value: Any, at path: String = "", into leaves: inout [String: Any]) {
    if let object = value as? [String: Any] {
      if object["counts"] != nil, object["p999"] != nil {
        leaves[path] = object["count"]
        return
      }
      for (name, value) in object {
        Self.leaves(value, at: path.isEmpty ? name : "\(path).\(name)", into: &leaves)
      }
    } else if let list = value as? [Any], list.first is [String: Any], rule(of: path).rule != .all {
      Self.leaves(list[0], at: path, into: &leaves)
    } else {
      leaves[path] = value
    }
  }

  @Test("Each field of a merged document is of both parts, or of that which its rule says")
  func merged() throws {
    let parts = [Self.part(1), Self.part(2)]
    let results = parts + [try MergingTests.merge(parts)]
    let all = try results.map { result in
      var leaves: [String: Any] = [:]
      Self.leaves(try Self.document(result), into: &leaves)
      return leaves
    }
    let (a, b, both) = (all[0], all[1], all[2])
    #expect(a.count > 120 && a.keys == b.keys)
    func number(_ value: Any?) -> Double { (value as? NSNumber)?.doubleValue ?? .nan }
    func count(_ value: Any?) -> Int { (value as? [Any])?.count ?? -1 }
    for (path, value) in a {
      switch Self.rule(of: path).rule {
      case .sum: #expect(number(both[path]) == number(value) + number(b[path]), "\(path) is not of both parts")
      case .largest: #expect(number(both[path]) == max(number(value), number(b[path])), "\(path) is not the largest")
      case .first: #expect("\(both[path] ?? "nothing")" == "\(value)", "\(path) is not the first part's")
      case .all: #expect(count(both[path]) == count(value) + count(b[path]), "\(path) does not list both parts'")
      case .anew: break
      case .dropped: #expect(both[path] == nil, "\(path) is there")
      }
    }
    // Every rule is of a field, also in what is merged.
    #expect(Set(a.keys.map { Self.rule(of: $0).beginning }) == Set(Self.rules.keys))
    let kept = Self.rules.filter { $0.value != .dropped }.keys
    #expect(Set(both.keys.map { Self.rule(of: $0).beginning }) == Set(kept))
  }

  @Test("Each latency has its line in the list that reading, writing and merging go through")
  func latencies() throws {
    typealias Latency = RunResult.Latency
    #expect(Latency.histograms.map(\.key) == Latency.CodingKeys.allCases)
    #expect(Latency.histograms.count == Mirror(reflecting: Latency()).children.count)
    let latency = Self.latency(3)
    let data = try JSONEncoder().encode(latency)
    #expect(try JSONDecoder().decode(Latency.self, from: data) == latency)
    #expect(try JSONDecoder().decode(Latency.self, from: JSONEncoder().encode(Latency())) == Latency())
    // Two lines for one property would leave another one empty.
    let counts = Mirror(reflecting: latency).children.compactMap { ($0.value as? LatencyHistogram)?.count }
    #expect(counts == (1...counts.count).map { 3 * $0 } && counts.count == Latency.histograms.count)
    #expect(latency.hasUnits && Latency().hasUnits)
  }

  @Test("What one of two latencies does not tell is not told of their sum")
  func untold() {
    var (told, untold) = (RunResult.Latency.recording, RunResult.Latency())
    untold.merge(told)
    told.merge(RunResult.Latency())
    #expect(untold.sendLagOwnUs == nil && told.sendLagOwnUs == nil && told == untold)
  }

  @Test("Every field of a document is read as it was written", arguments: [1, 2])
  func readAgain(number: Int) throws {
    let part = Self.part(number)
    #expect(try JSONDecoder().decode(RunResult.self, from: JSONEncoder().encode(part)) == part)
  }

  @Test("Counts that documents lack from before they were counted are 0")
  func earlier() throws {
    var document = try #require(
      JSONSerialization.jsonObject(with: JSONEncoder().encode(Self.part(2))) as? [String: Any])
    for (part, name) in [("schedule", "unsent"), ("notifications", "unproven")] {
      var counts = try #require(document[part] as? [String: Any])
      #expect(counts.removeValue(forKey: name) as? Int == 2)
      document[part] = counts
    }
    #expect(document.removeValue(forKey: "answers") != nil)
    let read = try JSONDecoder().decode(RunResult.self, from: JSONSerialization.data(withJSONObject: document))
    var expected = Self.part(2)
    (expected.schedule.unsent, expected.notifications.unproven, expected.binary.answers) = (0, 0, .init())
    #expect(read == expected)
    #expect(RunResult.Schedule().neverSent == 0 && expected.schedule.neverSent == 2)
  }

  @Test("A histogram of another unit is found wherever it stands")
  func units() throws {
    var wrong: [(inout RunResult) -> Void] = [
      { $0.latency.sendLagOwnUs = LatencyHistogram(.bytes) },
      { $0.phases[0].binary.lossWindow = LatencyHistogram(.bytes) },
      { $0.phases[0].latency?.drainUs = LatencyHistogram(.bytes) },
      { $0.phases[0].latency?.sendLagGatewayUs = LatencyHistogram(.bytes) },
      { $0.phases[0].batches?.bytes = LatencyHistogram(.count) },
      { $0.phases[0].batches?.notifications = LatencyHistogram(.bytes) },
    ]
    let paths: [WritableKeyPath<RunResult, LatencyHistogram>] = [
      \.latency.sendLagUs, \.latency.errorUs, \.latency.tlsResumedUs, \.batches.notifications, \.batches.bytes,
      \.binary.lossWindow, \.resources.loopLagUs, \.phases[0].sendLagUs,
    ]
    for path in paths {
      wrong.append { $0[keyPath: path] = LatencyHistogram($0[keyPath: path].unit == .bytes ? .count : .bytes) }
    }
    let part = Self.part(1)
    _ = try MergingTests.merge([part])
    for change in wrong {
      var result = part
      change(&result)
      #expect(result != part)
      #expect(throws: RunResult.MergeError(description: "0.json: a histogram has the wrong unit")) {
        try MergingTests.merge([result])
      }
    }
    // What a document lacks has no unit.
    var older = part
    (older.latency.sendLagOwnUs, older.phases[0].latency, older.phases[0].batches) = (nil, nil, nil)
    older.phases[0].binary.lossWindow = nil
    _ = try MergingTests.merge([older])
  }
}
