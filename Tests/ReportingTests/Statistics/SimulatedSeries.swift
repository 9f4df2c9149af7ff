import Foundation
import TestSupport
import Testing

/// Rates of a run whose true mean is known, in times of 100 ms.
enum SimulatedSeries: CustomTestStringConvertible, Sendable {
  /// AR(1) from one time to the next.
  case correlated(Double)
  /// AR(1) from second to second, with noise of so many of its standard deviations on each time.
  case bySecond(Double, noise: Double)
  /// The same correlation, spread evenly over the times of each second.
  case slow(Double, noise: Double)
  /// It stands still for a time within these, after exponential gaps with this mean; what is not sent then never is.
  case stalls(gap: Double, ClosedRange<Double>, correlated: Double)
  /// What was due meanwhile is sent afterwards, three times as fast.
  case stallsCaughtUp(gap: Double, ClosedRange<Double>)
  /// An even pace, each notification a little late.
  case even

  static let all: [SimulatedSeries] = {
    var all: [SimulatedSeries] = []
    for factor in [0, 0.3, 0.6, 0.8] {
      all.append(.correlated(factor))
      for noise in [0.0, 1, 3] { all.append(.bySecond(factor, noise: noise)) }
    }
    return all + [
      .slow(0.8, noise: 0), .slow(0.8, noise: 2), .slow(0.3, noise: 2), .stalls(gap: 1.5, 0.2...0.6, correlated: 0),
      .stalls(gap: 3, 0.2...0.6, correlated: 0.8), .stalls(gap: 5, 0.1...1, correlated: 0),
      .stallsCaughtUp(gap: 3, 0.2...0.6), .even,
    ]
  }()

  var testDescription: String { "\(self)" }

  /// The true mean of `rates`.
  var mean: Double {
    switch self {
    case .stalls(let gap, let stall, _):
      1_000 * gap / (gap + (stall.lowerBound + stall.upperBound) / 2)
    default: 1_000
    }
  }

  func rates(seconds: Int, _ random: inout SeededGenerator) -> [Double] {
    let count = seconds * 10
    switch self {
    case .correlated(let factor): return normals(factor, count, &random).map { 1_000 + 100 * $0 }
    case .bySecond(let factor, let noise):
      let slow = normals(factor, seconds, &random)
      return (0..<count).map { index -> Double in
        1_000 + 100 * (slow[index / 10] + noise * normal(&random))
      }
    case .slow(let factor, let noise):
      return normals(pow(factor, 0.1), count, &random).map { value -> Double in
        1_000 + 100 * (value + noise * normal(&random))
      }
    case .stalls(let gap, let stall, let factor):
      let up = shareUp(gap, stall, count, &random)
      let noise = normals(factor, count, &random)
      return (0..<count).map { index -> Double in 1_000 * up[index] * (1 + 0.05 * noise[index]) }
    case .stallsCaughtUp(let gap, let stall):
      var backlog = 0.0
      return shareUp(gap, stall, count, &random).map { up in
        let due = 1_000 + backlog
        let sent = min(3_000 * up, due)
        backlog = due - sent
        return sent
      }
    case .even:
      let phase = Double.random(in: 0..<1, using: &random)
      let sent = (0...count).map { index -> Double in
        (Double(index) * 100 + phase - 0.1 * abs(normal(&random))).rounded(.down)
      }
      return zip(sent, sent.dropFirst()).map { ($1 - $0) * 10 }
    }
  }

  /// Of each time, how much of it was no stall.
  private func shareUp(
    _ gap: Double, _ stall: ClosedRange<Double>, _ count: Int, _ random: inout SeededGenerator
  ) -> [Double] {
    var up = [Double](repeating: 1, count: count)
    // It has been so for a while.
    var time = -20 * gap
    while time < Double(count) / 10 {
      time -= gap * log(1 - Double.random(in: 0..<1, using: &random))
      let end = time + Double.random(in: stall, using: &random)
      let first = max(0, Int((time * 10).rounded(.down)))
      for index in first..<max(first, min(count, Int((end * 10).rounded(.up)))) {
        up[index] -= max(0, min(end * 10, Double(index + 1)) - max(time * 10, Double(index)))
      }
      time = end
    }
    return up
  }
}

/// AR(1) with mean 0 and variance 1 from the first value on: x ← φx + √(1 − φ²) noise.
func normals(_ factor: Double, _ count: Int, _ random: inout SeededGenerator) -> [Double] {
  var value = normal(&random)
  let share = (1 - factor * factor).squareRoot()
  return (0..<count).map { _ in
    value = factor * value + share * normal(&random)
    return value
  }
}

/// Box and Muller.
func normal(_ random: inout SeededGenerator) -> Double {
  let (radius, turn) = (unit(&random), unit(&random))
  return (-2 * log(1 - radius)).squareRoot() * cos(2 * .pi * turn)
}

/// From 0 to less than 1.
private func unit(_ random: inout SeededGenerator) -> Double { Double(random.next() >> 11) * 0x1p-53 }
