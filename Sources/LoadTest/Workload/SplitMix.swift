/// Random numbers that a seed gives again (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct SplitMix: RandomNumberGenerator, Sendable {
  /// The odd number next to 2⁶⁴ divided by the golden ratio: multiples of it are spread evenly.
  static let step: UInt64 = 0x9e37_79b9_7f4a_7c15

  private var state: UInt64

  init(seed: UInt64) { state = Self.mixed(seed) }

  @inline(__always)
  mutating func next() -> UInt64 {
    state &+= Self.step
    return Self.mixed(state)
  }

  /// Different for each value (it can be undone), and any bit of the value changes half of the result's.
  @inline(__always)
  static func mixed(_ value: UInt64) -> UInt64 {
    var mixed = value
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
