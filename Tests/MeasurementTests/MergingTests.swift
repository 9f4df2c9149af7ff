import Foundation
import TestSupport
import Testing

@testable import Measurement

@Suite("Merging results")
struct MergingTests {
  /// A result with numbers of every kind, whose books balance.
  static func result(_ random: inout SeededGenerator, segment: String = "1/1") -> RunResult {
    var result = RunResult()
    result.environment.host = "here"
    result.started = "2026-11-21T09:22:33.000Z"
    result.plan = ["segment": .text(segment), "seed": .number(7), "markers": .text("on")]
    result.measuredS = 10
    func count() -> Int { random.number(0...100_000) }
    var part = RunResult.Phase()
    (part.name, part.seconds) = (.measured, 10)
    part.notifications.accepted = count()
    part.notifications.rejected = count()
    part.notifications.abandoned = count()
    part.notifications.generated =
      part.notifications.accepted + part.notifications.rejected + part.notifications.abandoned
    part.sendings.accepted = part.notifications.accepted
    part.sendings.rejected = part.notifications.rejected
    part.sendings.discarded = count()
    part.sendings.written = part.sendings.accepted + part.sendings.rejected + part.sendings.discarded
    part.sendings.resent = count()
    part.sendings.binary.markers = count()
    part.connections.opened = count()
    part.connections.closed = [.rejected: count(), random.pick([.idle, .local]): count()]
    part.connections.suites = ["TLS 1.2 ECDHE-RSA-AES128-GCM-SHA256": count()]
    part.connections.failures = ["Connection refused": count(), random.pick(["no route", "reset"]): count()]
    part.binary.errorResponses = ["8": count(), random.pick(["7", "10"]): count()]
    for _ in 0..<100 { part.sendLagUs.record(random.number(0...1 << 20)) }
    result.notifications = part.notifications
    result.sendings = part.sendings
    result.connections = part.connections
    result.binary.errorResponses = part.binary.errorResponses
    result.latency.sendLagUs = part.sendLagUs
    result.phases = [part]
    result.schedule.skipped = count()
    result.rates.writtenPerS = Double(part.sendings.written) / 10
    result.rates.acceptedPerS = Double(part.sendings.accepted) / 10
    for _ in 0..<100 {
      result.binary.lossWindow.record(random.number(0...500))
      result.latency.errorUs.record(random.number(0...1 << 22))
      result.batches.bytes.record(random.number(0...16_384))
    }
    result.batches.flushReasons = [.full: count(), .idle: count()]
    for second in 0..<10 {
      var sample = RunResult.Sample()
      sample.tS = Double(second) * 1.004
      (sample.written, sample.up, sample.sendLagP99Us) = (count(), 2, random.number(0...5_000))
      sample.cpu = 0.5
      sample.writes = count()
      let causes: NamedCounts<ConnectionEnd> = [.rejected: count(), random.pick([.idle, .local]): count()]
      sample.closedByCause = causes
      sample.closed = causes.byName.values.reduce(0, +)
      result.series.append(sample)
    }
    result.resources.cpuUserS = 3
    result.resources.maxRssBytes = count()
    result.verdict.invariants = result.invariants(usesMarkers: true)
    return result
  }

  static func merge(_ results: [RunResult]) throws -> RunResult {
    try RunResult.merging(results.enumerated().map { RunResult.Part("\($0).json", $1) })
  }

  @Test("Every number adds up, and histograms merge exactly", arguments: seeds(4, of: 20))
  func sums(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let count = random.number(1...6)
    let parts = (1...count).map { Self.result(&random, segment: "\($0)/\(count)") }
    let merged = try Self.merge(parts)
    func total(_ path: KeyPath<RunResult, Int>) -> Int { parts.reduce(0) { $0 + $1[keyPath: path] } }
    for path in [
      \.notifications.generated, \.notifications.accepted, \.notifications.rejected, \.notifications.abandoned,
      \.schedule.skipped, \.sendings.written, \.sendings.resent, \.sendings.discarded, \.sendings.binary.markers,
      \.connections.opened,
      \.resources.maxRssBytes, \.latency.sendLagUs.count, \.binary.lossWindow.count, \.batches.bytes.count,
    ] as [KeyPath<RunResult, Int>] {
      #expect(merged[keyPath: path] == total(path), "\(path)")
    }
    for status in ["7", "8", "10"] {
      #expect(
        (merged.binary.errorResponses[status] ?? 0) == parts.reduce(0) { $0 + ($1.binary.errorResponses[status] ?? 0) })
    }
    let suites = parts.compactMap(\.connections.suites)
    #expect(
      suites.count == count
        && (merged.connections.suites ?? [:]).values.reduce(0, +) == suites.flatMap(\.values).reduce(0, +))
    let failures = parts.compactMap(\.connections.failures)
    #expect((merged.connections.failures ?? [:]).values.reduce(0, +) == failures.flatMap(\.values).reduce(0, +))
    var lag = LatencyHistogram(.microseconds)
    for part in parts { lag.merge(part.latency.sendLagUs) }
    #expect(merged.latency.sendLagUs == lag)
    #expect(merged.phases.map(\.name) == [.measured])
    #expect(merged.phases[0].sendings == merged.sendings)
    #expect(merged.phases[0].sendLagUs == lag)
    #expect(abs((merged.rates.writtenPerS ?? .nan) - Double(merged.sendings.written) / 10) < 1e-6)
    #expect(merged.series.map(\.tS) == (count == 1 ? parts[0].series.map(\.tS) : (0..<10).map(Double.init)))
    for (index, sample) in merged.series.enumerated() {
      #expect(sample.written == parts.reduce(0) { $0 + $1.series[index].written })
      #expect(sample.sendLagP99Us == parts.map { $0.series[index].sendLagP99Us }.max())
      #expect(sample.up == 2 * count)
      #expect(sample.writes == parts.reduce(0) { $0 + ($1.series[index].writes ?? 0) })
      #expect(sample.closedByCause?.byName.values.reduce(0, +) == sample.closed)
      for cause in [ConnectionEnd.rejected, .idle, .local] {
        #expect(
          sample.closedByCause?[cause] ?? 0 == parts.reduce(0) { $0 + ($1.series[index].closedByCause?[cause] ?? 0) })
      }
    }
    #expect(merged.plan["segment"] == .text((1...count).map { "\($0)/\(count)" }.joined(separator: ",")))
    #expect(merged.plan["seed"] == .number(7))
    #expect(merged.verdict.invariants.count == (count == 1 ? 3 : 4) && merged.verdict.invariants.allSatisfy(\.holds))
    #expect(merged.environment.hosts == nil)
    #expect(merged.warnings == [])
  }

  @Test("A single part keeps how it went over time, to the last decimal; bins of several are not joined")
  func single() throws {
    var random = SeededGenerator(seed: 7)
    var part = Self.result(&random)
    var bins = RunResult.Bins()
    (bins.fromS, bins.written) = (0.25, [10, 12, 3])
    var stalls = RunResult.Stalls()
    stalls.listed = [.init(tS: 2.5, ms: 12), .init(tS: 1.5, ms: 11)]
    (part.bins, part.stalls) = (bins, stalls)
    part.timeline.spans = [.init(connection: 3, .up, fromS: 0.125, toS: 9.5)]
    #expect(part.series[9].tS != 9)
    let merged = try Self.merge([part])
    #expect(merged.bins == bins && merged.stalls == stalls && merged.timeline == part.timeline)
    #expect(merged.series == part.series && merged.merged == nil && merged.rates == part.rates)
    #expect(try Self.merge([part, part]).bins == nil)
    // One that was merged before has none to keep.
    #expect(try Self.merge([try Self.merge([part, part])]).bins == nil)
  }

  @Test("What one part does not tell is not told of all, in whatever order they are joined")
  func unknownParts() throws {
    var random = SeededGenerator(seed: 3)
    let new = (1...2).map { Self.result(&random, segment: "\($0)/3") }
    var old = Self.result(&random, segment: "3/3")
    old.connections.suites = nil
    old.phases[0].connections.suites = nil
    old.connections.failures = nil
    // It ended before the others: the seconds behind are known.
    old.series.removeLast(2)
    for index in old.series.indices { (old.series[index].writes, old.series[index].closedByCause) = (nil, nil) }
    for parts in [[old] + new, [new[0], old, new[1]], new + [old]] {
      let merged = try Self.merge(parts)
      #expect(merged.connections.suites == nil && merged.phases[0].connections.suites == nil)
      #expect(merged.connections.failures == nil)
      for (index, sample) in merged.series.enumerated() {
        #expect((sample.writes == nil) == (index < 8) && (sample.closedByCause == nil) == (index < 8))
        #expect(sample.closed >= new.reduce(0) { $0 + $1.series[index].closed })
      }
    }
    #expect(try Self.merge([try Self.merge([new[0], old]), new[1]]).series == Self.merge(new + [old]).series)
    #expect(try Self.merge([old]).series.allSatisfy { $0.writes != 0 && $0.closedByCause == nil })
  }

  @Test("Merging in steps gives the same", arguments: seeds(2, of: 5))
  func steps(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let parts = (1...4).map { Self.result(&random, segment: "\($0)/4") }
    let half = try Self.merge([parts[0], parts[2]])
    #expect(half.plan["segment"] == .text("1/4,3/4"))
    #expect(half.warnings == ["segments are missing: 2/4, 4/4"])
    let stepwise = try Self.merge([half, try Self.merge([parts[1], parts[3]])])
    #expect(stepwise.plan["segment"] == .text("1/4,2/4,3/4,4/4"))
    // What each half missed, the other has.
    #expect(stepwise.warnings == [] && stepwise.verdict.invariants.allSatisfy(\.holds))
    let whole = try Self.merge(parts)
    #expect(stepwise.merged == whole.merged && whole.merged?.runs == 4)
    #expect(stepwise.notifications == whole.notifications)
    #expect(stepwise.latency == whole.latency)
    #expect(stepwise.series == whole.series)
    #expect(stepwise.phases == whole.phases)
    // One that a complete result holds already is there twice.
    #expect(
      try Self.merge([whole, parts[1]]).warnings == ["segments are there more than once, and count as often: 2/4"])
  }

  @Test("Rates are over the longest measured phase, and never above the sum")
  func rates() throws {
    var random = SeededGenerator(seed: 1)
    var (a, b) = (Self.result(&random, segment: "1/2"), Self.result(&random, segment: "2/2"))
    (a.measuredS, a.rates.writtenPerS, a.rates.writtenBytesPerS) = (10, 100, 3_000)
    (b.measuredS, b.rates.writtenPerS, b.rates.writtenBytesPerS) = (20, 100, 1_000)
    let merged = try Self.merge([a, b])
    #expect(merged.measuredS == 20)
    #expect(merged.rates.writtenPerS == 150 && merged.rates.writtenBytesPerS == 2_500)
    #expect(
      merged.warnings.count == 1
        && merged.warnings[0].hasPrefix("the measured phases overlap for 10.0 s only, of 20.0 s"))
  }

  @Test(
    "What does not fit is said",
    arguments: [
      (["1/2", "1/2"], ["segments are missing: 2/2", "segments are there more than once, and count as often: 1/2"]),
      (["1/1", "1/1"], ["segments are there more than once, and count as often: all"]),
      (["1/2", "2/3"], ["1.json and 0.json have different numbers of segments"]),
      (["1/2", "half"], ["1.json: 'half' is not a segment"]), (["2/1", "1/1"], ["0.json: '2/1' is not a segment"]),
    ])
  func segments(segments: [String], warnings: [String]) throws {
    var random = SeededGenerator(seed: 2)
    #expect(try Self.merge(segments.map { Self.result(&random, segment: $0) }).warnings == warnings)
  }

  @Test("Plans that differ are named with their settings, hosts are listed, the earliest start stays")
  func differences() throws {
    var random = SeededGenerator(seed: 3)
    var (a, b) = (Self.result(&random, segment: "1/2"), Self.result(&random, segment: "2/2"))
    b.plan["seed"] = .number(8)
    b.plan["rate"] = .text("5/s")
    b.environment.host = "there"
    b.started = "2026-11-21T09:22:32.500Z"
    a.warnings = ["one"]
    b.warnings = ["one", "two"]
    let merged = try Self.merge([a, b])
    #expect(
      merged.warnings == [
        "0.json: one", "1.json: one", "1.json: two", "the plan of 1.json differs from that of 0.json: rate, seed",
      ])
    #expect(merged.environment.hosts == ["here", "there"])
    #expect(merged.environment.host == "here")
    #expect(merged.started == b.started)
  }

  @Test("A warning names the segment that it is of, also when segments were merged before, and once")
  func namedWarnings() throws {
    var random = SeededGenerator(seed: 3)
    var parts = (1...4).map { Self.result(&random, segment: "\($0)/4") }
    for index in parts.indices { parts[index].warnings = ["the generator stalled"] }
    let named = (0..<4).map { "\($0).json: the generator stalled" }
    let whole = try Self.merge(parts)
    #expect(whole.warnings == named)
    let half = try Self.merge([parts[0], parts[1]])
    #expect(half.warnings.filter { $0.contains("stalled") } == Array(named[..<2]))
    // One result alone keeps what it said.
    #expect(try Self.merge([parts[0]]).warnings.filter { $0.contains("stalled") } == ["the generator stalled"])
    #expect(try Self.merge([whole]) == whole)
    // A reason that is a warning as well is named once.
    parts[0].verdict.reasons = ["slow"]
    parts[0].warnings = ["slow"]
    #expect(try Self.merge(parts).warnings.filter { $0.contains("slow") } == ["0.json: slow"])
  }

  @Test("Thresholds and invariants are judged again")
  func verdict() throws {
    var random = SeededGenerator(seed: 4)
    var (a, b) = (Self.result(&random, segment: "1/2"), Self.result(&random, segment: "2/2"))
    a.rates.writtenPerS = 60
    b.rates.writtenPerS = 60
    a.verdict.thresholds = [.init(expression: "written_per_s>100", value: 60, passed: false)]
    b.verdict.thresholds = a.verdict.thresholds + [.init(expression: "speed>1", value: 1, passed: true)]
    b.verdict.limitedBy = .gateway
    // One lost what the other invented.
    a.notifications.generated += 1
    b.notifications.generated -= 1
    a.verdict.invariants = a.invariants(usesMarkers: true)
    b.verdict.invariants = b.invariants(usesMarkers: true)
    let merged = try Self.merge([a, b])
    #expect(merged.verdict.thresholds == [.init(expression: "written_per_s>100", value: 120, passed: true)])
    #expect(merged.verdict.limitedBy == .gateway)
    #expect(merged.verdict.invariants.map(\.holds) == [true, true, true, false, false, true])
    #expect(merged.verdict.invariants[3].name.hasPrefix("0.json: generated ="))
    #expect(merged.warnings.contains { $0.contains("unknown metric 'speed'") })
  }

  @Test("Nothing may be open where every connection ends with a marker, and no part leaves what is unknown")
  func proof() throws {
    var random = SeededGenerator(seed: 8)
    let parts = (1...2).map { Self.result(&random, segment: "\($0)/2") }
    func proves(_ change: (inout RunResult) -> Void) throws -> Bool? {
      var changed = parts
      change(&changed[1])
      return try Self.merge(changed).verdict.invariants.first { $0.isAboutProof }?.holds
    }
    #expect(try proves { _ in } == true)
    #expect(try proves { $0.plan["markers"] = .text("off") } == nil)
    #expect(try proves { $0.plan["leave_unknown"] = .flag(true) } == nil)
    #expect(try proves { $0.plan["leave_unknown"] = .flag(false) } == true)
    #expect(try proves { $0.interrupted = .init(phase: .drain, afterS: 1, cause: .lost) } == nil)
    #expect(try proves { $0.interrupted = .init(phase: .drain, afterS: 1) } == true)
    #expect(try proves { $0.notifications.unproven = 1 } == false)
    #expect(try proves { $0.notifications.unknown = 1 } == false)
  }

  @Test("Invariants show their numbers")
  func invariants() {
    var result = RunResult()
    let notifications = RunResult.Notifications()
    result.notifications = notifications
    (result.notifications.generated, result.notifications.accepted, result.notifications.rejected) = (10, 4, 3)
    (result.notifications.unknown, result.notifications.abandoned, result.notifications.unproven) = (2, 1, 3)
    (result.sendings.written, result.sendings.accepted, result.sendings.rejected) = (11, 4, 3)
    (result.sendings.discarded, result.sendings.unknown) = (2, 1)
    let invariants = result.invariants(usesMarkers: true)
    #expect(invariants.map(\.holds) == [true, false, false])
    #expect(invariants.map(\.detail) == ["10 = 4 + 3 + 2 + 1", "11 = 4 + 3 + 2 + 1", "3 unknown"])
    #expect(invariants.map(\.isAboutProof) == [false, false, true])
    #expect(result.invariants(usesMarkers: false).count == 2)
  }

  @Test("A run that was lost says more than one that was ended, whichever comes first")
  func interruptions() throws {
    var random = SeededGenerator(seed: 9)
    var parts = (1...3).map { Self.result(&random, segment: "\($0)/3") }
    #expect(try Self.merge(parts).interrupted == nil)
    parts[1].interrupted = .init(phase: .measured, afterS: 3)
    #expect(try Self.merge(parts).interrupted == parts[1].interrupted)
    parts[2].interrupted = .init(phase: .drain, afterS: 1, cause: .lost)
    #expect(try Self.merge(parts).interrupted == parts[2].interrupted)
  }

  @Test("Other kinds, schemas and units are refused")
  func refused() throws {
    var random = SeededGenerator(seed: 5)
    let a = Self.result(&random)
    var b = a
    b.schema = 2
    #expect(throws: RunResult.MergeError(description: "1.json has schema 2, 0.json has 1")) { try Self.merge([a, b]) }
    b = a
    b.kind = "simulate"
    #expect(throws: RunResult.MergeError.self) { try Self.merge([a, b]) }
    b = a
    b.latency.errorUs = LatencyHistogram(.bytes)
    for results in [[a, b], [b, a], [b], [b, b]] {
      #expect(throws: RunResult.MergeError.self) { try Self.merge(results) }
    }
    b = a
    b.phases[0].sendLagUs = LatencyHistogram(.bytes)
    for results in [[a, b], [b, a], [b]] { #expect(throws: RunResult.MergeError.self) { try Self.merge(results) } }
    #expect(throws: RunResult.MergeError.self) { try Self.merge([]) }
  }

  @Test("Numbers of any size are taken")
  func extremes() throws {
    var random = SeededGenerator(seed: 6)
    var a = Self.result(&random)
    a.notifications.generated = .max
    a.notifications.accepted = .max
    a.sendings.written = .min
    a.sendings.rejected = .min
    a.series[0].tS = 1e300
    a.binary.errorResponses["8"] = .max
    a.phases[0].seconds = 1e308
    let merged = try Self.merge([a, a, a])
    #expect(merged.notifications.generated == .max)
    #expect(merged.sendings.written == .min)
  }

  @Test("Times as results have them")
  func times() {
    #expect(unixSeconds("1970-01-01T00:00:00.000Z") == 0)
    #expect(unixSeconds("2000-02-29T00:00:00Z") == 951_782_400)
    #expect(unixSeconds("2026-11-21T09:22:33.500Z") == 1_795_252_953.5)
    for text in ["", "2026-11-21", "2026-13-21T09:22:33.5Z", "2026-11-21T09:22:33.5", "x-11-21T09:22:33.500000Z"] {
      #expect(unixSeconds(text) == nil)
    }
  }
}
