/// Finds the slot of a connection by its flow: open addressing with linear probing over the slots' own storage.
///
/// Each packet needs one lookup. Swift's `Dictionary` hashes the bytes of two endpoints with SipHash; three
/// multiplications suffice here. Both factors of each multiplication are keyed with random numbers of the process: if a
/// factor were keyed with a constant, a capture could be crafted whose addresses make that factor 0, so that all flows
/// collide.
struct FlowTable {
  private struct Entry {
    var hash: UInt64
    /// The slot number plus one; 0 for a free entry.
    var slot: UInt32
  }

  private var entries: [Entry]
  private var mask: Int
  private var count = 0
  private let seeds: (UInt64, UInt64)

  init() {
    entries = Array(repeating: Entry(hash: 0, slot: 0), count: 1_024)
    mask = 1_023
    seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
  }

  func hash(_ flow: Flow) -> UInt64 {
    func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
      let product = (a ^ seeds.0).multipliedFullWidth(by: b ^ seeds.1)
      return product.high ^ product.low
    }
    let low = mix(flow.low.address.high ^ 0x1234_5678, flow.low.address.low)
    let high = mix(flow.high.address.high ^ 0x8765_4321, flow.high.address.low)
    return mix(low ^ UInt64(flow.low.port) << 16, high ^ UInt64(flow.high.port))
  }

  /// Begins to fetch the first entry that `find` reads.
  @inline(__always)
  func prefetch(_ hash: UInt64) {
    let place = Int(truncatingIfNeeded: hash) & mask
    entries.prefetch(place..<place + 1)
  }

  /// The slot with this hash for which `isSame` returns `true`.
  @inline(__always)
  func find(_ hash: UInt64, _ isSame: (Int) -> Bool) -> Int? {
    var place = Int(truncatingIfNeeded: hash) & mask
    while true {
      let entry = entries[place]
      if entry.slot == 0 { return nil }
      if entry.hash == hash && isSame(Int(entry.slot) - 1) { return Int(entry.slot) - 1 }
      place = (place + 1) & mask
    }
  }

  mutating func insert(_ hash: UInt64, slot: Int) {
    if (count + 1) * 2 > entries.count { grow() }
    place(Entry(hash: hash, slot: UInt32(slot + 1)))
    count += 1
  }

  mutating func remove(_ hash: UInt64, slot: Int) {
    var hole = Int(truncatingIfNeeded: hash) & mask
    while entries[hole].slot != UInt32(slot + 1) {
      if entries[hole].slot == 0 { return }
      hole = (hole + 1) & mask
    }
    // Close the hole: move back every later entry of the run that may be there.
    var next = (hole + 1) & mask
    while entries[next].slot != 0 {
      let home = Int(truncatingIfNeeded: entries[next].hash) & mask
      if (next - home) & mask >= (next - hole) & mask {
        entries[hole] = entries[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    entries[hole].slot = 0
    count -= 1
  }

  private mutating func place(_ entry: Entry) {
    var place = Int(truncatingIfNeeded: entry.hash) & mask
    while entries[place].slot != 0 { place = (place + 1) & mask }
    entries[place] = entry
  }

  private mutating func grow() {
    let old = entries
    entries = Array(repeating: Entry(hash: 0, slot: 0), count: old.count * 2)
    mask = entries.count - 1
    for entry in old where entry.slot != 0 { place(entry) }
  }
}
