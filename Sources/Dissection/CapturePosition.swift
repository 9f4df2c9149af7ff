import PacketCapture

/// The packet that brought certain bytes, and its time.
struct CapturePosition: Sendable {
  var time: Timestamp
  var packet: Int
}
