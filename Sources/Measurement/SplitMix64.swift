/// Random numbers that a seed gives again: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014; Vigna's splitmix64.c).
///
/// Sequences must never change: a run is repeated by its seed.
@usableFromInline package struct SplitMix64: RandomNumberGenerator, Sendable {
  /// The odd number next to 2⁶⁴ divided by the golden ratio: multiples of it are spread evenly.
  @inlinable package static var step: UInt64 { @inline(__always) get { 0x9e37_79b9_7f4a_7c15 } }

  @usableFromInline var state: UInt64

  /// Neighbouring seeds give sequences that have nothing to do with each other.
  @inlinable
  package init(seed: UInt64) { state = Self.mixed(seed) }

  /// One of a seed's sequences; each stream has a different one.
  @inlinable
  package init(seed: UInt64, stream: UInt64) {
    state = seed
    state = next() ^ stream &* Self.step
  }

  @inlinable @inline(__always)
  package mutating func next() -> UInt64 {
    state &+= Self.step
    return Self.mixed(state)
  }

  /// The first number of the sequence from this state, e.g. to hash a single value.
  @inlinable @inline(__always)
  package static func first(from state: UInt64) -> UInt64 { mixed(state &+ step) }

  /// Different for each value (it can be undone), and any bit of the value changes half of the result's.
  @inlinable @inline(__always)
  package static func mixed(_ value: UInt64) -> UInt64 {
    var mixed = value
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// The value that `mixed` makes this one of.
  package static func unmixed(_ mixed: UInt64) -> UInt64 {
    var value = mixed ^ (mixed >> 31) ^ (mixed >> 62)
    value = value &* inverse(ofOdd: 0x94d0_49bb_1331_11eb)
    value = value ^ (value >> 27) ^ (value >> 54)
    value = value &* inverse(ofOdd: 0xbf58_476d_1ce4_e5b9)
    return value ^ (value >> 30) ^ (value >> 60)
  }

  /// The number whose product with an odd number is 1, modulo 2⁶⁴: each of Newton's steps doubles the right bits, from 3.
  package static func inverse(ofOdd factor: UInt64) -> UInt64 {
    var inverse = factor
    for _ in 0..<5 { inverse = inverse &* (2 &- factor &* inverse) }
    return inverse
  }
}
