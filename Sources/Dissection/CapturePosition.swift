import PacketCapture
import TLSDecryption

/// The packet that brought certain bytes, its time, and where it stands in both TCP streams.
struct CapturePosition: Sendable {
  var time: Timestamp
  var packet: Int
  /// The sequence number of the first of the packet's bytes; of the ciphertext's with TLS.
  var sequence: UInt32 = 0
  /// Its sender had everything of the other direction before this sequence number. 0 where there is no TCP.
  var acknowledgement: UInt32 = 0
  /// Some of that has not come.
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
