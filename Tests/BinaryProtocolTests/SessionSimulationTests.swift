import Foundation
import Testing

/// Provider against gateway, a thousand times.
/// `APNSCOPE_SEED=17 Scripts/test BinaryProtocolTests.SessionSimulationTests` runs one.
@Suite("Session simulations")
struct SessionSimulationTests {
  static let chosen = ProcessInfo.processInfo.environment["APNSCOPE_SEED"].flatMap(UInt64.init)
  static let blocks: [ClosedRange<UInt64>] =
    chosen.map { [$0...$0] } ?? stride(from: 1, through: 1_000, by: 50).map { $0...$0 + 49 }

  @Test("All books balance", arguments: blocks)
  func books(seeds: ClosedRange<UInt64>) {
    for seed in seeds {
      var simulation = SessionSimulation(seed: seed)
      simulation.run()
      for problem in simulation.problems.prefix(3) { Issue.record("APNSCOPE_SEED=\(seed): \(problem)") }
    }
  }

  @Test("A seed gives the same simulation again")
  func repeatable() {
    for seed in 1...20 as ClosedRange<UInt64> {
      let tallies = (0..<2).map { _ in
        var simulation = SessionSimulation(seed: seed)
        simulation.run()
        return "\(simulation.tally)"
      }
      #expect(tallies[0] == tallies[1])
    }
  }

  @Test("Simulations meet everything they are made for", .enabled(if: chosen == nil))
  func coverage() {
    var sum: [String: Int] = [:]
    for seed in 1...200 as ClosedRange<UInt64> {
      var simulation = SessionSimulation(seed: seed)
      simulation.run()
      for child in Mirror(reflecting: simulation.tally).children {
        sum[child.label ?? "", default: 0] += child.value as? Int ?? 0
      }
    }
    for (name, count) in sum { #expect(count >= 20, "\(name): \(count) in 200 simulations") }
    #expect(sum.count == 11)
    if ProcessInfo.processInfo.environment["APNSCOPE_TALLY"] != nil { print(sum.sorted { $0.key < $1.key }) }
  }
}
