import PacketCapture
import Records
import TLSDecryption

extension CapturePosition {
  @inline(__always)
  init(_ position: StreamPosition) {
    self.init(time: position.time, packet: position.packet)
    isAhead = position.isAhead
    (sequence, acknowledgement) = (position.sequence, position.acknowledgement)
  }

  @inline(__always)
  init(_ point: CapturePoint) {
    self.init(time: Timestamp(nanoseconds: point.time), packet: point.packet)
    isAhead = point.isAhead
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
