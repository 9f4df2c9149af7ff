import APNSProtocol
import Bytes
import PacketCapture

/// Writes records as JSON Lines, each type into a file of its own.
public final class JSONFilesWriter: RecordSink {
  private let notifications: JSONLinesWriter
  private let others: [RecordType: JSONLinesWriter]

  /// - Parameter file: makes the output for one type.
  public init(fates: FateNotation = .omitted, files file: (RecordType) throws -> RecordOutput) rethrows {
    notifications = JSONLinesWriter(fates: fates, output: try file(.notification))
    var others: [RecordType: JSONLinesWriter] = [:]
    for type in RecordType.allCases where type != .notification {
      others[type] = JSONLinesWriter(fates: fates, output: try file(type))
    }
    self.others = others
  }

  /// Every output took everything so far.
  public var isOpen: Bool { notifications.isOpen && others.values.allSatisfy(\.isOpen) }

  public func pause() {
    notifications.flush()
    for writer in others.values { writer.flush() }
  }

  public func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    notifications.receive(layout, frame, at: place, index: index)
  }
  public func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    notifications.receive(malformed: problem, layout, frame, at: place, index: index)
  }
  public func receive(_ record: CaptureRecord) { others[.capture]?.receive(record) }
  public func receive(_ record: ErrorResponseRecord) { others[.errorResponse]?.receive(record) }
  public func receive(_ record: FateRecord) { others[.fate]?.receive(record) }
  public func receive(_ record: borrowing FeedbackRecord) { others[.feedback]?.receive(record) }
  public func receive(_ record: GapRecord) { others[.gap]?.receive(record) }
  public func receive(_ record: MalformedRecord) { others[.malformed]?.receive(record) }
  public func receive(_ record: ConnectionRecord) { others[.connection]?.receive(record) }
  public func receive(_ record: SummaryRecord) { others[.summary]?.receive(record) }
}
