/// A part of a recording: all packets between some pairs of hosts.
///
/// Ports are ignored, so that notifications resent on another connection are in the same part.
public struct Shard: Sendable, Hashable {
  /// The number of the part, from 1.
  public let number: Int
  /// The number of parts.
  public let count: Int

  /// Part `number` of `count`; `nil` unless 1 ≤ `number` ≤ `count`.
  public init?(number: Int, of count: Int) {
    guard count > 0, (1...count).contains(number) else { return nil }
    (self.number, self.count) = (number, count)
  }

  /// Packets without a TCP segment belong to the first part.
  var isFirst: Bool { number == 1 }

  func contains(_ segment: TCPSegment) -> Bool {
    Self.hash(segment.source.address, segment.destination.address) % UInt64(count) == UInt64(number - 1)
  }

  /// Equal for both directions, and in every process.
  private static func hash(_ a: IPAddress, _ b: IPAddress) -> UInt64 { mixed(a) &+ mixed(b) }

  private static func mixed(_ address: IPAddress) -> UInt64 { mixed(mixed(address.high) ^ address.low) }

  /// The finalizer of SplitMix64.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var value = value &+ 0x9e37_79b9_7f4a_7c15
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }
}
