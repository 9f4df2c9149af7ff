/// Random numbers that a seed gives again: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014). The seed stands in a test's arguments, so a failure names the run that shows it.
public struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  public mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

  public mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  public mutating func uint32() -> UInt32 { UInt32.random(in: 0...UInt32.max, using: &self) }

  /// True once in `chances` times.
  public mutating func happens(oneIn chances: Int) -> Bool { number(1...chances) == 1 }

  public mutating func pick<C: Collection>(_ choices: C) -> C.Element {
    choices.randomElement(using: &self)!
  }
}
