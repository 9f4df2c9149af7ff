import Glibc
import Measurement

/// The random numbers of one device: each a pure function of seed, device, purpose and number.
struct DeviceDraws: Sendable {
  enum Purpose: UInt64 {
    case online = 1
    case offline, absence, storm, restore, restoreTime, lowPower, acknowledge, reset, backoff, network
  }

  private let key: UInt64

  init(seed: UInt64, device: UInt64) {
    key = SplitMix64.mixed(SplitMix64.mixed(seed ^ 0x666c_6565_7400_0001) &+ device &* SplitMix64.step)
  }

  /// From 0 to below 1.
  func unit(_ purpose: Purpose, _ number: UInt64 = 0) -> Double {
    let mixed = SplitMix64.mixed(key ^ SplitMix64.mixed(purpose.rawValue << 48 ^ number &* SplitMix64.step))
    return Double(SplitMix64.mixed(mixed) >> 11) * 0x1p-53
  }

  /// True for this share of all.
  func isHit(_ share: Double, _ purpose: Purpose, _ number: UInt64 = 0) -> Bool { unit(purpose, number) < share }

  /// The length of a stay in nanoseconds, at least one millisecond: a device that came and went in no time would never
  /// let the time pass.
  func length(_ length: PresencePlan.Length, _ purpose: Purpose, _ number: UInt64) -> Int64 {
    let unit = unit(purpose, number)
    let nanoseconds =
      switch length {
      case .mean(let mean): -log(1 - unit) * Double(mean.nanoseconds)
      case .range(let range):
        Double(range.lowerBound.nanoseconds)
          + unit * Double(range.upperBound.nanoseconds - range.lowerBound.nanoseconds)
      }
    return max(1_000_000, Int64(min(nanoseconds, Double(Int64.max / 4))))
  }
}
