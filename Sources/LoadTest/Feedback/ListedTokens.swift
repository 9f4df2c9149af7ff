import Measurement

/// The tokens of a workload that the feedback service has listed, by their numbers in the workload.
///
/// An open hash table of numbers, compared exactly: a token that was not listed is never taken for one that was. The
/// table is a value: event loops look tokens up in a copy that nobody changes, without a lock or an allocation. A token
/// takes 16 to 32 bytes in each copy, and `limit` tokens are remembered.
struct ListedTokens: Sendable {
  /// What became of one listing.
  enum Outcome: Equatable {
    /// The token was listed after its last registration.
    case listed
    /// The token was registered at the time of the listing, or after it.
    case registeredSince
    /// There is no room for another token.
    case notRemembered
  }

  /// Maximum number of remembered tokens.
  let limit: Int
  /// The number of remembered tokens.
  private(set) var count = 0
  /// The part of `count` that was listed after its last registration.
  private(set) var listedCount = 0
  /// 0: free. Otherwise the token's number and 1, and in the lowest bit whether the token counts as listed.
  private var slots: [UInt64] = []

  init(limit: Int) { self.limit = max(0, limit) }

  /// Whether the token was listed after its last registration.
  @inline(__always)
  func contains(_ number: UInt64) -> Bool {
    guard !slots.isEmpty else { return false }
    let wanted = Self.entry(number, isListed: true)
    var slot = place(of: number)
    while slots[slot] != 0 {
      if slots[slot] == wanted { return true }
      slot = (slot + 1) & (slots.count - 1)
    }
    return false
  }

  /// Notes that a token was listed, at a time after its last registration or not.
  mutating func note(_ number: UInt64, isAfterRegistration: Bool) -> Outcome {
    guard number < 1 << 62 else { return .notRemembered }
    if slots.isEmpty, limit > 0 { slots = [UInt64](repeating: 0, count: 64) }
    guard !slots.isEmpty else { return .notRemembered }
    var slot = place(of: number)
    while slots[slot] != 0, slots[slot] >> 1 != number + 1 { slot = (slot + 1) & (slots.count - 1) }
    if slots[slot] == 0 {
      guard count < limit else { return .notRemembered }
      slots[slot] = Self.entry(number, isListed: false)
      count += 1
    }
    // The latest time counts, and a list may have several of a token.
    if isAfterRegistration, slots[slot] & 1 == 0 {
      slots[slot] |= 1
      listedCount += 1
    }
    if 2 * count > slots.count { grow() }
    return isAfterRegistration ? .listed : .registeredSince
  }

  private static func entry(_ number: UInt64, isListed: Bool) -> UInt64 { (number + 1) << 1 | (isListed ? 1 : 0) }

  @inline(__always)
  private func place(of number: UInt64) -> Int {
    Int(truncatingIfNeeded: SplitMix64.mixed(number &+ SplitMix64.step)) & (slots.count - 1)
  }

  private mutating func grow() {
    let old = slots
    slots = [UInt64](repeating: 0, count: 2 * old.count)
    for entry in old where entry != 0 {
      var slot = place(of: (entry >> 1) - 1)
      while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = entry
    }
  }
}
