import Foundation
import TestSupport
import Testing

@testable import Measurement

/// Laws of joining results one after the other.
@Suite("Merging one after the other")
struct MergerTests {
  /// Parts of one whole with everything that is joined over time.
  private static func parts(_ random: inout SeededGenerator, _ count: Int) -> [RunResult.Part] {
    (1...count).map { number in
      var result = MergingTests.result(&random, segment: "\(number)/\(count)")
      result.measuredBy = 2
      result.environment.host = "host \(random.number(1...3))"
      result.started = "2026-11-21T09:22:3\(random.number(0...3)).\(random.number(100...999))Z"
      result.labels = ["node": "n\(number)", "branch": "main"]
      result.plan["rate"] = .text("250.5/s")
      result.plan["connections"] = .number(2)
      result.connections.asked = 2
      result.phases[0].rates = result.rates
      result.resources.cpuUserS = Double(random.number(0...1_000_000)) / 3
      result.resources.cpuSystemS = Double(random.number(0...1_000_000)) / 7
      for index in result.series.indices { result.series[index].cpu = Double(random.number(0...999)) / 1_000 }
      var stalls = RunResult.Stalls()
      (stalls.count, stalls.totalS) = (random.number(0...9), Double(random.number(0...999)) / 7)
      stalls.listed = (0..<random.number(0...4)).map {
        .init(tS: Double($0) * 1.25, ms: Double(random.number(10...99)))
      }
      result.stalls = stalls
      result.timeline.spans = (0..<random.number(0...6)).map {
        .init(connection: $0 % 2, .up, fromS: Double(random.number(0...5_000)) / 1_000, toS: 9)
      }
      result.warnings = random.happens(oneIn: 3) ? ["slow", "slow \(number)"] : []
      result.verdict.outcome = random.happens(oneIn: 4) ? .unproven : .proven
      return RunResult.Part("\(number).json", result)
    }
  }

  private static func merge(_ parts: [RunResult.Part]) throws -> RunResult {
    var merger = RunResult.Merger()
    for part in parts { try merger.add(part) }
    return try merger.result()
  }

  @Test("The order in which parts are added does not matter, to the last bit", arguments: seeds(6, of: 60))
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let parts = Self.parts(&random, random.number(1...9))
    let merged = try Self.merge(parts)
    for _ in 0..<4 { #expect(try Self.merge(parts.shuffled(using: &random)) == merged) }
    #expect(try RunResult.merging(parts) == merged)
    #expect(merged.labels == (parts.count == 1 ? parts[0].result.labels : ["branch": "main"]))
  }

  @Test("Of parts that began at the same time, the host decides which is the first, and then the name")
  func hosts() throws {
    var random = SeededGenerator(seed: 5)
    var part = Self.parts(&random, 1)[0]
    var parts: [RunResult.Part] = []
    for (host, name) in [("z", "a.json"), ("y", "b.json"), ("y", "c.json")] {
      (part.name, part.result.environment.host, part.result.warnings) = (name, host, ["of \(name)"])
      parts.append(part)
    }
    for parts in [parts, parts.reversed(), [parts[1], parts[0], parts[2]]] {
      let merged = try Self.merge(parts)
      #expect(merged.environment.host == "y" && merged.environment.hosts == ["y", "z"])
      #expect(merged.warnings.prefix(3) == ["b.json: of b.json", "c.json: of c.json", "a.json: of a.json"])
    }
  }

  @Test("Merging merged results is merging all, but for sums of fractions", arguments: seeds(6, of: 60))
  func steps(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let parts = Self.parts(&random, random.number(3...9))
    let whole = try Self.merge(parts)
    let cut = random.number(1...parts.count - 1)
    let mixed = parts.shuffled(using: &random)
    let halves = [Array(mixed[..<cut]), Array(mixed[cut...])]
    var stepwise = try Self.merge(
      halves.enumerated().map { $1.count == 1 ? $1[0] : .init("half \($0)", try Self.merge($1)) })
    // Merging a merged result alone changes nothing.
    #expect(try Self.merge([.init("whole", whole)]) == whole)
    func near(_ a: Double?, _ b: Double?) -> Bool {
      abs((a ?? 0) - (b ?? 0)) <= 1e-9 * abs(b ?? 0) && (a == nil) == (b == nil)
    }
    #expect(near(stepwise.rates.writtenPerS, whole.rates.writtenPerS))
    #expect(near(stepwise.rates.acceptedPerS, whole.rates.acceptedPerS))
    #expect(near(stepwise.resources.cpuUserS, whole.resources.cpuUserS))
    #expect(near(stepwise.resources.cpuSystemS, whole.resources.cpuSystemS))
    #expect(near(stepwise.stalls?.totalS, whole.stalls?.totalS))
    #expect(stepwise.parts == whole.parts && whole.parts?.count == parts.count)
    #expect(stepwise.plan == whole.plan && stepwise.labels == whole.labels)
    // Hosts in the order of their first segments within each half.
    #expect(Set(stepwise.environment.hosts ?? []) == Set(whole.environment.hosts ?? []))
    stepwise.environment.hosts = whole.environment.hosts
    #expect(stepwise.environment == whole.environment)
    #expect(stepwise.series == whole.series && stepwise.merged == whole.merged)
    #expect(Set(stepwise.warnings) == Set(whole.warnings))
    #expect(stepwise.timeline.spans.count == whole.timeline.spans.count)
    // The rest is equal exactly.
    (stepwise.rates, stepwise.resources.cpuUserS) = (whole.rates, whole.resources.cpuUserS)
    stepwise.resources.cpuSystemS = whole.resources.cpuSystemS
    stepwise.stalls?.totalS = whole.stalls?.totalS ?? 0
    for index in stepwise.phases.indices { stepwise.phases[index].rates = whole.phases[index].rates }
    stepwise.warnings = whole.warnings
    // Connections of the halves are numbered within them.
    stepwise.timeline = whole.timeline
    #expect(stepwise == whole)
  }

  @Test("The plan of a merged result is that of the whole, and is not multiplied again", arguments: [2, 4, 100])
  func plans(count: Int) throws {
    func part(_ number: Int, _ change: (inout RunResult) -> Void = { _ in }) -> RunResult.Part {
      var result = RunResult()
      result.plan = [
        "segment": .text("\(number)/\(count)"), "rate": .text("50.0/s"), "count": .number(10),
        "connections": .number(2), "stage": .list(["10s:0.0..500.0/s", "1m:500.0..500.0/s"]),
        "keylog": .text("k\(number)"),
      ]
      change(&result)
      return .init("\(number)", result)
    }
    let parts = (1...count).map { part($0) }
    let whole = try Self.merge(parts)
    let factor = Double(count)
    #expect(whole.plan["rate"] == .text("\(50 * factor)/s") && whole.plan["count"] == .number(10 * factor))
    #expect(whole.plan["connections"] == .number(2 * factor) && whole.plan["of_whole"] == .flag(true))
    #expect(
      whole.plan["stage"] == .list(["10s:0.0..\(500 * factor)/s", "1m:\(500 * factor)..\(500 * factor)/s"]))
    #expect(whole.warnings.isEmpty)
    // With a segment missing, it is still the whole's.
    let some = try Self.merge(Array(parts.dropLast()))
    #expect(some.plan["rate"] == whole.plan["rate"])
    let rest = parts[count - 1]
    #expect(try Self.merge([.init("some", some), rest]).plan == whole.plan)
    // A part that was divided of the whole already, and one that was not: the same plan.
    let divided = part(count) {
      $0.plan.merge(whole.plan.filter { $0.key != "segment" }) { $1 }
    }
    #expect(try Self.merge(Array(parts.dropLast()) + [divided]).warnings.isEmpty)
    // A part with another rate: there is no whole's, and the first's stays.
    let other = part(count) { $0.plan["rate"] = .text("51.0/s") }
    let mixed = try Self.merge(Array(parts.dropLast()) + [other])
    #expect(mixed.plan["rate"] == .text("50.0/s") && mixed.plan["of_whole"] == nil)
    #expect(mixed.warnings == ["the plan of \(count) differs from that of 1: rate"])
  }

  @Test("Each run is listed with what is its own")
  func segments() throws {
    var random = SeededGenerator(seed: 5)
    var parts = Self.parts(&random, 3)
    parts[1].result.verdict.limitedBy = .generator
    parts[1].result.interrupted = .init(phase: .measured, afterS: 3, cause: .lost)
    parts[1].result.warnings = ["its own"] + (1...30).map { "warning \($0)" }
    var start = RunResult.Start()
    (start.planned, start.actual, start.lateS) = ("2026-11-21T09:22:33.000Z", "2026-11-21T09:22:33.004Z", 0.004)
    for index in parts.indices { parts[index].result.start = start }
    let merged = try Self.merge(parts.reversed())
    let listed = try #require(merged.parts)
    #expect(listed.map(\.segment) == ["1/3", "2/3", "3/3"])
    for (segment, part) in zip(listed, parts) {
      let result = part.result
      #expect(segment.host == result.environment.host && segment.labels == result.labels)
      #expect(segment.started == result.started && segment.lateS == 0.004 && segment.clockOffsetS == nil)
      #expect(segment.written == result.sendings.written && segment.accepted == result.sendings.accepted)
      #expect(segment.sendLagP99Us == result.latency.sendLagUs.quantile(0.99))
      #expect(segment.limitedBy == result.verdict.limitedBy && segment.interrupted == result.interrupted)
      #expect(segment.cpuCores == (result.resources.cpuUserS + result.resources.cpuSystemS) / 10)
    }
    #expect(listed[1].warnings.count == 20 && listed[1].warnings.first == "its own")
    #expect(merged.start == start)
    // Two times to begin are no time to begin.
    parts[2].result.start?.planned = "2026-11-21T09:23:03.000Z"
    let apart = try Self.merge(parts)
    #expect(apart.start == nil)
    #expect(apart.warnings.contains { $0.hasPrefix("the segments were not to begin at the same time") })
  }

  @Test(
    "Books of the gateway tell how far clocks are off, whichever connections are whose", arguments: seeds(10, of: 100))
  func clocks(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let began = 1_795_338_000.0
    let offsets = [0, Double(random.number(1...40)), -Double(random.number(1...40)), 0]
    var ledger = Ledger()
    var parts: [RunResult.Part] = []
    for (number, offset) in offsets.enumerated() {
      var result = RunResult()
      result.plan = ["segment": .text("\(number + 1)/4")]
      // All start within a tenth of a second.
      let start = began + Double(random.number(0...100)) / 1_000
      result.started = rfc3339(Int64(((start + offset) * 1_000).rounded()) * 1_000_000)
      for connection in 0..<random.number(1...5) {
        var from = Double(random.number(0...100)) / 1_000
        for _ in 0..<random.number(1...3) {
          let to = from + Double(random.number(2_000...6_000)) / 1_000
          result.timeline.spans += [
            .init(connection: connection, .handshake, fromS: from, toS: from + 0.01),
            .init(connection: connection, .up, fromS: from + 0.01, toS: to),
          ]
          func time(_ seconds: Double) -> String { rfc3339(Int64((start + seconds) * 1e9)) }
          ledger.connections.append(
            .init(client: "c", topic: nil, opened: time(from + 0.001), closed: time(to + 0.004), end: .local))
          from = to + 0.02
        }
      }
      result.timeline.spans.sort { ($0.fromS, $0.connection) < ($1.fromS, $1.connection) }
      parts.append(.init("\(number)", result))
    }
    ledger.connections.shuffle(using: &random)
    let merged = try RunResult.merging(parts, ledger: ledger)
    for (segment, offset) in zip(try #require(merged.parts), offsets) {
      // Connections that another segment opened in the same tenth of a second may be taken for its own.
      #expect(abs((segment.clockOffsetS ?? .nan) - offset) < 0.25, "\(segment.segment): \(offset)")
    }
    let warning = try #require(merged.warnings.first { $0.hasPrefix("by the gateway's books, clocks") })
    // The sentence has the estimates, to a tenth of a second.
    let told = merged.parts?.map { abs((($0.clockOffsetS ?? .nan) * 10).rounded() / 10) } ?? []
    #expect(
      warning.contains("2/4 by \(told[1]) s ahead") && warning.contains("3/4 by \(told[2]) s behind"), "\(warning)")
    #expect(!warning.contains("1/4") && !warning.contains("4/4"))
    // Of books without its connections nothing is known.
    #expect(try RunResult.merging(parts, ledger: Ledger()).parts?.allSatisfy { $0.clockOffsetS == nil } == true)
    #expect(try RunResult.merging(parts).parts?.allSatisfy { $0.clockOffsetS == nil } == true)
    // Kept by a later merge, which may have no ledger.
    #expect(try Self.merge([.init("merged", merged)]).parts == merged.parts)
  }

  @Test("What parts can grow has a limit over all of them")
  func limits() throws {
    var merger = RunResult.Merger()
    for number in 0..<3 {
      var result = RunResult()
      result.started = "2026-11-21T09:22:33.000Z"
      result.plan = ["segment": .text("\(number + 1)/3")]
      result.connections.asked = 1
      result.timeline.spans = (0..<80_000).map { .init(connection: 0, .up, fromS: Double($0), toS: Double($0 + 1)) }
      result.warnings = (0..<900).map { "warning \(number) \($0)" }
      try merger.add(.init("\(number)", result))
    }
    var apart = RunResult()
    apart.started = "2026-11-21T09:22:33.000Z"
    apart.series = (0...RunResult.Merger.maximumSeconds).map { second in
      var sample = RunResult.Sample()
      sample.tS = Double(second)
      return sample
    }
    #expect(throws: RunResult.MergeError.self) { try merger.add(.init("apart", apart)) }
    let merged = try merger.result()
    #expect(merged.timeline.spans.count == 100_000 && merged.timeline.omitted == 140_000)
    #expect(merged.timeline.spans.last?.fromS == 33_333)
    #expect(merged.warnings.count == 1_001 && merged.warnings.last == "and 1700 more warnings")
    #expect(merged.merged?.runs == 3)
  }

  @Test("Ledgers add up in whatever order, and in steps", arguments: seeds(5, of: 50))
  func ledgers(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let ledgers = (0..<random.number(2...5)).map { number in
      var ledger = Ledger()
      (ledger.started, ledger.ended) = ("2026-11-21T09:22:3\(number).000Z", "2026-11-21T09:23:3\(number).000Z")
      ledger.gateway.accepted = random.number(0...1_000)
      ledger.gateway.rejected = [random.pick(["7", "8"]): random.number(0...100)]
      ledger.gateway.received = ledger.gateway.accepted + ledger.gateway.rejected.values.reduce(0, +)
      var http2 = Ledger.HTTP2()
      (http2.received, http2.accepted, http2.answers) = (random.number(0...99), random.number(0...99), ["200": number])
      http2.providerTokens = [
        .init(keyID: "K", teamID: "T", issuedAt: "2026-11-21T09:00:00Z", ageS: number, connections: 1 + number)
      ]
      if random.happens(oneIn: 2) { ledger.http2 = http2 }
      for _ in 0..<random.number(0...4) {
        let closed = "2026-11-21T09:23:\(random.number(10...59)).000Z"
        ledger.connections.append(
          .init(client: "c\(number)", topic: nil, opened: ledger.started, closed: closed, end: .local))
      }
      return ledger
    }
    let merged = try #require(Ledger.merging(ledgers))
    #expect(Ledger.merging(ledgers.shuffled(using: &random)) == merged)
    let first = try #require(Ledger.merging([ledgers[0], ledgers[1]]))
    #expect(Ledger.merging([first] + ledgers.dropFirst(2)) == merged)
    #expect(merged.gateway.received == ledgers.reduce(0) { $0 + $1.gateway.received })
    #expect(merged.connections.count == ledgers.reduce(0) { $0 + $1.connections.count })
    let http2 = ledgers.compactMap(\.http2)
    #expect(merged.http2?.accepted ?? 0 == http2.reduce(0) { $0 + $1.accepted })
    #expect(merged.http2?.answers["200"] ?? 0 == http2.reduce(0) { $0 + ($1.answers["200"] ?? 0) })
    #expect((merged.http2?.providerTokens.count ?? 0) == min(1, http2.count))
    #expect(
      merged.http2?.providerTokens.first?.connections ?? 0
        == http2.reduce(0) { $0 + $1.providerTokens[0].connections })
    #expect(merged.connections.map(\.closed) == merged.connections.map(\.closed).sorted())
  }

  /// Numbers of a document, by their paths.
  private func numbers(_ value: Any, _ path: String = "") -> [String: Int] {
    switch value {
    case let object as [String: Any]:
      object.reduce(into: [:]) { $0.merge(numbers($1.value, "\(path)/\($1.key)")) { $1 } }
    case let number as Int: [path: number]
    default: [:]
    }
  }

  /// A value of the same form in which every number, and every map of numbers, has something of its own.
  private func filled(_ value: Any, _ next: inout Int, _ factor: Int) -> Any {
    switch value {
    case let object as [String: Any]:
      if object.isEmpty {
        next += 1
        return ["x": next * factor]
      }
      var filling: [String: Any] = [:]
      for (key, part) in object.sorted(by: { $0.key < $1.key }) { filling[key] = filled(part, &next, factor) }
      return filling
    case is Int:
      next += 1
      return next * factor
    default: return value
    }
  }

  @Test("Every count over HTTP/2 is summed, those of faults and channels too") func everyCount() throws {
    var empty = Ledger.HTTP2()
    empty.channels = .init()
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(empty))
    let ledgers = try [1, 100].map { factor in
      var ledger = Ledger()
      var next = 0
      ledger.http2 = try JSONDecoder().decode(
        Ledger.HTTP2.self, from: JSONSerialization.data(withJSONObject: filled(object, &next, factor)))
      return ledger
    }
    let merged = try #require(Ledger.merging(ledgers)?.http2)
    let found = numbers(try JSONSerialization.jsonObject(with: JSONEncoder().encode(merged)))
    #expect(found.count > 25)
    // Each number is its own, times 101.
    #expect(Set(found.values).count == found.count)
    #expect(found.values.allSatisfy { $0 % 101 == 0 && $0 > 0 }, "\(found)")
  }

  @Test("Every count of local push is summed, and one ledger without it adds nothing") func localPush() throws {
    var empty = Ledger.LocalPush()
    empty.networks = ["ship": .init()]
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(empty))
    var ledgers = try [1, 100].map { factor in
      var ledger = Ledger()
      var next = 0
      ledger.localPush = try JSONDecoder().decode(
        Ledger.LocalPush.self, from: JSONSerialization.data(withJSONObject: filled(object, &next, factor)))
      ledger.localPush?.refused = ["user": factor]
      ledger.localPush?.registered = ["control": factor]
      ledger.localPush?.requests = ["text": factor]
      ledger.localPush?.sources = ["rate": factor]
      return ledger
    }
    ledgers.insert(Ledger(), at: 1)
    let merged = try #require(Ledger.merging(ledgers)?.localPush)
    #expect(merged.refused == ["user": 101] && merged.registered == ["control": 101])
    #expect(merged.requests == ["text": 101] && merged.sources == ["rate": 101])
    ledgers[0].localPush?.networks = ["crew": .init()]
    #expect(Ledger.merging(ledgers)?.localPush?.networks.keys.sorted() == ["crew", "ship"])
    let found = numbers(try JSONSerialization.jsonObject(with: JSONEncoder().encode(merged)))
    #expect(found.count > 80 && found.values.allSatisfy { $0 % 101 == 0 && $0 > 0 }, "\(found)")
  }

  @Test("Every count of the device channel is summed, and one ledger without it adds nothing") func deviceChannel()
    throws
  {
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(Ledger.Devices.Channel()))
    var ledgers = try [1, 100].map { factor in
      var ledger = Ledger()
      var next = 0
      ledger.devices.channel = try JSONDecoder().decode(
        Ledger.Devices.Channel.self, from: JSONSerialization.data(withJSONObject: filled(object, &next, factor)))
      ledger.devices.channel?.refused = ["message": factor]
      return ledger
    }
    ledgers.insert(Ledger(), at: 1)
    let merged = try #require(Ledger.merging(ledgers)?.devices.channel)
    #expect(merged.refused == ["message": 101])
    let found = numbers(try JSONSerialization.jsonObject(with: JSONEncoder().encode(merged)))
    #expect(found.count > 10 && found.values.allSatisfy { $0 % 101 == 0 && $0 > 0 }, "\(found)")
  }
}
