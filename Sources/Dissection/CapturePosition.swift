import PacketCapture
import TLSDecryption

/// The packet in which certain bytes arrived, its time, and its sequence and acknowledgement numbers.
struct CapturePosition: Sendable {
  var time: Timestamp
  var packet: Int
  /// The sequence number of the first of the packet's bytes; of the ciphertext's with TLS.
  var sequence: UInt32 = 0
  /// The packet's acknowledgement number: its sender had received all earlier bytes of the other direction. 0 without
  /// TCP.
  var acknowledgement: UInt32 = 0
  /// Some of the acknowledged bytes have not been seen in the capture yet.
  var isAhead = false

  init(time: Timestamp, packet: Int) { (self.time, self.packet) = (time, packet) }

  @inline(__always)
  init(_ position: StreamPosition) {
    (time, packet, isAhead) = (position.time, position.packet, position.isAhead)
    (sequence, acknowledgement) = (position.sequence, position.acknowledgement)
  }

  @inline(__always)
  init(_ point: CapturePoint) {
    (time, packet, isAhead) = (Timestamp(nanoseconds: point.time), point.packet, point.isAhead)
    (sequence, acknowledgement) = (point.sequence, point.acknowledgement)
  }
}

extension CapturePoint {
  @inline(__always)
  init(_ position: StreamPosition) { self.init(CapturePosition(position)) }

  @inline(__always)
  init(_ position: CapturePosition) {
    self.init(time: position.time.nanoseconds, packet: position.packet)
    (sequence, acknowledgement) = (position.sequence, position.acknowledgement)
    isAhead = position.isAhead
  }
}
