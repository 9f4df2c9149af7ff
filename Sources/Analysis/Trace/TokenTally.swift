import Measurement

/// How often each device token was written to, by its first eight bytes: exact up to a number of distinct tokens, and
/// from then on for a sample of tokens.
///
/// The sample is adaptive (Wegman; Flajolet, "On adaptive sampling", 1990): when there are too many tokens, only tokens
/// whose hash begins with one more zero bit are kept. Which tokens are kept does not depend on how often or when tokens
/// occur, so their counts are exact, and their number times 2ᵏ estimates the total.
struct TokenTally {
  private let limit: Int
  /// The slots of a hash table with linear probing: a power of two, at least twice the limit.
  private var slots: [(key: UInt64, count: Int)]
  private var used = 0
  /// Tokens are kept whose hash begins with this many zero bits.
  private(set) var level: UInt64 = 0
  private var mask = UInt64.max
  /// The token of zeros has no place among the slots.
  private var zeros = 0

  init(limit: Int) {
    self.limit = max(16, limit)
    var size = 64
    while size < self.limit * 2 { size *= 2 }
    slots = Array(repeating: (0, 0), count: size)
  }

  @inline(__always)
  private static func hash(_ key: UInt64) -> UInt64 {
    let mixed = (key ^ (key >> 32)) &* 0x9e37_79b9_7f4a_7c15
    return (mixed ^ (mixed >> 29)) &* 0xbf58_476d_1ce4_e5b9
  }

  @inline(__always)
  mutating func add(_ key: UInt64) {
    let hash = Self.hash(key)
    guard hash < mask || level == 0 else { return }
    insert(key, hash, 1)
    if used > limit { prune() }
  }

  @inline(__always)
  private mutating func insert(_ key: UInt64, _ hash: UInt64, _ count: Int) {
    guard key != 0 else {
      zeros += count
      return
    }
    // Slots are chosen by the low bits: the high bits are alike in a sample.
    var slot = Int(truncatingIfNeeded: hash & UInt64(slots.count - 1))
    while slots[slot].key != key {
      if slots[slot].key == 0 {
        slots[slot] = (key, count)
        used += 1
        return
      }
      slot = (slot + 1) & (slots.count - 1)
    }
    slots[slot].count += count
  }

  @inline(never)
  private mutating func prune() {
    let old = slots
    while used > limit / 2 && level < 60 {
      level += 1
      mask = UInt64.max >> level
      slots = Array(repeating: (0, 0), count: old.count)
      used = 0
      for (key, count) in old where key != 0 && Self.hash(key) < mask { insert(key, Self.hash(key), count) }
    }
  }

  var report: TraceReport.Tokens {
    var kept = slots.filter { $0.key != 0 }
    if zeros > 0 { kept.append((0, zeros)) }
    let factor = 1 << Int(level)
    kept.sort { ($1.count, $0.key) < ($0.count, $1.key) }
    var report = TraceReport.Tokens()
    report.distinct = kept.count * factor
    report.isEstimate = level > 0
    report.repeated = kept.count { $0.count > 1 } * factor
    report.most = kept.prefix(10).filter { $0.count > 1 }.map { .init(Self.hex($0.key), $0.count) }
    return report
  }

  static func hex(_ prefix: UInt64) -> String {
    let digits = String(prefix, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
