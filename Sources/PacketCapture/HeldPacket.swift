/// A packet with a copy of its bytes, held until it is read.
struct HeldPacket: Sendable {
  var packet: Packet
  var bytes: [UInt8]
}
