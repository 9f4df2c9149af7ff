import BinaryProtocol
import Measurement
import PacketCapture
import PushModel
import TLSDecryption
import TLSFoundation

/// Records whose fields are all there is to them.
extension RecordFields {
  func summary() throws(RecordError) -> SummaryRecord {
    var summary = SummaryRecord()
    summary.packets = try number("packets", most: RecordReader.maximumBytes) ?? 0
    summary.connections = try number("connections") ?? 0
    summary.notifications = try number("notifications", most: RecordReader.maximumBytes) ?? 0
    summary.errorResponses = try number("error_responses", most: RecordReader.maximumBytes) ?? 0
    summary.feedbackTuples = try number("feedback_tuples", most: RecordReader.maximumBytes) ?? 0
    summary.responses = try number("responses", most: RecordReader.maximumBytes) ?? 0
    summary.messages = try number("messages", most: RecordReader.maximumBytes) ?? 0
    summary.gaps = try number("gaps", most: RecordReader.maximumBytes) ?? 0
    summary.malformed = try number("malformed", most: RecordReader.maximumBytes) ?? 0
    summary.droppedPackets = try number("dropped_packets", most: RecordReader.maximumBytes) ?? 0
    summary.unreadPackets = try number("unread_packets", most: RecordReader.maximumBytes) ?? 0
    summary.unread = list("unread")
    return summary
  }

  /// Whether a `capture` record is that of a further file of the same run.
  var continuesRun: Bool {
    guard let number = try? number("file", most: RecordReader.maximumFiles) else { return false }
    return number > 1
  }

  func errorResponse() throws(RecordError) -> ErrorResponseRecord {
    let status = ErrorResponse.Status(rawValue: UInt8(try number("status", most: 255) ?? 0))
    let response = ErrorResponse(
      command: UInt8(try number("command", most: 255) ?? 8), status: status,
      identifier: UInt32(try number("identifier") ?? 0))
    let latency = milliseconds("latency_ms").flatMap { Int64(exactly: ($0 * 1e6).rounded()) }
    return ErrorResponseRecord(
      place: try place(), response: response, notification: try number("notification"),
      accepted: try number("accepted"), discarded: try number("discarded"),
      latencyNanoseconds: latency, candidates: try number("candidates") ?? 1,
      isAmbiguous: flag("ambiguous") ?? false)
  }

  func connection() throws(RecordError) -> ConnectionRecord {
    var fates = FateCounts()
    fates.accepted = try number("accepted") ?? 0
    fates.rejected = try number("rejected") ?? 0
    fates.discarded = try number("discarded") ?? 0
    fates.unknown = try number("unknown") ?? 0
    var record = ConnectionRecord(
      connection: try required("connection"), file: try number("file", most: RecordReader.maximumFiles),
      flow: text("flow"), service: text("service").flatMap(Service.init) ?? .unknown,
      otherProtocol: text("protocol").flatMap(OtherProtocol.init),
      client: text("client").flatMap { Endpoint($0) }, server: text("server").flatMap { Endpoint($0) },
      opened: try time("opened"), closed: try time("closed"),
      end: text("end").flatMap(ConnectionRecord.End.init) ?? .captureEnd, tls: try tls(),
      clientBytes: try number("client_bytes", most: RecordReader.maximumBytes) ?? 0,
      serverBytes: try number("server_bytes", most: RecordReader.maximumBytes) ?? 0,
      missingBytes: try number("missing_bytes", most: RecordReader.maximumBytes) ?? 0,
      notifications: try number("notifications") ?? 0,
      errorResponses: try number("error_responses") ?? 0,
      feedbackTuples: try number("feedback_tuples") ?? 0, fates: fates,
      conflictingBytes: try number("conflicting_bytes", most: RecordReader.maximumBytes) ?? 0,
      // Records of 0.1.0 name limits by their options, with hyphens.
      limits: list("limits").compactMap { LimitKind(rawValue: $0.replacing("-", with: "_")) })
    let missing = list("not_captured")
    record.notCaptured.start = missing.contains("start")
    // Records of 0.1.0 lack this field.
    if missing.contains("client_end") || missing.isEmpty && record.end == .captureEnd {
      let until = try time("client_until")
      record.notCaptured.client = ConnectionRecord.OpenEnd(
        since: try time("client_last"), until: until.isKnown ? until : nil)
    }
    if missing.contains("server_end") { record.notCaptured.server = ConnectionRecord.OpenEnd() }
    record.alsoSeenAs = ends("also_seen_as")
    record.http2 = try http2Summary()
    if record.otherProtocol?.messages != nil {
      record.messages = try number("messages", most: RecordReader.maximumBytes) ?? 0
    }
    record.preamble = text("preamble").flatMap(Preamble.init)
    record.isOnKnownPort = [record.client, record.server].contains { end in
      end.map { Service.ofPorts[$0.port] != nil } ?? false
    }
    return record
  }

  private func tls() throws(RecordError) -> TLSSummary? {
    guard flag("tls") == true else { return nil }
    var summary = TLSSummary()
    summary.version = text("tls.version").flatMap(TLSVersion.init)
    summary.suite = text("tls.cipher_suite").flatMap(CipherSuite.init(name:))
    summary.isDecrypted = flag("tls.decrypted") ?? true
    summary.problem = text("tls.problem")
    summary.isWhole = summary.isDecrypted && summary.problem == nil
    summary.clientSubject = text("tls.client_subject")
    summary.isResumed = flag("tls.resumed")
    summary.alert = text("tls.alert")
    summary.chosenProtocol = text("tls.alpn")
    let ends = try time("tls.certificate_ends")
    if ends.isKnown { summary.certificateEnds = Int(ends.nanoseconds / 1_000_000_000) }
    summary.environment = text("tls.environment").flatMap(ProviderEnvironment.init)
    return summary
  }
}
