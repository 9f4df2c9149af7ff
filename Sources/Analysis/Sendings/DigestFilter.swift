/// A filter that quickly rules out that a digest is in a set: it has a bit for each digest in the set.
struct DigestFilter {
  private static let words = 8_192
  private var bits: [UInt64] = []

  @inline(__always)
  private static func bit(_ digest: UInt64) -> (word: Int, mask: UInt64) {
    let place = Int(truncatingIfNeeded: digest >> 45)
    return (place >> 6, 1 << UInt64(place & 63))
  }

  mutating func insert(_ digest: UInt64) {
    if bits.isEmpty { bits = Array(repeating: 0, count: Self.words) }
    let (word, mask) = Self.bit(digest)
    bits[word] |= mask
  }

  /// Whether it may be in the set; `false` is certain.
  @inline(__always)
  func mayHave(_ digest: UInt64) -> Bool {
    guard !bits.isEmpty else { return false }
    let (word, mask) = Self.bit(digest)
    return bits[word] & mask != 0
  }
}
