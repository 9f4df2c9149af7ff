import PushModel
import Testing

@Suite("Tokens that are made up")
struct DeviceTokenTests {
  @Test("A token that begins as those of no device is invalid, and no other")
  func invalid() {
    let prefix = written { $0.write(bigEndian: DeviceToken.invalidPrefix) }
    #expect(prefix == [0x0b, 0xad, 0x0b, 0xad, 0x0b, 0xad, 0x0b, 0xad])
    for (token, isInvalid) in [
      (prefix, true), (prefix + [1], true), (prefix + [UInt8](repeating: 7, count: 24), true),
      (Array(prefix.dropLast()), false), ([], false), ([1] + prefix, false), ([UInt8](repeating: 7, count: 32), false),
      (Array(prefix.dropLast()) + [0xae], false),
    ] {
      let said = DeviceToken.isInvalid(token.rawBytes)
      #expect(said == isInvalid, "\(token)")
    }
  }
}
