import Bytes

/// Finds the latest earlier place of the same content among the places noted lately, with one memory access.
///
/// Buckets hold eight places each and drop their oldest. With four times as many places as the window, a place is
/// hardly ever dropped within the window; `reach` says so.
struct RepeatWindow {
  /// A bucket is 64 bytes, a line of the processor's cache: eight tags, which are 32 bits of the digest that do not choose
  /// the bucket, then the eight places, modulo 2³².
  private static let bucketWords = 16
  private static let slots = 8

  private let window: Int
  /// The number of buckets is 2 to the power of 64 less this.
  private let shift: UInt64
  private var words: [UInt32] = []
  /// The index of the first bucket, so that each bucket is one cache line.
  private var first = 0
  /// The slot of each bucket that is written next.
  private var next: [UInt8] = []
  /// The number of earlier places among which the same content is found for certain.
  private(set) var reach = Int.max

  /// - Parameter window: a power of two.
  init(window: Int) {
    self.window = window
    shift = UInt64(64 - max(4, (max(1, window / 2)).trailingZeroBitCount))
  }

  /// Digests of like contents are alike in some bits.
  @inline(__always)
  private static func mixed(_ digest: UInt64) -> UInt64 { digest &* 0x9e37_79b9_7f4a_7c15 }

  /// Prefetches the bucket that `note` will need: a cache miss would take longer than everything else about a
  /// notification.
  @inline(__always)
  func prepare(_ digest: UInt64) {
    let bucket = first &+ Int(truncatingIfNeeded: Self.mixed(digest) >> shift) &* Self.bucketWords
    words.prefetch(bucket..<bucket &+ Self.bucketWords)
  }

  /// The slot with a tag; -1: there is none. Without branches, which could not be predicted.
  @inline(__always)
  private func slot(of tag: UInt32, in bucket: Int) -> Int {
    // Safe: a bounds-checked load of a type in which every bit pattern is a value.
    let tags = unsafe words.withUnsafeBytes {
      unsafe $0.loadUnaligned(fromByteOffset: bucket * 4, as: SIMD8<UInt32>.self)
    }
    var found = -1
    for slot in 0..<Self.slots { found = tags[slot] == tag ? slot : found }
    return found
  }

  /// Notes a content and returns its place before; -1: there is none.
  @inline(__always)
  mutating func note(_ digest: UInt64, at place: Int) -> Int {
    if words.isEmpty { allocate() }
    let mixed = Self.mixed(digest)
    let index = Int(truncatingIfNeeded: mixed >> shift)
    let bucket = first + index * Self.bucketWords
    let tag = UInt32(truncatingIfNeeded: mixed >> 8) | 1
    let same = slot(of: tag, in: bucket)
    if same >= 0 { return repeated(bucket, same, at: place) }
    var slot = Int(next[index])
    next[index] = UInt8((slot + 1) & (Self.slots - 1))
    if words[bucket + slot] != 0, age(slot, of: bucket, at: place) <= window { slot = oldest(of: bucket, at: place) }
    words[bucket + slot] = tag
    words[bucket + Self.slots + slot] = UInt32(truncatingIfNeeded: place)
    return -1
  }

  @inline(__always)
  private func age(_ slot: Int, of bucket: Int, at place: Int) -> Int {
    Int(UInt32(truncatingIfNeeded: place) &- words[bucket + Self.slots + slot])
  }

  /// Returns the slot to be overwritten when the next one is within the window: the bucket's oldest.
  @inline(never)
  private mutating func oldest(of bucket: Int, at place: Int) -> Int {
    let oldest =
      (0..<Self.slots).max { age($0, of: bucket, at: place) < age($1, of: bucket, at: place) } ?? 0
    reach = min(reach, age(oldest, of: bucket, at: place) - 1)
    return oldest
  }

  /// Replaces the place by the latest one, which is enough: earlier places were returned when it was noted.
  @inline(never)
  private mutating func repeated(_ bucket: Int, _ slot: Int, at place: Int) -> Int {
    let distance = age(slot, of: bucket, at: place)
    words[bucket + Self.slots + slot] = UInt32(truncatingIfNeeded: place)
    return place - distance
  }

  @inline(never)
  private mutating func allocate() {
    let buckets = 1 << Int(64 - shift)
    words = Array(repeating: 0, count: (buckets + 1) * Self.bucketWords)
    next = Array(repeating: 0, count: buckets)
    // An array's memory begins anywhere. A copy of it may begin elsewhere, which costs time only.
    let line = Self.bucketWords * 4
    let start = unsafe words.withUnsafeBytes { Int(bitPattern: $0.baseAddress) % line }
    first = (line - start) % line / 4
  }
}
