import Foundation
import TestSupport
import Testing

@testable import Measurement

/// What a merged result must not be green without.
@Suite("Missing parts of a merged result")
struct MissingPartsTests {
  private static func parts(_ segments: [String]) -> [RunResult] {
    var random = SeededGenerator(seed: 11)
    return segments.map { MergingTests.result(&random, segment: $0) }
  }

  private static func merge(
    _ results: [RunResult], unreadable: [String] = [], allowsMissing: Bool = false, thresholds: [String] = []
  ) throws -> RunResult {
    try RunResult.merging(
      results.enumerated().map { RunResult.Part("\($0).json", $1) }, unreadable: unreadable,
      allowsMissing: allowsMissing, thresholds: thresholds.map { try Threshold($0) })
  }

  private static func broken(_ result: RunResult) -> [String] {
    result.verdict.invariants.filter { !$0.holds }.map { "\($0.name): \($0.detail)" }
  }

  @Test("Three of four segments are no whole: 'merge 1.json 2.json 4.json' was three ticks and 0")
  func missing() throws {
    let merged = try Self.merge(Self.parts(["1/4", "2/4", "4/4"]))
    #expect(Self.broken(merged) == ["every segment is there, once: 3/4 is missing"])
    #expect(merged.warnings == ["segments are missing: 3/4"])
    let allowed = try Self.merge(Self.parts(["1/4", "2/4", "4/4"]), allowsMissing: true)
    #expect(Self.broken(allowed) == [])
    #expect(!allowed.verdict.invariants.contains { $0.name.contains("segment") })
    #expect(allowed.warnings == merged.warnings)
    // The missing one is added to either.
    let rest = Self.parts(["3/4"])
    for part in [merged, allowed] { #expect(Self.broken(try Self.merge([part] + rest)) == []) }
  }

  @Test(
    "A segment that is there twice, or is of another stream, is no whole, whatever may be missing",
    arguments: [["1/2", "2/2", "2/2"], ["1/2", "2/3"], ["1/2", "half"]])
  func misfits(segments: [String]) throws {
    for allowed in [false, true] {
      #expect(Self.broken(try Self.merge(Self.parts(segments), allowsMissing: allowed)).count == 1)
    }
  }

  @Test("Documents that could not be read are missing, also when every segment is there")
  func unreadable() throws {
    let parts = Self.parts(["1/2", "2/2"])
    let merged = try Self.merge(parts, unreadable: ["3.json is empty"])
    #expect(Self.broken(merged) == ["every document could be read: 3.json is empty"])
    #expect(merged.warnings == ["3.json is empty"])
    let allowed = try Self.merge(parts, unreadable: ["3.json is empty"], allowsMissing: true)
    #expect(Self.broken(allowed) == [] && allowed.warnings == ["3.json is empty"])
  }

  @Test("While segments are missing, documents that could not be read may be those")
  func unreadableSegments() throws {
    let merged = try Self.merge(Self.parts(["1/3"]), unreadable: ["2.json is empty"])
    #expect(Self.broken(merged) == ["every segment is there, once: 2/3 is missing, 3/3 is missing"])
    let strange = try Self.merge(Self.parts(["1/3", "half"]), unreadable: ["2.json is empty"])
    #expect(
      Self.broken(strange) == [
        "every segment is there, once: 1.json: 'half' is not a segment",
        "every document could be read: 2.json is empty",
      ])
    #expect(strange.warnings == ["1.json: 'half' is not a segment", "2.json is empty"])
  }

  @Test("A lost run says after how many seconds, and no longer what assumed its end")
  func lostWords() {
    var result = Self.parts(["1/1"])[0]
    (result.verdict.reasons, result.warnings) = (["one is open"], ["one is open", "stalled"])
    result.markLost(in: .drain, afterS: 4.26)
    let reason = "the run did not finish: these are its books after 4.3 s of the phase 'drain'"
    #expect(result.warnings == [reason, "stalled"] && result.verdict.reasons == [reason])
    #expect(result.verdict.invariants.count == 3)
  }

  @Test("A lost run balances with what it left open as unknown, and makes no whole", arguments: seeds(3, of: 20))
  func lost(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var parts = (1...3).map { MergingTests.result(&random, segment: "\($0)/3") }
    let open = random.number(0...1_000)
    parts[1].notifications.generated += open
    parts[1].sendings.written += open
    parts[1].verdict.thresholds = [.init(expression: "unknown<1", value: 0, passed: true)]
    parts[1].markLost(in: .measured, afterS: 4)
    #expect(parts[1].notifications.unknown == open && parts[1].sendings.unknown == open)
    #expect(parts[1].phases.last?.sendings.unknown == open)
    #expect(parts[1].interrupted == .init(phase: .measured, afterS: 4, cause: .lost))
    #expect(Self.broken(parts[1]) == ["every run came to its end: these are the last books that were saved"])
    #expect(parts[1].verdict.thresholds == [])
    #expect(parts[1].verdict.outcome == .unproven && parts[1].notifications.unproven >= open)
    #expect(parts[1].verdict.reasons?.count == 1 && parts[1].warnings.first == parts[1].verdict.reasons?.first)

    let merged = try Self.merge(parts)
    #expect(merged.notifications.unknown == open && merged.interrupted?.cause == .lost)
    let what = "1.json is of a run that did not come to its end"
    #expect(Self.broken(merged) == ["every run came to its end: \(what)"])
    #expect(merged.warnings.contains(what))
    let allowed = try Self.merge(parts, allowsMissing: true)
    #expect(Self.broken(allowed) == [] && allowed.warnings.contains(what))
    // It stays lost, under its own name.
    let steps = try Self.merge([try Self.merge(Array(parts[..<2]), allowsMissing: true), parts[2]])
    #expect(Self.broken(steps) == Self.broken(merged))
    #expect(steps.notifications == merged.notifications && steps.sendings == merged.sendings)
  }

  @Test("Conditions that segments were given, and those of the merge, are judged once, on the whole")
  func thresholds() throws {
    var parts = Self.parts(["1/2", "2/2"])
    for index in parts.indices {
      parts[index].plan["threshold"] = .list(["written_per_s>100", "skipped>1"])
      parts[index].rates.writtenPerS = 60
    }
    let merged = try Self.merge(parts, thresholds: ["written_per_s>100", "written_per_s>130"])
    #expect(merged.verdict.thresholds.map(\.expression) == ["written_per_s>100", "skipped>1", "written_per_s>130"])
    #expect(merged.verdict.thresholds.map(\.passed) == [true, true, false])
  }
}

/// A rate is one that was.
@Suite("Segments that ran together, and those that did not")
struct TogetherTests {
  /// Runs of ten measured seconds, so many seconds after the first.
  private static func parts(at starts: [Double]) -> [RunResult] {
    var random = SeededGenerator(seed: 12)
    return starts.enumerated().map { number, start in
      var result = MergingTests.result(&random, segment: "\(number + 1)/\(starts.count)")
      let tenths = Int((start * 10).rounded())
      result.started = "2026-11-21T09:22:\(10 + tenths / 10).\(tenths % 10)00Z"
      (result.rates.writtenPerS, result.rates.acceptedPerS, result.rates.writtenBytesPerS) = (2_000, 2_000, 2e5)
      for index in result.series.indices {
        result.series[index].tS = Double(index)
        result.series[index].written = 2_000
      }
      result.timeline.spans = [.init(connection: 0, .up, fromS: 0, toS: 10)]
      return result
    }
  }

  @Test(
    "Two waves that follow one another have a series by the clock and no rate: they were 8,000/s, never above 4,000")
  func waves() throws {
    let merged = try MergingTests.merge(Self.parts(at: [0, 0.1, 16, 16.1]))
    #expect(merged.rates == RunResult.Rates() && merged.measuredS == 0)
    #expect(merged.merged?.together == false && merged.merged?.runs == 4)
    // A rate that there is not is absent, also in the document; so is that of a phase of no length.
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let document = try #require(JSONSerialization.jsonObject(with: encoder.encode(merged)) as? [String: Any])
    #expect((document["rates"] as? [String: Any])?.isEmpty == true)
    #expect(merged.series.map(\.written).max() == 4_000)
    #expect(merged.series.map(\.tS) == (0..<10).map(Double.init) + (16..<26).map(Double.init))
    #expect(merged.timeline.spans.map(\.fromS) == [0, 0, 16, 16])
    #expect(merged.warnings.count == 1 && merged.warnings[0].hasPrefix("the measured phases overlap for 0.0 s only"))
    for name in ["written_per_s>1", "accepted_per_s<1M"] {
      let judged = try Threshold(name).judge(merged)
      #expect(!judged.passed && judged.reason == "the segments did not run together")
    }
    #expect(try Threshold("send_lag_p99<3600s").judge(merged).reason != "the segments did not run together")
  }

  @Test(
    "Together is nine tenths of the shortest measured phase",
    arguments: [([0, 1], true), ([0, 1.1], false), ([0, 0.5, 1], true), ([0.6, 0, 1.2], false)] as [([Double], Bool)])
  func limit(starts: [Double], together: Bool) throws {
    let merged = try MergingTests.merge(Self.parts(at: starts))
    #expect(merged.merged?.together == together)
    #expect((merged.rates.writtenPerS != nil) == together && (merged.measuredS > 0) == together)
    #expect(merged.notifications.generated > 0)
  }

  @Test("The measured phase of a run begins after those before it, and is as long as was measured")
  func spans() throws {
    func run(_ measured: Double, before: [Double], phase: Double) -> RunResult {
      var result = RunResult()
      (result.started, result.measuredS) = ("1970-01-01T00:01:40Z", measured)
      result.phases = zip([RunPhase.connect, .warmUp], before).map { name, seconds in
        var phase = RunResult.Phase()
        (phase.name, phase.seconds) = (name, seconds)
        return phase
      }
      var last = RunResult.Phase()
      (last.name, last.seconds) = (.measured, phase)
      result.phases.append(last)
      return result
    }
    var merged = try #require(
      together([run(10, before: [1, 2], phase: 10), run(9.5, before: [1.5, 2], phase: 10)]))
    #expect(merged.fromS == 103.5 && merged.toS == 113 && merged.shortestS == 9.5 && merged.together)
    #expect(merged.runs == 2 && merged.overlapS == 9.5)
    // Its length is of the phase, where the result has none.
    merged = try #require(together([run(0, before: [], phase: 4), run(5, before: [3], phase: 5)]))
    #expect(merged.shortestS == 4 && merged.fromS == 103 && merged.toS == 104 && !merged.together)
    // No overlap is none, and not less.
    merged = try #require(together([run(1, before: [], phase: 1), run(1, before: [3], phase: 1)]))
    #expect(merged.fromS == 103 && merged.toS == 101 && merged.overlapS == 0 && !merged.together)
    // A second could be within one of an unknown time.
    var short = [run(1, before: [], phase: 1), run(1, before: [], phase: 1)]
    short[0].started = "some day"
    merged = try #require(together(short))
    #expect(merged.fromS == nil && merged.toS == nil && merged.overlapS == nil && !merged.together)
    #expect(together([run(1, before: [], phase: 1)]) == nil && together([]) == nil)
  }

  private func together(_ results: [RunResult]) -> RunResult.Merged? {
    RunResult.together(
      results.map(\.measuredSpan), isOfOneRun: results.count == 1 && results[0].merged == nil)
  }

  @Test("Nobody measured anything: there is nothing to warn of")
  func nothing() throws {
    var parts = Self.parts(at: [0, 50])
    for index in parts.indices { (parts[index].measuredS, parts[index].phases) = (0, []) }
    let merged = try MergingTests.merge(parts)
    #expect(merged.warnings == [] && merged.merged?.together == true && merged.rates == RunResult.Rates())
  }

  @Test("Merging in steps comes to the same, whatever the order", arguments: seeds(4, of: 20))
  func steps(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let parts = Self.parts(at: (0..<5).map { _ in Double(random.number(0...(seed % 2 == 0 ? 9 : 200))) / 10 })
    let whole = try MergingTests.merge(parts)
    let cut = random.number(1...4)
    let halves = [Array(parts[..<cut]), Array(parts[cut...])]
    let stepwise = try MergingTests.merge(try halves.map { try MergingTests.merge($0) })
    #expect(stepwise.merged == whole.merged)
    #expect(stepwise.series == whole.series && stepwise.timeline == whole.timeline)
    #expect(stepwise.measuredS == whole.measuredS && stepwise.warnings == whole.warnings)
    #expect((stepwise.rates.writtenPerS == nil) == (whole.rates.writtenPerS == nil))
    #expect(abs((stepwise.rates.writtenPerS ?? 0) - (whole.rates.writtenPerS ?? 0)) < 1e-6)
    #expect(try MergingTests.merge([whole]) == whole)
  }

  @Test("Runs of a document that does not tell when it measured have no rate; who measured nothing takes none away")
  func unknown() throws {
    var parts = Self.parts(at: [0, 0])
    parts[1].phases = []
    let merged = try MergingTests.merge(parts)
    #expect(merged.merged?.together == false && merged.rates == RunResult.Rates())
    #expect(merged.warnings.contains { $0.contains("for an unknown time") })
    parts[1].measuredS = 0
    #expect(try MergingTests.merge(parts).rates.writtenPerS == 2_000)
    // One alone runs with itself.
    let alone = try MergingTests.merge([parts[0]])
    #expect(alone.merged == nil && alone.rates.writtenPerS == 2_000)
  }
}

@Suite("Ledgers of several gateways")
struct LedgerMergingTests {
  @Test("Every count adds up, connections are listed one after another, and the time is that of all")
  func sums() throws {
    var a = Ledger()
    (a.started, a.ended) = ("2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z")
    (a.gateway.received, a.gateway.accepted, a.gateway.discarded, a.gateway.bytes) = (10, 7, 2, 1_000)
    (a.gateway.rejected, a.gateway.binary.errorResponses) = (["8": 1], ["8": 1])
    (a.devices.delivered, a.feedback.waiting, a.connectionsOmitted) = (7, 3, .max)
    a.connections = [.init(client: "1", topic: nil, opened: "", closed: "", end: .local)]
    var b = a
    (b.started, b.ended) = ("2026-01-01T00:00:01Z", "2026-01-01T00:00:04Z")
    b.gateway.rejected = ["8": 2, "7": 1]
    b.connections[0].client = "2"
    let merged = try #require(Ledger.merging([a, b]))
    #expect(merged.gateway.received == 20 && merged.gateway.accepted == 14 && merged.gateway.discarded == 4)
    #expect(merged.gateway.rejected == ["8": 3, "7": 1] && merged.gateway.binary.errorResponses == ["8": 2])
    #expect(merged.gateway.bytes == 2_000 && merged.devices.delivered == 14 && merged.feedback.waiting == 6)
    #expect(merged.connectionsOmitted == .max && merged.connections.map(\.client) == ["1", "2"])
    #expect(merged.started == b.started && merged.ended == b.ended)
    #expect(Ledger.merging([a]) == a && Ledger.merging([]) == nil)
  }

  @Test("No count of a ledger is left out, whatever counts there are")
  func all() throws {
    let text = String(decoding: try JSONEncoder().encode(Ledger()), as: UTF8.self)
    // The schema is no count.
    let threes = text.replacing(#/:0(?=[,}])/#, with: ":3")
    let ledger = try JSONDecoder().decode(Ledger.self, from: Data(threes.utf8))
    let sum = try #require(Ledger.merging([ledger, ledger]))
    #expect(String(decoding: try JSONEncoder().encode(sum), as: UTF8.self).contains(":3") == false)
    #expect(try JSONEncoder().encode(sum).count == threes.utf8.count)
  }
}

@Suite("Verdicts of merged results")
struct MergedOutcomeTests {
  @Test("The worst of the parts is that of the whole, and each reason stands once, with its part's name")
  func outcomes() throws {
    var random = SeededGenerator(seed: 5)
    var parts = (1...3).map { MergingTests.result(&random, segment: "\($0)/3") }
    for index in parts.indices { (parts[index].verdict.outcome, parts[index].verdict.reasons) = (.proven, []) }
    func merge(_ results: [RunResult]) throws -> RunResult {
      try RunResult.merging(results.enumerated().map { .init("\($0 + 1).json", $1) })
    }
    #expect(try merge(parts).verdict.outcome == .proven)
    (parts[1].verdict.outcome, parts[1].verdict.reasons) = (.failed, ["nothing was accepted"])
    parts[1].warnings = ["nothing was accepted"]
    let merged = try merge(parts)
    #expect(merged.verdict.outcome == .failed && merged.verdict.reasons == ["2.json: nothing was accepted"])
    #expect(merged.warnings.filter { $0.contains("nothing was accepted") } == ["2.json: nothing was accepted"])
    // A merge of a merge does not name it again.
    let steps = try RunResult.merging([
      .init("a.json", try RunResult.merging([.init("1.json", parts[0]), .init("2.json", parts[1])])),
      .init("3.json", parts[2]),
    ])
    #expect(steps.verdict.reasons == merged.verdict.reasons)
    parts[1].verdict.outcome = nil
    #expect(try merge(parts).verdict.outcome == nil)
  }
}
