import APNSProtocol
import Dissection
import PacketCapture
import Reporting

/// From what was counted to what a page shows: times become seconds since the start, numbers of statuses words.
extension TraceSummary {
  init(_ report: TraceReport, warnings: [String]) {
    self.init()
    let inspection = report.inspection
    let start = report.start ?? 0
    func seconds(_ time: Int64?) -> Double? { time.map { (Double($0 - start) / 1e9) } }
    self.warnings = warnings
    sources = report.sources.map { Source(name: $0.name, format: $0.format) }
    if let first = report.start {
      // To milliseconds: all else counts from here.
      started = TimestampFormatter.text(Timestamp(nanoseconds: first)).prefix(23) + "Z"
      length = seconds(report.end) ?? 0
    }
    packets = inspection.summary.packets
    connectionCount = inspection.summary.connections
    notifications = inspection.summary.notifications
    frameBytes = report.frameBytes
    commands = inspection.notificationsByCommand
    for (priority, count) in report.priorities { priorities[priority.map(Int.init) ?? -1] = count }
    expirations = TraceReport.Expiration.allCases.compactMap { meaning in
      report.expirations[meaning].map { Count(meaning.words, $0) }
    }
    fates = Fates(inspection.fates)
    missingBytes = inspection.missingBytes
    malformed = inspection.malformed
    undecrypted = inspection.summary.undecryptedConnections
    hasRead = inspection.summary.hasRead
    notFollowed = inspection.findings.first { $0.kind == "lost_not_tracked" }?.count ?? 0
    gaps = inspection.gapsByReason.sorted { $0.key < $1.key }.map { Count(Self.meaning(ofGap: $0.key), $0.value) }
    findings = inspection.findings.map {
      Finding($0.text, firstPacket: $0.firstPacket, tone: Self.tone(ofFinding: $0.kind))
    }
    addSeries(report)
    connections = zip(inspection.connections, report.connections).map { row, times in
      var connection = Connection(row)
      connection.opened = seconds(times.opened)
      connection.firstRecord = seconds(times.firstRecord)
      connection.lastRecord = seconds(times.lastRecord)
      connection.closed = seconds(times.closed)
      connection.frameBytes = times.frameBytes
      connection.errorResponses = times.errorResponses
      connection.sent = times.sent.map { $0.counts(like: report.sent) }
      return connection
    }
    errorCount = inspection.errorCount
    statuses = inspection.errorsByStatus.sorted { $0.key < $1.key }.map {
      Status($0.key, APNSProtocol.ErrorResponse.Status(rawValue: UInt8(clamping: $0.key)).description, $0.value)
    }
    errors = zip(inspection.errors, report.errorTimes).map { row, time in
      ErrorResponse(row, at: seconds(time))
    }
    perSegment = report.perSegment.map { Bucket($0.value, $0.count) }
    bytesPerSegment = report.bytesPerSegment.map { Bucket($0.value, $0.count) }
    payloads = report.payloads.map { Bucket($0.value, $0.count) }
    tokens.distinct = report.tokens.distinct
    tokens.isEstimate = report.tokens.isEstimate
    tokens.repeated = report.tokens.repeated
    tokens.most = report.tokens.most.map { Count($0.prefix, $0.count) }
    tokens.rejected = inspection.repeatedlyRejectedTokens.map { Count($0.tokenPrefix, $0.rejections) }
    feedback = Feedback(report)
  }

  private mutating func addSeries(_ report: TraceReport) {
    guard let start = report.start else { return }
    sent.width = Double(Int64(1) << Int64(report.sent.exponent)) / 1e9
    sent.from = (Double(report.sent.first) * Double(Int64(1) << Int64(report.sent.exponent)) - Double(start)) / 1e9
    sent.counts = report.sent.bins.map(\.count)
    sent.bytes = report.sent.bins.map(\.bytes)
    errorCounts = report.errors.counts(like: report.sent)
    feedbackCounts = report.feedback.counts(like: report.sent)
  }

  private static func meaning(ofGap reason: String) -> String {
    switch reason {
    case "lost": "stretches of bytes that were sent and not captured"
    case "truncated": "packets that the snap length cut"
    case "before_capture": "records that began before the capture"
    case "undecrypted": "stretches of TLS that could not be decrypted"
    case "capture_end": "records that the capture does not end"
    default: reason
    }
  }

  private static func tone(ofFinding kind: String) -> Tone {
    switch kind {
    case "never_resent", "payload_over_4096": .bad
    case "resent", "known_bad": .neutral
    default: .warning
    }
  }
}

extension TraceSummary.Fates {
  fileprivate init(_ fates: InspectionReport.Fates) {
    self.init()
    (accepted, rejected, discarded, unknown) = (fates.accepted, fates.rejected, fates.discarded, fates.unknown)
  }
}

extension TraceSummary.Connection {
  fileprivate init(_ row: InspectionReport.ConnectionRow) {
    self.init()
    number = row.connection
    service = row.service
    client = row.client ?? ""
    server = row.server ?? ""
    if let tls = row.tls {
      topic = tls.clientSubject.map(InspectionText.topic) ?? ""
      self.tls = [tls.version, tls.cipherSuite].compactMap { $0 }.joined(separator: ", ")
      if self.tls.isEmpty { self.tls = "unknown version" }
      isResumed = tls.resumed
      problem = tls.problem ?? ""
      isDecrypted = tls.decrypted
    }
    end = row.end
    notifications = row.notifications
    feedbackTuples = row.feedbackTuples
    fates.accepted = row.accepted
    fates.rejected = row.rejected
    fates.discarded = row.discarded
    fates.unknown = row.unknown
    if let status = row.firstErrorStatus { firstError = "\(status) \(row.firstErrorName ?? "")" }
  }
}

extension TraceSummary.ErrorResponse {
  fileprivate init(_ row: InspectionReport.ErrorRow, at time: Double?) {
    self.init()
    connection = row.connection
    self.time = time
    packet = row.packet
    status = row.status
    name = row.statusName
    identifier = row.identifier
    notification = row.notification
    accepted = row.accepted
    discarded = row.discarded
    sentAgain = row.sentAgain
    latency = row.latencyMs.map { $0 / 1e3 }
  }
}

extension TraceSummary.Feedback {
  fileprivate init(_ report: TraceReport) {
    self.init()
    connections = report.inspection.feedbackConnections
    tuples = report.inspection.feedbackTuples
    tokens = report.listed.tokens
    isCut = report.listed.isCut
    sentToLater = report.listed.sentToLater
    sentToLaterTokens = report.listed.sentToLaterTokens
    ageMedian = report.listed.ageS?.p50
    ageMost = report.listed.ageS?.max
    func text(_ seconds: UInt32?) -> String {
      seconds.map { TimestampFormatter.text(Timestamp(nanoseconds: Int64($0) * 1_000_000_000)).prefix(19) + "Z" } ?? ""
    }
    first = text(report.listed.firstTimestamp)
    last = text(report.listed.lastTimestamp)
  }
}

extension TraceReport.Expiration {
  fileprivate var words: String {
    switch self {
    case .none: "none"
    case .zero: "0: now or never"
    case .past: "in the past"
    case .withinHour: "within an hour"
    case .withinDay: "within a day"
    case .withinFourWeeks: "within four weeks"
    case .later: "in more than four weeks"
    }
  }
}
