import Bytes

/// Tokens of devices, computed from a seed: that of a device is always the same, and no two of a generation are the same.
///
/// They never change for a seed: a run is repeated by it, and loads and simulated devices share a population.
package struct MadeTokens: Sendable, Equatable {
  /// The state of device 0.
  package let key: UInt64

  /// - Parameter generation: how often devices were restored; each time they get other tokens.
  package init(seed: UInt64, generation: UInt64 = 0) {
    let first = SplitMix64.mixed(seed ^ 0x746f_6b65_6e00_0001)
    key = generation == 0 ? first : SplitMix64.mixed(first &+ generation &* SplitMix64.step)
  }

  /// The distance of the states of two neighbours. It is odd: all tokens are different, and so are their last bytes as
  /// long as there are enough values.
  package static var stride: UInt64 { 0xd134_2543_de82_ef95 }

  /// The 32 bytes of a device's token.
  package subscript(device: UInt64) -> [UInt8] {
    var token = ByteWriter(capacity: 32)
    var state = key &+ device &* Self.stride
    for _ in 0..<4 {
      state &+= SplitMix64.step
      token.write(bigEndian: SplitMix64.mixed(state))
    }
    return Array(copying: token.bytes)
  }
}
