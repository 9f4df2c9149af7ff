import Reporting
import TestSupport
import Testing

@Suite("Goodput law and batch cost")
struct LawTests {
  @Test("The law's own arithmetic: 9,999 good ones, 32 lost, 1 ms down")
  func byHand() throws {
    let law = try #require(GoodputLaw(streamingRate: 1e6, discarded: 32, downtime: 1e-3))
    // 10,000 / (10,032 µs + 1,000 µs)
    #expect(abs(law.goodput(errorShare: 1e-4) - 10_000 / 11_032e-6) < 1e-6)
    #expect(law.goodput(errorShare: 0) == 1e6)
    // Two of these, held by one core at 1 µs each and 300 µs a handshake: 1/(1.0032 µs + 0.03 µs).
    let cores = GoodputLaw.Cores(1, secondsPerNotification: 1e-6, secondsPerHandshake: 3e-4)
    #expect(abs(law.goodput(errorShare: 1e-4, connections: 2, cores: cores) - 1 / 1.0332e-6) < 1e-3)
    #expect(law.goodput(errorShare: 1e-4, connections: 2, cores: nil) == 2 * law.goodput(errorShare: 1e-4))
    // Nothing beyond what was measured of all of them.
    var capped = law
    capped.ceiling = 1.5e6
    #expect(capped.goodput(errorShare: 1e-4, connections: 2, cores: nil) == 1.5e6)
    #expect(capped.goodput(errorShare: 1e-4, connections: 1, cores: nil) == law.goodput(errorShare: 1e-4))
  }

  @Test("A sender that is played step by step does what the law says", arguments: 1...50 as ClosedRange<UInt64>)
  func played(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (rate, down) = (Double(random.number(1_000...1_000_000)), Double.random(in: 0...0.1, using: &random))
    let (every, lost) = (random.number(100...5_000), random.number(0...500))
    let law = try #require(GoodputLaw(streamingRate: rate, discarded: Double(lost), downtime: down))
    var (time, good) = (0.0, 0)
    for _ in 0..<1_000 {
      time += Double(every + lost) / rate + down
      good += every
    }
    let share = 1 / Double(every)
    #expect(abs(law.goodput(errorShare: share) - Double(good) / time) < 1e-6 * rate)
    #expect(law.goodput(errorShare: share * 2) <= law.goodput(errorShare: share))
  }

  @Test("Numbers that are none make no law, and shares out of range none that is no number")
  func degenerate() throws {
    #expect(GoodputLaw(streamingRate: 0, discarded: 0, downtime: 0) == nil)
    #expect(GoodputLaw(streamingRate: 1, discarded: .nan, downtime: 0) == nil)
    #expect(GoodputLaw(streamingRate: 1, discarded: 0, downtime: -1) == nil)
    let law = try #require(GoodputLaw(streamingRate: 5, discarded: 0, downtime: 0))
    for share in [-1, 0, 1, 2, .nan] { #expect(law.goodput(errorShare: share).isFinite) }
    let free = GoodputLaw.Cores(2, secondsPerNotification: 0, secondsPerHandshake: 0)
    #expect(law.goodput(errorShare: 0, connections: 3, cores: free) == 15)
  }

  @Test("Batch costs of F/b + V give F and V")
  func batches() throws {
    let fit = try BatchCost([1, 4, 16, 64].map { BatchCost.Point(batch: $0, cost: 3.2 / $0 + 0.21) })
    #expect(abs(fit.perWrite - 3.2) < 1e-9 && abs(fit.perNotification - 0.21) < 1e-9)
    #expect(fit.rSquared > 0.999_999)
    let cost = try #require(fit.cost(batch: 32))
    #expect(abs(cost - 0.31) < 1e-9)
    #expect(fit.cost(batch: 0.5) == nil)
  }

  @Test("F and V are worth showing when their errors are known and they explain nine tenths of what differs")
  func telling() throws {
    let points = [1.0, 4, 16, 64].map { BatchCost.Point(batch: $0, cost: 3.2 / $0 + 0.21) }
    #expect(try BatchCost(points).isConclusive)
    // Two sizes are fitted by any F and V.
    let two = try BatchCost(Array(points.prefix(2)))
    #expect(two.rSquared == 1 && two.perWriteHalfWidth == nil && !two.isConclusive)
    let far = try BatchCost([(1, 3.4), (1, 1.9), (4, 1), (16, 2.2), (64, 1.3)].map { .init(batch: $0.0, cost: $0.1) })
    #expect(far.rSquared < 0.9 && !far.isConclusive)
  }

  @Test("Weights are as if a point were there so many times")
  func weights() throws {
    let (a, b, c) = (BatchCost.Point(batch: 1, cost: 4), BatchCost.Point(batch: 3, cost: 1), (5.0, 1.1))
    let weighted = try BatchCost([a, b, .init(batch: c.0, cost: c.1, weight: 3)])
    let repeated = try BatchCost([a, b] + [BatchCost.Point](repeating: .init(batch: c.0, cost: c.1), count: 3))
    #expect(abs(weighted.perWrite - repeated.perWrite) < 1e-9)
    #expect(abs(weighted.perNotification - repeated.perNotification) < 1e-9)
    #expect(abs(weighted.rSquared - repeated.rSquared) < 1e-9)
    #expect(throws: BatchCost.Problem.badPoint) { try BatchCost([a, .init(batch: 2, cost: 1, weight: 0)]) }
  }

  @Test("Neither part of a batch's cost is ever negative")
  func bounds() throws {
    // Dearer in large batches, and cheaper than any V would allow.
    let rising = try BatchCost([.init(batch: 1, cost: 1), .init(batch: 10, cost: 2)])
    #expect(rising.perWrite == 0 && rising.perNotification > 0)
    let steep = try BatchCost([.init(batch: 1, cost: 10), .init(batch: 10, cost: 0.1)])
    #expect(steep.perNotification == 0 && steep.perWrite > 0)
    #expect(throws: BatchCost.Problem.tooFewPoints) { try BatchCost([.init(batch: 2, cost: 1)]) }
    #expect(throws: BatchCost.Problem.badPoint) { try BatchCost([.init(batch: 0, cost: 1), .init(batch: 2, cost: 1)]) }
  }
}
