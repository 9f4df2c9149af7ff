import Bytes
import Glibc
import Measurement

/// How long answers take.
package enum AnswerDelay: Sendable, Equatable {
  /// Evenly drawn; the same time twice is a fixed one.
  case uniform(ClosedRange<Duration>)
  /// Drawn from an exponential distribution with this mean.
  case exponential(mean: Duration)
  /// Drawn from a lognormal distribution with this median; `sigma` is the standard deviation of its logarithm.
  case lognormal(median: Duration, sigma: Double)
  /// One of these, each as likely.
  case list(DelayList)

  /// The longest delay that is drawn from a distribution without an end.
  package static let longest = Duration.seconds(3_600)

  /// A delay in nanoseconds.
  func draw(_ generator: inout SplitMix64) -> Int64 {
    switch self {
    case .uniform(let range):
      let (low, high) = (range.lowerBound.nanoseconds, range.upperBound.nanoseconds)
      return low == high ? low : Int64.random(in: low...high, using: &generator)
    case .exponential(let mean):
      return Self.nanoseconds(-log(Self.positive(&generator)) * Double(mean.nanoseconds))
    case .lognormal(let median, let sigma):
      // Box and Muller.
      let radius = sqrt(-2 * log(Self.positive(&generator)))
      let normal = radius * cos(2 * .pi * Double.random(in: 0..<1, using: &generator))
      return Self.nanoseconds(exp(sigma * normal) * Double(median.nanoseconds))
    case .list(let list):
      return list.nanoseconds.isEmpty
        ? 0 : list.nanoseconds[Int.random(in: list.nanoseconds.indices, using: &generator)]
    }
  }

  private static func positive(_ generator: inout SplitMix64) -> Double {
    1 - Double.random(in: 0..<1, using: &generator)
  }

  private static func nanoseconds(_ value: Double) -> Int64 { Int64(min(value, Double(longest.nanoseconds))) }
}

/// Delays that were measured elsewhere.
package struct DelayList: Sendable, Equatable {
  /// The most lines of a file.
  package static let maximumCount = 1_000_000

  /// The file, as it was named.
  package var path: String
  package var nanoseconds: [Int64]

  /// Why a file of delays cannot be used.
  package struct Problem: Error, CustomStringConvertible {
    package let description: String
  }

  /// A file that is not read yet.
  init(named path: String) { (self.path, nanoseconds) = (path, []) }

  /// Reads milliseconds, one a line; empty lines and those that begin with `#` are left out.
  package init(path: String) throws(Problem) {
    let bytes: [UInt8]
    do {
      bytes = try WholeFile.read(path, maximumLength: 32 << 20)
    } catch {
      throw Problem(description: "\(path): \(error)")
    }
    nanoseconds = []
    self.path = path
    for (number, line) in bytes.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
      var text = String(decoding: line, as: UTF8.self)[...]
      while text.last?.isWhitespace == true { text.removeLast() }
      while text.first?.isWhitespace == true { text.removeFirst() }
      if text.isEmpty || text.hasPrefix("#") { continue }
      guard let value = Double(text), (0...3_600_000).contains(value) else {
        throw Problem(description: "\(path): line \(number + 1) is no time in milliseconds from 0 to 3600000")
      }
      guard nanoseconds.count < Self.maximumCount else {
        throw Problem(description: "\(path): more than \(Self.maximumCount) delays")
      }
      nanoseconds.append(Int64(value * 1e6))
    }
    guard !nanoseconds.isEmpty else { throw Problem(description: "\(path): no delays") }
  }
}
