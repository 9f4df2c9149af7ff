/// Finds the latest earlier place of the same content among the places noted lately, with one access to memory.
///
/// Buckets of eight places, each of which forgets its oldest. With four times as many places as the window has, one is
/// hardly ever forgotten within the window; `reach` says so.
struct RepeatWindow {
  /// 64 bytes: a line of the processor's cache.
  private struct Bucket {
    /// 32 bits of the digest that do not choose the bucket.
    var tags = SIMD8<UInt32>(repeating: 0)
    /// The places, modulo 2³².
    var places = SIMD8<UInt32>(repeating: 0)
  }

  private let window: Int
  /// The number of buckets is 2 to the power of 64 less this.
  private let shift: UInt64
  private var buckets: [Bucket] = []
  /// The slot of each bucket that is written next.
  private var next: [UInt8] = []
  /// The same content is found among so many places before it.
  private(set) var reach = Int.max

  /// - Parameter window: a power of two.
  init(window: Int) {
    self.window = window
    shift = UInt64(64 - max(4, (max(1, window / 2)).trailingZeroBitCount))
  }

  /// Notes a content and returns its place before; -1: there is none.
  @inline(__always)
  mutating func note(_ digest: UInt64, at place: Int) -> Int {
    if buckets.isEmpty { allocate() }
    // Digests of like contents are alike in some bits.
    let mixed = digest &* 0x9e37_79b9_7f4a_7c15
    let index = Int(truncatingIfNeeded: mixed >> shift)
    let tag = UInt32(truncatingIfNeeded: mixed >> 8) | 1
    let same = buckets[index].tags .== tag
    if any(same) { return repeated(index, same, at: place) }
    var slot = Int(next[index])
    next[index] = UInt8((slot + 1) & 7)
    if buckets[index].tags[slot] != 0, age(slot, of: index, at: place) <= window { slot = oldest(of: index, at: place) }
    buckets[index].tags[slot] = tag
    buckets[index].places[slot] = UInt32(truncatingIfNeeded: place)
    return -1
  }

  @inline(__always)
  private func age(_ slot: Int, of index: Int, at place: Int) -> Int {
    Int(UInt32(truncatingIfNeeded: place) &- buckets[index].places[slot])
  }

  /// The slot that is forgotten, when one or more of the bucket are within the window.
  @inline(never)
  private mutating func oldest(of index: Int, at place: Int) -> Int {
    for slot in 0..<8 where buckets[index].tags[slot] == 0 { return slot }
    let oldest = (0..<8).max { age($0, of: index, at: place) < age($1, of: index, at: place) } ?? 0
    reach = min(reach, age(oldest, of: index, at: place) - 1)
    return oldest
  }

  /// The latest place is enough: those before it were found when it was noted.
  @inline(never)
  private mutating func repeated(_ index: Int, _ same: SIMDMask<SIMD8<Int32>>, at place: Int) -> Int {
    for slot in 0..<8 where same[slot] {
      let distance = age(slot, of: index, at: place)
      buckets[index].places[slot] = UInt32(truncatingIfNeeded: place)
      return place - distance
    }
    return -1
  }

  @inline(never)
  private mutating func allocate() {
    buckets = Array(repeating: Bucket(), count: 1 << Int(64 - shift))
    next = Array(repeating: 0, count: 1 << Int(64 - shift))
  }
}
