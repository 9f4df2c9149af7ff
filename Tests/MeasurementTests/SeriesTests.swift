import Foundation
import Testing

@testable import Measurement

@Suite("Series and timelines")
struct SeriesTests {
  private static func sample(_ second: Double, _ number: Int) -> RunResult.Sample {
    var sample = RunResult.Sample()
    sample.tS = second
    (sample.written, sample.skipped, sample.backlog) = (number, 10 * number, 100 * number)
    (sample.sendLagP99Us, sample.loopLagP99Us, sample.rssBytes) = (number, 2 * number, 1_000 * number)
    sample.errorsByStatus = ["8": number, "\(100 + number)": 1]
    (sample.writes, sample.closed) = (3 * number, number + 1)
    sample.closedByCause = [.rejected: number, .lifetime: 1]
    return sample
  }

  @Test("Merged seconds: counts, backlog and memory add up, of lags the largest stays")
  func seconds() throws {
    var (a, b) = (RunResult(), RunResult())
    a.series = [Self.sample(0, 1), Self.sample(1.002, 2)]
    b.series = [Self.sample(0.001, 3), Self.sample(1, 1), Self.sample(2, 4)]
    let series = try MergingTests.merge([a, b]).series
    #expect(series.map(\.tS) == [0, 1, 2])
    #expect(series.map(\.skipped) == [40, 30, 40])
    #expect(series.map(\.backlog) == [400, 300, 400])
    #expect(series.map(\.rssBytes) == [4_000, 3_000, 4_000])
    #expect(series.map(\.sendLagP99Us) == [3, 2, 4])
    #expect(series.map(\.loopLagP99Us) == [6, 4, 8])
    #expect(series.map(\.writes) == [12, 9, 12])
    #expect(
      series.map(\.closedByCause?.byName)
        == [4, 3, 4].enumerated().map { ["rejected": $1, "lifetime": $0 == 2 ? 1 : 2] })
    for sample in series { #expect(sample.closedByCause?.byName.values.reduce(0, +) == sample.closed) }
    #expect(series[0].errorsByStatus == ["8": 4, "101": 1, "103": 1])
  }

  @Test("Connections of merged timelines are numbered on, as many as planned or told of")
  func timelines() throws {
    func part(_ planned: Double?, _ spans: [RunResult.Timeline.Span], omitted: Int) -> RunResult {
      var result = RunResult()
      if let planned { result.plan["connections"] = .number(planned) }
      (result.timeline.spans, result.timeline.omitted) = (spans, omitted)
      return result
    }
    let merged = try MergingTests.merge([
      part(
        4, [.init(connection: 0, .handshake, fromS: 0, toS: 1), .init(connection: 0, .up, fromS: 1, toS: 9)], omitted: 2
      ),
      part(nil, [.init(connection: 2, .backOff, fromS: 0.5, toS: 2)], omitted: 3),
      part(1, [.init(connection: 0, .up, fromS: 1, toS: 3)], omitted: .max),
    ])
    #expect(
      merged.timeline.spans == [
        .init(connection: 0, .handshake, fromS: 0, toS: 1), .init(connection: 6, .backOff, fromS: 0.5, toS: 2),
        .init(connection: 0, .up, fromS: 1, toS: 9), .init(connection: 7, .up, fromS: 1, toS: 3),
      ])
    #expect(merged.timeline.omitted == .max)
    // Merged again, its own plan tells of the first part only.
    let again = try MergingTests.merge([merged, part(nil, [.init(connection: 0, .up, fromS: 0, toS: 1)], omitted: 0)])
    #expect(again.timeline.spans.map(\.connection) == [0, 8, 6, 0, 7])
    // A plan may say anything.
    for number in [-1, 1e300, .infinity] {
      _ = try MergingTests.merge([part(number, [.init(connection: .max, .up, fromS: 0, toS: 1)], omitted: 0), merged])
    }
  }

  @Test("Full and resumed handshakes merge apart, skipped ones of phases add up")
  func handshakesAndPhases() throws {
    func part(_ full: Int, _ resumed: Int) -> RunResult {
      var result = RunResult()
      result.latency.tlsHandshakeUs.record(full)
      result.latency.tlsResumedUs.record(resumed)
      var phase = RunResult.Phase()
      (phase.name, phase.skipped) = (.measured, full)
      result.phases = [phase]
      return result
    }
    let merged = try MergingTests.merge([part(1_000, 10), part(3_000, 30)])
    #expect(merged.latency.tlsHandshakeUs.maximum == 3_000 && merged.latency.tlsHandshakeUs.count == 2)
    #expect(merged.latency.tlsResumedUs.maximum == 30 && merged.latency.tlsResumedUs.count == 2)
    #expect(merged.phases.map(\.skipped) == [4_000])
    #expect(try Threshold("tls_resumed_max<1ms").judge(merged).passed)
    #expect(try !Threshold("tls_handshake_max<1ms").judge(merged).passed)
  }

  @Test("A document has the names of the contract, and is the same when it is read")
  func document() throws {
    var result = RunResult()
    result.series = [Self.sample(0, 1)]
    result.phases = [RunResult.Phase()]
    result.timeline.spans = [.init(connection: 3, .backOff, fromS: 0.25, toS: 1.5)]
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = .sortedKeys
    let data = try encoder.encode(result)
    let text = String(decoding: data, as: UTF8.self)
    for part in [
      #""errors_by_status":{"101":1,"8":1}"#, #""backlog":100"#, #""loop_lag_p99_us":2"#, #""rss_bytes":1000"#,
      #""tls_resumed_ms":{"#, #""writes":3"#, #""closed_by_cause":{"lifetime":1,"rejected":1}"#,
      #""timeline":{"omitted":0,"spans":[{"connection":3,"from_s":0.25,"state":"back-off","to_s":1.5}]}"#,
    ] { #expect(text.contains(part), "\(part)") }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    #expect(try decoder.decode(RunResult.self, from: data) == result)
  }

  @Test("Documents from before the new names are read, without them")
  func old() throws {
    var result = RunResult()
    var sample = RunResult.Sample()
    (sample.tS, sample.written, sample.up) = (1, 5, 2)
    (sample.writes, sample.closedByCause) = (0, [:])
    result.series = [sample]
    var phase = RunResult.Phase()
    phase.name = .measured
    result.phases = [phase]
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    var document = try #require(try JSONSerialization.jsonObject(with: encoder.encode(result)) as? [String: Any])
    func without(_ names: [String], _ value: Any?) throws -> [String: Any] {
      var object = try #require(value as? [String: Any])
      for name in names { #expect(object.removeValue(forKey: name) != nil, "\(name)") }
      return object
    }
    let series = try #require(document["series"] as? [Any])
    document["series"] = [
      try without(
        ["errors_by_status", "skipped", "writes", "closed_by_cause", "backlog", "loop_lag_p99_us", "rss_bytes"],
        series[0])
    ]
    let phases = try #require(document["phases"] as? [Any])
    document["phases"] = [try without(["skipped"], phases[0])]
    document["latency"] = try without(["tls_resumed_ms"], document["latency"])
    document = try without(["timeline", "schedule"], document)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let read = try decoder.decode(RunResult.self, from: JSONSerialization.data(withJSONObject: document))
    // Unknown is not none.
    (result.series[0].writes, result.series[0].closedByCause) = (nil, nil)
    #expect(read == result)
  }
}
