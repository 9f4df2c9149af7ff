import BinaryProtocol
import Bytes
import PushModel

/// Receives notifications one by one: a sink, or a thread's lane to a sink.
public protocol NotificationSink {
  /// Receives a notification, in parts: a value that holds them all would go through memory, which costs the fastest
  /// sink a tenth of its time. `NotificationRecord` puts them together.
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  /// Receives a frame whose length is right and whose items do not fit it; `fields` has the fields before the error.
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)

  /// Receives the notifications of a piece of a provider's stream. There is nothing to implement.
  ///
  /// It is a requirement, and not only an extension's method, because a witness is compiled for its own type: whoever
  /// cuts streams calls it once for a piece, and the loop over the piece's notifications is specialised for the sink, in
  /// whatever module that is.
  ///
  /// - Parameters:
  ///   - position: the first byte to be read; on return the first byte that was not.
  ///   - offset: stream offset of the first of `bytes`.
  /// - Returns: whether all bytes are read; otherwise `FrameReader.next` has the next step.
  mutating func readFrames(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool
}

extension NotificationSink {
  @inlinable
  public mutating func readFrames(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool {
    frames.read(bytes, &position, at: offset, mark, into: &self)
  }
}
