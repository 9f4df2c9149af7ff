import BinaryProtocol
import Bytes
import PushModel

/// Receives notifications one by one: a sink, or a thread's lane to a sink.
public protocol NotificationSink {
  /// Receives a notification, in parts: one value of all parts would be passed through memory, which costs the fastest
  /// sink a tenth of its time. `NotificationRecord` combines the parts.
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  /// Receives a frame whose length is valid and whose items do not fit the length; `fields` has the fields before the
  /// error, and `problem` what is wrong.
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)

  /// Receives the notifications of a piece of a provider's stream. The default is the only implementation.
  ///
  /// The function is a requirement, and not only an extension's method, because a witness is compiled for its own type:
  /// the dissector calls it once for a piece, and the loop over the piece's notifications is specialised for the sink,
  /// in the sink's module.
  ///
  /// - Parameters:
  ///   - position: the first byte to be read; on return the first byte that was not read.
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
