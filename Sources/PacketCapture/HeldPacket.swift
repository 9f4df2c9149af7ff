/// A packet with a copy of its bytes, while it waits for its turn.
struct HeldPacket: Sendable {
  var packet: Packet
  var bytes: [UInt8]
}
