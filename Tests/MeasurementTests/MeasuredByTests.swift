import Foundation
import TestSupport
import Testing

@testable import Measurement

@Suite("How figures were measured")
struct MeasuredByTests {
  /// A run that apnscope 0.1.0 has made.
  private func old() throws -> RunResult {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Results/load-0.1.json")
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(RunResult.self, from: Data(contentsOf: file))
  }

  @Test("A result of 0.1.0 is read: what it does not tell is absent, and not 0")
  func oldResult() throws {
    let result = try old()
    #expect(result.measuredBy == nil && result.rates.basis == nil && result.bins == nil && result.stalls == nil)
    #expect(result.latency.sendLagOwnUs == nil && result.latency.sendLagGatewayUs == nil)
    #expect(result.notifications.generated == 6_402_574 && result.notifications.accepted == 6_402_537)
    #expect(result.phases.map(\.name) == RunPhase.allCases)
    #expect(result.phases.allSatisfy { $0.rates == nil && $0.latency == nil && $0.batches == nil })
    #expect(result.series.allSatisfy { $0.stalledMs == nil } && result.environment.commit == nil)
    #expect(result.ofWholeRun(\.tlsHandshakeUs) == result.latency.tlsHandshakeUs)
    #expect(try Threshold("accepted_per_s>150k").judge(result).passed)
  }

  @Test("It merges with its like, and with no other")
  func mixtures() throws {
    var newer = try old()
    newer.measuredBy = 2
    #expect(try MergingTests.merge([old(), old()]).notifications.generated == 2 * 6_402_574)
    for results in [[try old(), newer], [newer, try old()]] {
      do {
        _ = try MergingTests.merge(results)
        Issue.record("merged")
      } catch let error as RunResult.MergeError {
        #expect(error.description.contains("is of apnscope 0.1.0, whose rates and latencies cover other times"))
      }
    }
  }

  @Test("Merged rates are over the drain too when a part's are, and stalls stand one after the other")
  func merged() throws {
    func part(_ basis: RunResult.Rates.Basis, drain: Double, stall: Double) -> RunResult {
      var result = RunResult()
      (result.measuredBy, result.measuredS, result.started) = (2, 10, "2026-01-02T03:04:05.000Z")
      result.rates.basis = basis
      // 10,000 accepted.
      result.rates.acceptedPerS = 10_000 / (basis == .measured ? 10 : 10 + drain)
      result.phases = [(RunPhase.measured, 10.0), (.drain, drain)].map { name, seconds in
        var phase = RunResult.Phase()
        (phase.name, phase.seconds) = (name, seconds)
        (phase.rates, phase.latency, phase.batches, phase.binary.lossWindow) = (
          .init(), .init(), .init(), .init(.count)
        )
        phase.rates?.writtenPerS = 100
        phase.sendings.accepted = name == .measured ? 10_000 : 0
        return phase
      }
      var stalls = RunResult.Stalls()
      (stalls.count, stalls.totalS, stalls.longestMs) = (1, stall, stall * 1e3)
      stalls.listed = [.init(tS: 10 - stall, ms: stall * 1e3)]
      result.stalls = stalls
      return result
    }
    let both = try MergingTests.merge([part(.measured, drain: 1, stall: 2), part(.measured, drain: 1, stall: 1)])
    #expect(both.rates.basis == .measured && both.rates.acceptedPerS == 2_000)
    #expect(both.stalls?.count == 2 && both.stalls?.totalS == 3 && both.stalls?.longestMs == 2_000)
    #expect(both.stalls?.listed.map(\.tS) == [8, 9])
    let behind = try MergingTests.merge([
      part(.measured, drain: 1, stall: 0), part(.measuredAndDrain, drain: 6, stall: 0),
    ])
    #expect(behind.rates.basis == .measuredAndDrain && behind.rates.acceptedPerS == 20_000.0 / 16)
    #expect(behind.phase(.measured)?.rates?.writtenPerS == 200)
    #expect(try MergingTests.merge([behind]).rates == behind.rates)
    // The longest measured phase and the longest drain need not be of one part.
    var long = part(.measured, drain: 1, stall: 0)
    (long.measuredS, long.phases[0].seconds) = (12, 12)
    let joined = try MergingTests.merge([long, part(.measuredAndDrain, drain: 6, stall: 0)])
    #expect(joined.rates.acceptedPerS == 20_000.0 / 18)
    #expect(behind.phase(.drain)?.rates?.writtenPerS == 700.0 / 6)
    // Of phases before, nothing was offered in the measured one.
    var warm = part(.measured, drain: 1, stall: 0)
    var warmUp = RunResult.Phase()
    (warmUp.name, warmUp.sendings.accepted) = (.warmUp, 4_000)
    warm.phases.insert(warmUp, at: 0)
    warm.phases[2].sendings.accepted = 30
    #expect(
      try MergingTests.merge([warm, part(.measuredAndDrain, drain: 6, stall: 0)]).rates.acceptedPerS == 20_030.0 / 16)
    // One that does not say what its rates are over.
    var untold = part(.measured, drain: 1, stall: 0)
    untold.rates.basis = nil
    #expect(try MergingTests.merge([untold, part(.measuredAndDrain, drain: 6, stall: 0)]).rates.basis == nil)
  }
}
