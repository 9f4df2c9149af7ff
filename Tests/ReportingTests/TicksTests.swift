import Testing

@testable import Reporting

/// Where labels stand on an axis.
@Suite("Ticks")
struct TicksTests {
  /// Ranges of every size, from a seed.
  private static let ranges: [(low: Double, high: Double)] = {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    func next() -> Double {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Double(state >> 11) / 0x1p53
    }
    func power() -> Double {
      var value = 1.0
      for _ in 0..<Int(next() * 12) { value *= 10 }
      return next() < 0.5 ? value : 1 / value
    }
    return (0..<3_000).map { _ in
      let low = (next() - 0.5) * power()
      return (low, low + next() * power() + abs(low) * 1e-6)
    }
  }()

  @Test("Ticks that cover a range do, evenly, by 1, 2 or 5 times a power of ten, and are 2 to as many as asked")
  func covering() {
    for (low, high) in Self.ranges {
      for count in [3, 5, 8] {
        let ticks = Ticks.covering(low, high, atMost: count)
        #expect((2...count).contains(ticks.count), "\(low)...\(high): \(ticks)")
        guard let first = ticks.first, let last = ticks.last, ticks.count > 1 else { continue }
        let slack = (last - first) * 1e-8
        #expect(first <= low + slack && last >= high - slack, "\(low)...\(high): \(ticks)")
        let step = (last - first) / Double(ticks.count - 1)
        for (a, b) in zip(ticks, ticks.dropFirst()) { #expect(abs(b - a - step) <= step * 1e-6) }
        var digit = step
        while digit >= 9.5 { digit /= 10 }
        while digit < 0.95 { digit *= 10 }
        #expect([1, 2, 5].contains { abs($0 - digit) < 1e-6 }, "\(low)...\(high): step \(step)")
        // Not one that wastes most of the axis.
        #expect(first > low - step * 1.001 && last < high + step * 1.001)
      }
    }
  }

  @Test("Ticks inside a range are, in order, and not more than asked")
  func inside() {
    for (low, high) in Self.ranges {
      let ticks = Ticks.inside(low, high, atMost: 7)
      #expect(ticks.count <= 7 && !ticks.isEmpty)
      #expect(ticks.allSatisfy { $0 >= low - (high - low) * 1e-6 && $0 <= high + (high - low) * 1e-6 })
      #expect(ticks == ticks.sorted())
    }
  }

  @Test("Logarithmic ticks cover the range, grow, and are 2 to as many as asked")
  func logarithmic() {
    for (low, high) in Self.ranges where high > 0 {
      let low = low > 0 ? low : high / 1_000
      for count in [4, 6, 9] {
        let ticks = Ticks.logarithmic(low, high, atMost: count)
        #expect((2...count).contains(ticks.count), "\(low)...\(high): \(ticks)")
        #expect((ticks.first ?? .infinity) <= low * 1.000_001 && (ticks.last ?? 0) >= high * 0.999_999)
        #expect(zip(ticks, ticks.dropFirst()).allSatisfy { $0 < $1 })
      }
    }
  }

  @Test("Times have whole seconds, minutes and hours; bytes have powers of two")
  func steps() {
    #expect(Ticks.inside(0, 3_600, atMost: 7, steps: .time) == [0, 600, 1_200, 1_800, 2_400, 3_000, 3_600])
    #expect(Ticks.inside(0, 86_400, atMost: 5, steps: .time) == [0, 21_600, 43_200, 64_800, 86_400])
    #expect(Ticks.inside(0, 90, atMost: 7, steps: .time) == [0, 15, 30, 45, 60, 75, 90])
    #expect(Ticks.covering(0, 60_000, atMost: 5, steps: .binary) == [0, 16_384, 32_768, 49_152, 65_536])
  }

  @Test("Any numbers make ticks: none, one, the largest, what is none")
  func extremes() {
    for (low, high) in [
      (0.0, 0.0), (5, 5), (-5, -5), (1e15, 1e15 + 1), (-.infinity, .infinity), (.nan, .nan),
      (0, .greatestFiniteMagnitude), (0, .leastNonzeroMagnitude), (-1e300, 1e300),
    ] {
      for steps in [Ticks.Steps.decimal, .binary, .time] {
        let ticks = Ticks.covering(low, high, atMost: 5, steps: steps)
        #expect((2...5).contains(ticks.count) && ticks.allSatisfy(\.isFinite), "\(low)...\(high): \(ticks)")
      }
      #expect((2...5).contains(Ticks.logarithmic(low, high, atMost: 5).count))
    }
    #expect(Ticks.percentiles(upTo: 0.9995) == [0, 0.5, 0.9, 0.99, 0.999])
  }
}
