import Bytes
import Measurement
import PacketCapture
import ProviderAPI
import PushModel
import Records

/// The counts of an inspection over HTTP/2, for all connections.
struct RequestTally {
  /// A status and a reason.
  private struct AnswerKind: Hashable {
    var status: Int?
    var reason: String?
  }

  private struct GoAwayKind: Hashable {
    var error: String
    var reason: String?
  }

  /// Reasons that are counted apart; clients cannot choose them, but a recording may be of anything.
  private static let maximumKinds = 256
  /// The fewest notifications of a connection whose tokens are said to be sent in full.
  private static let fewestLiteralTokens = 20
  /// Counted instead of further ones.
  private static let otherKind = "other"

  private let limit: Int
  private var open = OpenConnections()
  private var pendingCount = 0
  private var counts = InspectionReport.Requests()
  private var answers: [AnswerKind: Int] = [:]
  private var goAways: [GoAwayKind: Int] = [:]
  private var latency = LatencyHistogram(.milliseconds)
  private var openStreams = LatencyHistogram(.count)
  private var perConnection = LatencyHistogram(.count)
  private var headerBytes = LatencyHistogram(.bytes)
  var health: RequestHealth
  private var fields = RequestFieldRules()

  /// - Parameter limit: notifications without an answer, tokens and providers that are remembered: this many of each.
  init(limit: Int) {
    self.limit = limit
    health = RequestHealth(limit: limit)
  }

  // MARK: records

  /// Notes a notification.
  ///
  /// - Parameters:
  ///   - sent: its sending, by which it is followed.
  ///   - verdict: what its payload is; `nil` if it is not judged.
  mutating func note(
    _ record: borrowing ProviderNotificationRecord, _ sent: SentNotification, _ verdict: PayloadVerdict?,
    isSelected: Bool, _ findings: inout Findings
  ) {
    let connection = record.place.connection
    let packet = record.place.packet
    // Absent where a gap may hide what they depend on.
    let (openStreams, streamLimit): (Int?, Int?) = (record.request.openStreams, record.request.streamLimit)
    let slot = open.slot(of: connection)
    var found = open[slot].note(record, openStreams: openStreams, streamLimit: streamLimit)
    let isRecognisable = record.isRecognisable
    let addressee =
      record.targetField.isPresent && !record.request.uncertain.contains(.topic)
      ? record.addresseeDigest : nil
    found += health.note(record, isRecognisable ? sent.digest : nil, addressee)
    if pendingCount < limit {
      let pending = ConnectionRequests.Pending(
        sent: sent, packet: packet, addressee: addressee, isRecognisable: isRecognisable)
      if open[slot].pending.updateValue(pending, forKey: record.index) == nil { pendingCount += 1 }
    }
    guard isSelected else { return }
    counts.notifications += 1
    if let openStreams { self.openStreams.record(openStreams) }
    if let streamLimit {
      counts.streamLimitLowest = min(counts.streamLimitLowest ?? streamLimit, streamLimit)
      counts.streamLimitHighest = max(counts.streamLimitHighest ?? streamLimit, streamLimit)
    }
    if let bytes = Self.headerBytes(of: record) {
      headerBytes.record(bytes)
      open[slot].headerBytes += bytes
    }
    noteAge(record, &findings)
    for kind in found { findings.note(kind.kind, packet: packet) }
    for kind in fields.findings(record, verdict) { findings.note(kind, packet: packet) }
  }

  /// The bytes of a whole request that are not its payload's; `nil` if some may be missing.
  private static func headerBytes(of record: borrowing ProviderNotificationRecord) -> Int? {
    let request = record.request
    guard record.started.isKnown || request.started != nil, request.completion == .complete,
      !request.uncertain.contains(.payload), record.place.length >= request.payloadLength
    else { return nil }
    return record.place.length - request.payloadLength
  }

  private mutating func noteAge(_ record: borrowing ProviderNotificationRecord, _ findings: inout Findings) {
    guard let issued = record.providerToken?.issuedAt else { return }
    let time = record.firstTime
    guard time.isKnown else { return }
    let age = Double(time.nanoseconds) / 1e9 - Double(issued)
    counts.tokenAgeLeastS = min(counts.tokenAgeLeastS ?? age, age)
    counts.tokenAgeGreatestS = max(counts.tokenAgeGreatestS ?? age, age)
    if age > 55 * 60 { findings.note(.providerTokenOld, packet: record.place.packet) }
    if age <= -60 { findings.note(.providerTokenInFuture, packet: record.place.packet) }
  }

  /// Notes an answer, and returns the notification that it is of, if that is remembered.
  mutating func note(
    _ record: ResponseRecord, isSelected: Bool, _ findings: inout Findings
  ) -> ConnectionRequests.Pending? {
    let connection = record.place.connection
    let pending = open[open.slot(of: connection)].note(record)
    if pending != nil { pendingCount -= 1 }
    if let pending { health.note(record, pending) }
    guard isSelected else { return pending }
    counts.responses += 1
    guard record.notification != nil else { return pending }
    var kind = AnswerKind(status: record.status, reason: record.reason)
    if answers[kind] == nil, answers.count >= Self.maximumKinds { kind.reason = Self.otherKind }
    answers[kind, default: 0] += 1
    if let latencyNanoseconds = record.latencyNanoseconds { latency.record(Int(latencyNanoseconds / 1_000)) }
    if record.status == 429, record.reason == "TooManyRequests" {
      findings.note(.tooManyRequests, packet: record.place.packet)
    }
    return pending
  }

  /// Notes another record.
  mutating func note(_ record: ProviderRecord, isSelected: Bool, _ findings: inout Findings) {
    let connection = record.place.connection
    switch record {
    case .response: break
    case .goAway(let frame):
      open[open.slot(of: connection)].note(frame)
      guard isSelected, frame.direction == .server else { return }
      var kind = GoAwayKind(error: frame.error, reason: frame.reason)
      if goAways[kind] == nil, goAways.count >= Self.maximumKinds { kind.reason = Self.otherKind }
      goAways[kind, default: 0] += 1
      findings.note(.goAway, packet: frame.place.packet)
    case .reset(let frame):
      guard frame.direction == .server else { return }
      open[open.slot(of: connection)].noteServer(frame.place.time)
      guard isSelected else { return }
      let error = frame.error ?? Self.otherKind
      let isKnown = counts.resets[error] != nil || counts.resets.count < Self.maximumKinds
      counts.resets[isKnown ? error : Self.otherKind, default: 0] += 1
    case .settings(let frame):
      if frame.direction == .server { open[open.slot(of: connection)].noteServer(frame.place.time) }
    case .channelRequest:
      if isSelected { counts.channelRequests = (counts.channelRequests ?? 0) + 1 }
    }
  }

  /// Bytes of a connection are missing.
  mutating func noteGap(_ direction: Direction, on connection: Int) {
    // What it is of may become known later.
    open[open.slot(of: connection)].noteGap(direction)
    health.noteGap()
  }

  /// Takes the remembered notifications of a range of fates, in order.
  mutating func take(_ record: FateRecord) -> [ConnectionRequests.Pending] {
    guard let slot = open.knownSlot(of: record.connection), !open[slot].pending.isEmpty else { return [] }
    let pending = open[slot].pending
    let range = record.first...max(record.first, record.last)
    // A range may be much longer than what is remembered.
    let indexes =
      range.count <= pending.count
      ? range.filter { pending[$0] != nil }
      : pending.keys.filter(range.contains).sorted()
    pendingCount -= indexes.count
    return indexes.compactMap { open[slot].pending.removeValue(forKey: $0) }
  }

  /// The loss to which the discarded notifications of a connection belong.
  mutating func loss(of connection: Int, _ begin: () -> Int) -> Int {
    guard let slot = open.knownSlot(of: connection) else { return begin() }
    if open[slot].loss < 0 { open[slot].loss = begin() }
    return open[slot].loss
  }

  /// Notes discarded notifications by cause.
  mutating func note(discarded count: Int, _ cause: DiscardCause?) {
    guard let cause else { return }
    counts.discardedBy[cause.rawValue, default: 0] += count
  }

  /// The end of a connection over HTTP/2.
  mutating func end(_ record: ConnectionRecord, isSelected: Bool, _ findings: inout Findings) {
    let known = open.remove(record.connection)
    pendingCount -= known?.pending.count ?? 0
    guard let summary = record.http2, record.service != .other else { return }
    let requests = known ?? ConnectionRequests()
    health.end(record, requests, isSelected: isSelected)
    guard isSelected else { return }
    let counted = record.counted
    counts.connections += 1
    counts.providerTokens = counts.providerTokens.flatMap { sum in summary.providerTokens.map { sum + $0 } }
    counts.fates.accepted += counted.fates.accepted
    counts.fates.rejected += counted.fates.rejected
    counts.fates.discarded += counted.fates.discarded
    counts.fates.unknown += counted.fates.unknown
    if record.service == .gateway { perConnection.record(counted.notifications) }
    notePings(summary.pings)
    if summary.priorityFrames > 0 { findings.note(.prioritySent, count: summary.priorityFrames, packet: 0) }
    // With the bytes of the frames' headers, which no table makes fewer.
    if requests.notifications >= Self.fewestLiteralTokens, summary.literalTokens >= requests.notifications,
      summary.literalTokenBytes > requests.headerBytes / 2
    {
      findings.note(.providerTokenNotIndexed, count: requests.notifications, packet: 0)
    }
    if requests.leavesStreamsUnused { findings.note(.streamsUnused, packet: 0) }
    if let over = requests.overLimit, !requests.hasGap, record.missingBytes == 0, record.limits.isEmpty {
      findings.note(.streamLimitExceeded, count: over.count, packet: over.packet)
    }
    let missing = record.notCaptured
    if let tls = record.tls, tls.version == .tls12, tls.chosenProtocol == nil, tls.suite != nil, !missing.start {
      findings.note(.tls12WithoutALPN, packet: 0)
    }
  }

  private mutating func notePings(_ pings: HTTP2Summary.Pings) {
    guard pings.sent > 0 else { return }
    counts.pings = (counts.pings ?? 0) + pings.sent
    counts.pingsAnswered = (counts.pingsAnswered ?? 0) + pings.answered
    let times = [pings.leastNanoseconds, pings.greatestNanoseconds].compactMap { $0.map { Double($0) / 1e6 } }
    counts.pingMsLeast = ([counts.pingMsLeast].compactMap { $0 } + times).min()
    counts.pingMsGreatest = ([counts.pingMsGreatest].compactMap { $0 } + times).max()
  }

  // MARK: the report

  /// The counts; `nil` if nothing is of the provider API.
  var report: InspectionReport.Requests? {
    guard counts.connections + counts.notifications + counts.responses + (counts.channelRequests ?? 0) > 0 else {
      return nil
    }
    var report = counts
    report.answers = answers.map { .init(status: $0.key.status, reason: $0.key.reason, count: $0.value) }
      .sorted(by: InspectionReport.Requests.precedes)
    report.goaways = goAways.map { .init(error: $0.key.error, reason: $0.key.reason, count: $0.value) }
      .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    report.latency = latency.ifAny
    report.openStreams = openStreams.ifAny
    report.perConnection = perConnection.ifAny
    report.headerBytes = headerBytes.ifAny
    return report
  }
}

extension LatencyHistogram {
  fileprivate var ifAny: LatencyHistogram? { count > 0 ? self : nil }
}

extension FindingOfRequest {
  var kind: FindingKind {
    switch self {
    case .tokenRenewedOften: .providerTokenRenewedOften
    case .writtenAfterGoAway: .writtenAfterGoAway
    case .retryStorm: .retryStorm
    case .sentAfterUnregistered: .sentAfterUnregistered
    }
  }
}
