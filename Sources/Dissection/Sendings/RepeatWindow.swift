import CPrefetch

/// Finds the latest earlier place of the same content among the places noted lately, with one access to memory.
///
/// Buckets of eight places, each of which forgets its oldest. With four times as many places as the window has, one is
/// hardly ever forgotten within the window; `reach` says so.
struct RepeatWindow {
  /// 64 bytes: a line of the processor's cache.
  private struct Bucket {
    /// 32 bits of the digest that do not choose the bucket.
    var tags = InlineArray<8, UInt32>(repeating: 0)
    /// The places, modulo 2³².
    var places = InlineArray<8, UInt32>(repeating: 0)

    /// The slot with a tag; -1: there is none. Without branches, which could not be predicted.
    @inline(__always)
    func slot(of tag: UInt32) -> Int {
      var found = -1
      for slot in 0..<8 { found = tags[slot] == tag ? slot : found }
      return found
    }
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

  /// Digests of like contents are alike in some bits.
  @inline(__always)
  private static func mixed(_ digest: UInt64) -> UInt64 { digest &* 0x9e37_79b9_7f4a_7c15 }

  /// Begins to fetch what `note` needs soon: waiting for memory would take longer than all else that a notification does.
  @inline(__always)
  func prepare(_ digest: UInt64) {
    if buckets.isEmpty { return }
    let index = Int(truncatingIfNeeded: Self.mixed(digest) >> shift)
    // Safe: nothing is read, and the address is within the buckets.
    unsafe buckets.withUnsafeBytes { memory in
      guard let base = memory.baseAddress else { return }
      // An array's memory begins anywhere, so that a bucket is in two lines.
      unsafe apnscope_prefetch(base + index &* 64)
      unsafe apnscope_prefetch(base + (index &* 64 &+ 63))
    }
  }

  /// Notes a content and returns its place before; -1: there is none.
  @inline(__always)
  mutating func note(_ digest: UInt64, at place: Int) -> Int {
    if buckets.isEmpty { allocate() }
    let mixed = Self.mixed(digest)
    let index = Int(truncatingIfNeeded: mixed >> shift)
    let tag = UInt32(truncatingIfNeeded: mixed >> 8) | 1
    let same = buckets[index].slot(of: tag)
    if same >= 0 { return repeated(index, same, at: place) }
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
    let oldest = (0..<8).max { age($0, of: index, at: place) < age($1, of: index, at: place) } ?? 0
    reach = min(reach, age(oldest, of: index, at: place) - 1)
    return oldest
  }

  /// The latest place is enough: those before it were found when it was noted.
  @inline(never)
  private mutating func repeated(_ index: Int, _ slot: Int, at place: Int) -> Int {
    let distance = age(slot, of: index, at: place)
    buckets[index].places[slot] = UInt32(truncatingIfNeeded: place)
    return place - distance
  }

  @inline(never)
  private mutating func allocate() {
    buckets = Array(repeating: Bucket(), count: 1 << Int(64 - shift))
    next = Array(repeating: 0, count: 1 << Int(64 - shift))
  }
}
