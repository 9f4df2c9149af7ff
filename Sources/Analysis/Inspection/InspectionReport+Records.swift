import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import Records
import TLSDecryption

/// How records become rows of an inspection's report.
extension InspectionReport {
  mutating func add(
    _ record: ConnectionRecord, _ tally: ConnectionTally, _ messages: MessageCounts?, listed: Int
  ) {
    if let messages { add(messages) }
    missingBytes += record.missingBytes
    ends[record.end, default: 0] += 1
    for command in 0..<3 { notificationsByCommand[command] += tally.commands[command] }
    fates.accepted += record.fates.accepted
    fates.rejected += record.fates.rejected
    fates.discarded += record.fates.discarded
    fates.unknown += record.fates.unknown
    if let summary = record.tls {
      tls.connections += 1
      if summary.isResumed == true { tls.resumed += 1 }
      if summary.isDecrypted {
        tls.decrypted += 1
        tls.tlsBytes += summary.wireBytes
        tls.payloadBytes += summary.plaintextBytes
      }
    }
    guard connections.count < listed else {
      connectionsNotListed += 1
      return
    }
    connections.append(ConnectionRow(record, tally, messages))
  }

  /// Adds an error response of an open connection: the number of notifications it discards is not final.
  ///
  /// - Parameter refused: the notification that it refused, if it is remembered.
  mutating func add(early record: ErrorResponseRecord, _ refused: NotificationBeginning?, listed: Int) {
    errorCount += 1
    errorsByStatus[Int(record.response.status.rawValue), default: 0] += 1
    if record.notification != nil && !record.response.status.acceptsNamed { fates.rejected += 1 }
    guard errors.count < listed else { return }
    var row = ErrorRow(record, refused)
    row.discarded = nil
    errors.append(row)
  }
}

extension InspectionReport.ConnectionRow {
  fileprivate init(_ record: ConnectionRecord, _ tally: ConnectionTally, _ messages: MessageCounts?) {
    self.init()
    connection = record.connection
    file = record.file
    service = record.service.rawValue
    self.protocol = record.otherProtocol?.rawValue
    preamble = record.preamble?.rawValue
    client = record.client?.description
    server = record.server?.description
    opened = record.opened.text
    durationS = record.closed.nanoseconds(since: record.opened).map { Double($0) / 1e9 }
    end = record.end
    encrypted = record.tls?.isDecrypted == false
    notifications = record.notifications
    commands = [tally.commands[0], tally.commands[1], tally.commands[2]]
    feedbackTuples = record.feedbackTuples
    accepted = record.fates.accepted
    rejected = record.fates.rejected
    discarded = record.fates.discarded
    unknown = record.fates.unknown
    firstErrorStatus = tally.firstError.map { Int($0.response.status.rawValue) }
    firstErrorName = tally.firstError?.response.status.description
    discardedAfterFirstError = tally.firstError?.discarded
    missingBytes = record.missingBytes
    tls = record.tls.map(InspectionReport.TLSRow.init)
    http2 = record.http2.map(InspectionReport.RequestRow.init)
    switch messages {
    case .devices(let counts)?: devices = counts
    case .localPush(let counts)?: localPush = counts
    case nil: break
    }
    if !record.alsoSeenAs.isEmpty {
      alsoSeenAs = record.alsoSeenAs.map {
        InspectionReport.Ends(client: $0.client.description, server: $0.server.description)
      }
    }
  }
}

extension InspectionReport.RequestRow {
  init(_ summary: HTTP2Summary) {
    self.init()
    responses = summary.responses
    rejections = Dictionary(summary.rejections.map { ($0.name, $0.count) }, uniquingKeysWith: +)
    providerTokens = summary.providerTokens
    openStreamsMax = summary.openStreamsMaximum
    (streamLimitFirst, streamLimitLast) = (summary.firstStreamLimit, summary.lastStreamLimit)
    (goaways, resets) = (summary.goAways, summary.resets)
  }
}

extension InspectionReport.TLSRow {
  init(_ tls: TLSSummary) {
    self.init()
    version = tls.version?.description
    cipherSuite = tls.suite?.name
    keyExchange = tls.keyExchange
    resumed = tls.isResumed
    decrypted = tls.isDecrypted
    problem = tls.problem
    clientSubject = tls.clientSubject
    certificateEnds = tls.certificateEnds.map { Timestamp(unixSeconds: $0) }?.text
    environment = tls.environment
    alert = tls.alert
    tlsBytes = tls.wireBytes
    payloadBytes = tls.plaintextBytes
    tlsBytesPerPayloadByte = tls.plaintextBytes > 0 ? Double(tls.wireBytes) / Double(tls.plaintextBytes) : nil
  }
}

extension InspectionReport.File {
  /// A file that is being read.
  init(_ record: CaptureRecord) {
    self.init()
    file = record.file
    source = record.source
    format = record.format.rawValue
    linkTypes = record.linkTypes.map(\.description)
  }

  init(_ outcome: CaptureOutcome) {
    self.init()
    file = outcome.file
    source = outcome.source
    format = outcome.format.rawValue
    linkTypes = outcome.linkTypes.map(\.description)
    bytes = outcome.size
    packets = outcome.packets
    cutPackets = outcome.cutPackets
    firstTime = outcome.firstTime.text
    lastTime = outcome.lastTime.text
    durationS = outcome.lastTime.nanoseconds(since: outcome.firstTime).map { Double($0) / 1e9 }
    warnings = outcome.warnings
  }
}

extension InspectionReport.ErrorRow {
  /// - Parameter refused: the notification that it refused, if that is remembered.
  init(_ record: ErrorResponseRecord, _ refused: NotificationBeginning?) {
    self.init()
    token = refused?.tokenText
    payload = refused?.payloadText
    connection = record.place.connection
    time = record.place.time.text
    file = record.place.file
    packet = record.place.packetInFile
    status = Int(record.response.status.rawValue)
    statusName = record.response.status.description
    identifier = Int(record.response.identifier)
    notification = record.notification
    accepted = record.accepted
    discarded = record.discarded
    latencyMs = record.latencyNanoseconds.map { Double($0) / 1e6 }
  }
}

extension InspectionReport.TokenRow {
  /// - Parameter token: its first 32 bytes.
  init(_ token: [UInt8], rejections: Int) {
    var text = ByteWriter(capacity: 2 * token.count)
    text.write(hex: token.rawBytes)
    let whole = String(decoding: Array(copying: text.bytes), as: UTF8.self)
    let prefix = String(whole.prefix(16))
    self.init(
      tokenPrefix: prefix + String(repeating: "0", count: 16 - prefix.count), token: whole, rejections: rejections)
  }

  /// Tokens that were rejected twice or more, by descending rejections; the first ones if there are many.
  static func worst(_ rows: [Self]) -> [Self] {
    rows.filter { $0.rejections > 1 }
      .sorted { ($1.rejections, $0.token ?? $0.tokenPrefix) < ($0.rejections, $1.token ?? $1.tokenPrefix) }
      .prefix(20).map { $0 }
  }
}

extension InspectionReport.Summary {
  init(_ record: SummaryRecord) {
    self.init()
    packets = record.packets
    connections = record.connections
    notifications = record.notifications
    errorResponses = record.errorResponses
    feedbackTuples = record.feedbackTuples
    gaps = record.gaps
    malformed = record.malformed
    undecryptedConnections = record.undecryptedConnections
    droppedPackets = record.droppedPackets > 0 ? record.droppedPackets : nil
    unreadPackets = record.unreadPackets > 0 ? record.unreadPackets : nil
    unread = record.unread.isEmpty ? nil : record.unread
    responses = record.responses > 0 ? record.responses : nil
    messages = record.messages > 0 ? record.messages : nil
    readFeedbackConnections = record.readFeedbackConnections
    readProviderConnections = record.readProviderConnections
  }
}

extension Timestamp {
  fileprivate var text: String? { isKnown ? TimestampFormatter.text(self) : nil }
}
