import BinaryProtocol
import Bytes
import PacketCapture
import Payload

/// The payload of a notification over HTTP/2 that is read back, and what it is judged by.
package struct RecordedPayload {
  package var payload: [UInt8]
  /// The time of sending in seconds since 1970 UTC; `nil` without times.
  package var sentAt: Int64?
  /// Topic, frame and longest payload; no year.
  package var environment: PayloadEnvironment

  /// Reads the line of a record; `nil` if its payload is not whole, or something that it is judged by is uncertain, as
  /// where such a payload has no verdict when it is decoded.
  ///
  /// - Parameter topic: of a notification without a topic.
  /// - Throws: if the line is no record of such a notification.
  package init?(_ line: RawSpan, topic: PayloadTopic) throws(RecordError) {
    var found = Found(topic: topic)
    var reader = RecordReader()
    try reader.read(line, into: &found)
    guard let payload = found.payload else { return nil }
    self = payload
  }

  private init(payload: [UInt8], sentAt: Int64?, environment: PayloadEnvironment) {
    (self.payload, self.sentAt, self.environment) = (payload, sentAt, environment)
  }

  /// Takes the notification from the reader.
  private struct Found: ConnectionSink {
    let topic: PayloadTopic
    var payload: RecordedPayload?

    var isOpen: Bool { true }
    mutating func receive(_ record: borrowing ProviderNotificationRecord) {
      guard PayloadVerdicts.isCertain(record.request) else { return }
      let environment = PayloadVerdicts.environment(of: record, year: nil, topic: topic)
      let time = record.place.time
      payload = RecordedPayload(
        payload: Array(copying: record.bytes(of: record.request.payload)),
        sentAt: time.isKnown && time.nanoseconds >= 0 ? time.nanoseconds / 1_000_000_000 : nil, environment: environment
      )
    }
    mutating func receive(_ record: CaptureRecord) {}
    mutating func receive(_ record: ErrorResponseRecord) {}
    mutating func receive(_ record: borrowing FeedbackRecord) {}
    mutating func receive(_ record: GapRecord) {}
    mutating func receive(_ record: MalformedRecord) {}
    mutating func receive(_ record: ConnectionRecord) {}
    mutating func receive(_ record: SummaryRecord) {}
  }
}
