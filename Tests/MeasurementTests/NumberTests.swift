import Testing

@testable import Measurement

@Suite("Numbers that may be anything")
struct NumberTests {
  @Test("A number that is too large, or none, is the nearest that fits")
  func nearest() {
    for (value, expected) in [
      (0, 0), (1.9, 1), (-1.9, -1), (1e300, .max), (-1e300, .min), (.infinity, .max), (-.infinity, .min), (.nan, 0),
      (9_007_199_254_740_993, 9_007_199_254_740_992),
    ] as [(Double, Int)] {
      #expect(Int(nearest: value) == expected)
    }
    #expect(UInt8(nearest: 255.5) == 255 && UInt8(nearest: 256) == 255 && UInt8(nearest: -0.5) == 0)
    #expect(UInt8(nearest: -1) == 0)
  }

  @Test("What JSON cannot represent becomes what it can")
  func finite() {
    #expect(Measurement.finite(.nan) == 0 && Measurement.finite(1.5) == 1.5 && Measurement.finite(-1.5) == -1.5)
    #expect(Measurement.finite(.infinity) == .greatestFiniteMagnitude)
    #expect(Measurement.finite(-.infinity) == -.greatestFiniteMagnitude)
  }

  @Test("A sum stays at its end")
  func sums() {
    #expect(sum(2, 3) == 5 && sum(-2, 3) == 1)
    #expect(sum(.max, 1) == .max && sum(1, .max) == .max && sum(.min, -1) == .min && sum(-1, .min) == .min)
    #expect(sum(.max, .min) == -1)
  }

  @Test("Phases are numbered in their order")
  func phases() { #expect(RunPhase.allCases.map(\.index) == [0, 1, 2, 3]) }

  @Test("Causes that loads count are of both sides and of their own limits")
  func ends() {
    #expect(
      ConnectionEnd.ofLoads.map(\.rawValue) == [
        "rejected", "shutdown", "peer_fin", "peer_rst", "idle", "lifetime", "local",
      ])
  }

  @Test("Stalls affect a phase by more than a hundredth of its length, or one of more than 50 ms")
  func stalls() {
    for (total, longest, spoils) in [
      (0.1, 50, false), (0.1001, 1, true), (0, 50.5, true), (0, 50, false), (0.05, 49, false),
    ] as [(Double, Double, Bool)] {
      var stalls = RunResult.Stalls()
      (stalls.totalS, stalls.longestMs) = (total, longest)
      #expect(stalls.spoils(10) == spoils, "\(total) s, \(longest) ms")
    }
  }

  @Test("Each once, in the order of the first time")
  func unique() { #expect(Measurement.unique(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]) }
}
