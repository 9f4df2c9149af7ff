import Glibc

/// Vigna's SplitMix64: small, and every stream of a seed is another sequence.
struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64, stream: UInt64) {
    state = seed
    state = next() ^ stream &* Self.step
  }

  mutating func next() -> UInt64 {
    defer { state &+= Self.step }
    return Self.mixed(state)
  }

  private static let step: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// What the generator gives in this state: every bit of the state decides over every bit of it.
  static func mixed(_ state: UInt64) -> UInt64 {
    var mixed = state &+ step
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// How many pass before the next hit: drawing that once costs nothing per notification.
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
