/// Random numbers that a seed and a number give again: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", 2014).
struct SampleDraws: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64, number: UInt64) {
    state = seed ^ 0x7061_796c_6f61_6401
    state = next() &+ number &* 0x9e37_79b9_7f4a_7c15
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to `bound`, which is above 0 and far below 2³².
  mutating func below(_ bound: Int) -> Int { Int(((next() >> 32) &* UInt64(bound)) >> 32) }

  mutating func happens(oneIn chances: Int) -> Bool { below(chances) == 0 }

  /// A random element; the list must not be empty.
  mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }
}
