import PacketCapture

/// The packet in which certain bytes arrived, its time, and its sequence and acknowledgement numbers.
public struct CapturePosition: Sendable {
  /// The packet's time.
  public var time: Timestamp
  /// The packet's number, as in `RecordPlace.packet`.
  public var packet: Int
  /// The sequence number of the first of the packet's bytes; of the ciphertext's with TLS.
  @usableFromInline package var sequence: UInt32 = 0
  /// The packet's acknowledgement number: its sender had received all earlier bytes of the other direction. 0 without
  /// TCP.
  @usableFromInline package var acknowledgement: UInt32 = 0
  /// Some of the acknowledged bytes have not been seen in the capture yet.
  @usableFromInline package var isAhead = false

  @inlinable
  package init(time: Timestamp, packet: Int) { (self.time, self.packet) = (time, packet) }
}
