import Glibc
import Measurement

extension SplitMix64 {
  /// The number of misses before the next hit, drawn once to avoid a cost per notification.
  mutating func waiting(for probability: Double) -> Int {
    guard probability > 0 else { return .max }
    guard probability < 1 else { return 0 }
    let draw = 1 - Double.random(in: 0..<1, using: &self)
    return Int(min(1e18, (log(draw) / log1p(-probability)).rounded(.down)))
  }

  mutating func isHit(_ probability: Double) -> Bool {
    probability > 0 && Double.random(in: 0..<1, using: &self) < probability
  }
}
