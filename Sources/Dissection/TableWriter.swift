import APNSProtocol
import Bytes
import PacketCapture

/// Writes records as an aligned table for people: one line for each record, with its main fields.
///
/// Bytes from the wire are shown without control characters, which could control a terminal.
public final class TableWriter: RecordSink {
  private static let flushThreshold = 1 << 16
  private static let previewLength = 72

  private var text = ByteWriter(capacity: flushThreshold + 1 << 14)
  private let output: RecordOutput
  /// The output took everything so far.
  public private(set) var isOpen = true

  public init(output: @escaping RecordOutput) { self.output = output }

  public func flush() {
    if isOpen && text.count > 0 { isOpen = output(text.bytes) }
    text.removeAll()
  }

  public func pause() { flush() }

  public func receive(_ record: CaptureRecord) {
    let types = record.linkTypes.isEmpty ? "" : ", " + record.linkTypes.map(\.description).joined(separator: " ")
    text.write(text: "\(Self.printable(record.source)) (\(record.format.rawValue)\(types))\n")
    text.write(text: Self.columns("time (UTC)", "conn", "packet", "record", "details"))
  }

  public func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    line(NotificationRecord(layout, frame, at: place, index: index))
  }

  public func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    line(NotificationRecord(layout, frame, at: place, index: index, problem: problem))
  }

  private func line(_ record: borrowing NotificationRecord) {
    let layout = record.notification.layout
    var parts = ["#\(record.index)", "command \(layout.command.rawValue)"]
    if let identifier = layout.identifier { parts.append("id \(identifier)") }
    if let expiration = layout.expiration { parts.append("expires \(expiration)") }
    if let priority = layout.priority { parts.append("priority \(priority)") }
    parts.append("token \(Self.short(record.notification.token))")
    parts.append("\(layout.payload.length) B \(Self.preview(record.notification.payload))")
    if let problem = record.problem { parts.append("malformed: \(problem)") }
    line(record.place, "notification", parts.joined(separator: "  "))
  }

  public func receive(_ record: ErrorResponseRecord) {
    var details =
      "status \(record.response.status.rawValue) (\(record.response.status))  id \(record.response.identifier)"
    if let named = record.notification {
      details += "  names #\(named)"
      if let accepted = record.accepted { details += "  \(accepted) accepted" }
      if let discarded = record.discarded { details += "  \(discarded) discarded" }
      if let latency = record.latencyNanoseconds { details += "  after \(Self.decimal(Double(latency) / 1e6, 1)) ms" }
    } else if record.isAmbiguous {
      details += "  may or may not name a notification"
    } else {
      details += "  names an unknown identifier"
    }
    line(record.place, "error", details)
  }

  public func receive(_ record: borrowing FeedbackRecord) {
    let time = TimestampFormatter.text(Timestamp(nanoseconds: Int64(record.tuple.timestamp) * 1_000_000_000)).prefix(19)
    line(record.place, "feedback", "#\(record.index)  \(time)  token \(Self.short(record.tuple.token))")
  }

  public func receive(_ record: GapRecord) {
    line(
      record.place, "gap",
      "\(record.direction.rawValue)  \(record.place.length) B at \(record.place.offset)  \(record.reason.rawValue)")
  }

  public func receive(_ record: MalformedRecord) {
    line(
      record.place, "malformed",
      "\(record.direction.rawValue)  \(record.place.length) B at \(record.place.offset)  \(record.problem)  \(Self.short(record.bytes.rawBytes))"
    )
  }

  public func receive(_ record: ConnectionRecord) {
    let ends = record.client.flatMap { client in record.server.map { "\(client) -> \($0)  " } } ?? ""
    let spoken = record.otherProtocol.map { " (\($0.name))" } ?? ""
    var details = "\(record.service.rawValue)\(spoken)  \(ends)\(record.end.rawValue)"
    if let tls = record.tls {
      details += "  " + (tls.version?.description ?? "TLS")
      if let problem = tls.problem { details += tls.isDecrypted ? ": \(problem)" : ", not decrypted: \(problem)" }
    }
    if record.service == .gateway && record.tls?.isDecrypted != false {
      details +=
        "  \(record.notifications) notifications: \(record.fates.accepted) accepted, \(record.fates.rejected) rejected, "
        + "\(record.fates.discarded) discarded, \(record.fates.unknown) unknown"
    } else if record.service == .feedback && record.tls?.isDecrypted != false {
      details += "  \(record.feedbackTuples) tuples"
    }
    if record.missingBytes > 0 { details += "  \(record.missingBytes) B missing" }
    let place = RecordPlace(connection: record.connection, time: record.closed, packet: 0, offset: 0, length: 0)
    line(place, "connection", details)
  }

  public func receive(_ record: SummaryRecord) {
    text.write(
      text: "\(record.packets) packets, \(record.connections) connections, \(record.notifications) notifications, "
        + "\(record.errorResponses) error responses, \(record.feedbackTuples) feedback tuples, \(record.gaps) gaps, "
        + "\(record.malformed) malformed, \(record.undecryptedConnections) not decrypted\n")
  }

  // MARK: lines

  private func line(_ place: RecordPlace, _ record: String, _ details: String) {
    let time = place.time.isKnown ? String(TimestampFormatter.text(place.time).dropLast(4)) : "-"
    text.write(
      text: Self.columns(
        time, "\(place.connection)", place.packet > 0 ? "\(place.packet)" : "-", record, details))
    if text.count >= Self.flushThreshold { flush() }
  }

  private static func columns(
    _ time: String, _ connection: String, _ packet: String, _ record: String, _ details: String
  ) -> String {
    func left(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    func right(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    return "\(left(time, 26))  \(right(connection, 5))  \(right(packet, 8))  \(left(record, 12))  \(details)\n"
  }

  private static func short(_ bytes: RawSpan) -> String {
    var digits = ByteWriter(capacity: 64)
    digits.write(hex: bytes.extracting(0..<min(8, bytes.byteCount)))
    let text = String(decoding: Array(copying: digits.bytes), as: UTF8.self)
    return bytes.byteCount == 0 ? "(empty)" : bytes.byteCount > 8 ? "\(text)… (\(bytes.byteCount) B)" : text
  }

  private static func preview(_ payload: RawSpan) -> String {
    guard payload.byteCount > 0 else { return "" }
    let text = String(
      decoding: Array(copying: payload.extracting(0..<min(payload.byteCount, 4 * previewLength))), as: UTF8.self)
    let shown = printable(text)
    return shown.count > previewLength ? shown.prefix(previewLength) + "…" : shown
  }

  /// Without what could steer a terminal: control characters of both sets and direction marks become a dot.
  private static func printable(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          switch scalar.properties.generalCategory {
          case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: "."
          default: scalar
          }
        }))
  }

  static func decimal(_ value: Double, _ places: Int) -> String {
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = Int((value * scale).rounded())
    let digits = String(scaled.magnitude)
    let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
    let text = places == 0 ? padded : "\(padded.dropLast(places)).\(padded.suffix(places))"
    return scaled < 0 ? "-" + text : text
  }
}
