import APNSProtocol
import Bytes
import PacketCapture

/// Counts records into one screen's worth of facts. It sees the same records that `RecordWriter` writes; nothing is
/// decoded a second time.
public final class Inspection: RecordSink {
  /// Limits on what is kept; what is over them is counted and no more.
  public struct Limits: Sendable {
    /// Connections and error responses that are listed one by one.
    public var listed = 10_000
    /// Notifications of one connection that are remembered to recognise them when they are sent again.
    public var window = 8_192
    /// The same for all connections together.
    public var totalWindow = 1 << 20
    /// Lost notifications, and rejected tokens, that are remembered.
    public var remembered = 1 << 20
    public init() {}
  }

  private let limits: Limits
  private var report = InspectionReport()
  private var findings = Findings()
  private var tallies = Tallies()
  private var tally = ConnectionTally(number: 0, opened: .none, window: SentWindow(maximum: 1))

  private var payloadLengths = Counts(highest: 65_535)
  private var perSegment = Counts(highest: 4_096)
  private var perSecond = PerSecond()
  private var opens = PerSecond()
  private var lifetimes = Samples()
  private var lost = LostNotifications()
  private var rejectedTokens: [UInt64: Int] = [:]
  private var windowRoom: Int

  public init(limits: Limits = Limits()) {
    self.limits = limits
    windowRoom = limits.totalWindow
  }

  // MARK: records

  public func receive(_ record: CaptureRecord) {}

  public func receive(_ outcome: CaptureOutcome) { report.files.append(InspectionReport.File(outcome)) }

  public func opened(connection: Int, at time: Timestamp) {
    tallies.add(ConnectionTally(number: connection, opened: time, window: SentWindow(maximum: limits.window)))
    if time.isKnown { opens.add(1, at: time) }
  }

  public func receive(_ record: borrowing NotificationRecord) {
    if tally.number != record.place.connection, let other = tallies[record.place.connection] { tally = other }
    let layout = record.notification.layout
    let command = Int(min(layout.command.rawValue, 2))
    tally.commands[command] += 1
    payloadLengths.add(layout.payload.length)
    if record.place.time.isKnown { perSecond.add(1, at: record.place.time) }
    checkForm(record)

    let sent = SentNotification(record.notification)
    if tally.isTerminated {
      lost.add(sent, packet: record.place.packet, limit: limits.remembered)
    } else if !lost.isEmpty {
      lost.sentAgain(sent)
    }
    tally.window.append(sent, index: record.index, packet: record.place.packet, room: &windowRoom)
  }

  public func segment(notifications: Int, at time: Timestamp) {
    if notifications > 0 && time.isKnown { perSegment.add(notifications) }
  }

  public func receiveEarly(_ record: ErrorResponseRecord) {
    guard let tally = tallies[record.place.connection] else { return }
    if record.response.command != ErrorResponse.documentedCommand {
      findings.note(.foreignCommand, packet: record.place.packet)
    }
    guard let named = record.notification else {
      findings.note(.unresolvedResponse, packet: record.place.packet)
      return
    }
    if record.candidates > 1 { findings.note(.ambiguousIdentifier, packet: record.place.packet) }
    if record.response.status == .noError { return findings.note(.acknowledgement, packet: record.place.packet) }
    if tally.isTerminated { findings.note(.severalResponses, packet: record.place.packet) }
    if record.response.status != .shutdown, let sent = tally.window[named], !sent.isKnownBad {
      noteRejected(sent, packet: record.place.packet)
    }
    // A further response proves that those before the one it names were taken after all.
    tally.window.forEach(after: tally.isTerminated ? tally.named : named, upTo: named) { sent, _ in lost.remove(sent) }
    tally.window.forEach(after: named, upTo: .max) { lost.add($0, packet: $1, limit: limits.remembered) }
    tally.isTerminated = true
    tally.named = max(tally.named, named)
  }

  public func receive(_ record: ErrorResponseRecord) {
    if let tally = tallies[record.place.connection], tally.firstError == nil {
      tally.firstError = record
    }
    report.errorsByStatus[record.response.status.rawValue, default: 0] += 1
    report.errorCount += 1
    if report.errors.count < limits.listed { report.errors.append(InspectionReport.ErrorRow(record)) }
  }

  public func receive(_ record: borrowing FeedbackRecord) {
    report.feedbackTuples += 1
    if record.tuple.timestamp == 0 { findings.note(.feedbackWithoutTime, packet: record.place.packet) }
  }

  public func receive(_ record: GapRecord) {
    report.gapsByReason[record.reason.rawValue, default: 0] += 1
    let kind: Findings.Kind =
      switch record.reason {
      case .lost: .lostBytes
      case .truncated: .truncatedBytes
      case .undecrypted: .undecryptedBytes
      case .beforeCapture, .captureEnd: .cutRecord
      }
    findings.note(kind, packet: record.place.packet)
  }

  public func receive(_ record: MalformedRecord) {
    report.malformed += 1
    findings.note(.malformed, packet: record.place.packet)
  }

  public func receive(_ record: ConnectionRecord) {
    guard let tally = tallies.remove(record.connection) else { return }
    windowRoom += tally.window.capacity
    report.add(record, tally, listed: limits.listed)
    if let lifetime = record.closed.nanoseconds(since: record.opened) { lifetimes.add(Double(lifetime) / 1e9) }
    if record.service == .feedback { report.feedbackConnections += 1 }
    let packet = tally.lastPacket
    if record.tls?.isDecrypted == false { findings.note(.undecryptedConnection, packet: 0) }
    if record.fates.unknown > 0 && record.end != .captureEnd {
      findings.note(.unknownFate, count: record.fates.unknown, packet: packet)
    }
    if record.conflictingBytes > 0 { findings.note(.conflict, count: record.conflictingBytes, packet: packet) }
    if !record.limits.isEmpty { findings.note(.limitHit, packet: packet) }
  }

  public func receive(_ record: SummaryRecord) { report.summary = InspectionReport.Summary(record) }

  // MARK: findings

  private func checkForm(_ record: borrowing NotificationRecord) {
    let layout = record.notification.layout
    let packet = record.place.packet
    if layout.token.length != 32 {
      findings.note(layout.token.length == 0 ? .knownBad : .unusualTokenLength, packet: packet)
    }
    if layout.payload.length > 2_048 {
      findings.note(layout.payload.length > 4_096 ? .payloadOver4096 : .payloadOver2048, packet: packet)
    }
    if layout.payload.length > 0 {
      let payload = record.notification.payload
      if payload.byte(at: 0) != UInt8(ascii: "{") || payload.byte(at: payload.byteCount - 1) != UInt8(ascii: "}") {
        findings.note(.notAnObject, packet: packet)
      }
    }
    if let expiration = layout.expiration, expiration != 0, expiration < 1_000_000_000 || expiration == .max {
      findings.note(.strangeExpiration, packet: packet)
    }
    if layout.hasUnknownItems { findings.note(.unknownItems, packet: packet) }
  }

  private func noteRejected(_ sent: SentNotification, packet: Int) {
    if let count = rejectedTokens[sent.tokenPrefix] {
      rejectedTokens[sent.tokenPrefix] = count + 1
      findings.note(.tokenFailedAgain, packet: packet)
    } else if rejectedTokens.count < limits.remembered {
      rejectedTokens[sent.tokenPrefix] = 1
    }
  }

  // MARK: the report

  /// Everything seen so far, counted up. Call it once, when reading has ended.
  public func finish() -> InspectionReport {
    lost.report(into: &findings)
    let sent = report.summary.notifications
    if perSegment.total >= 100, Double(sent) / Double(max(1, perSegment.total)) < 1.1 {
      findings.note(.unbatched, count: perSegment.total, packet: 0)
    }
    report.opensPerMinute = opens.perMinute()
    if let highest = report.opensPerMinute.map(\.max), highest > 60 {
      findings.note(.reconnectStorm, count: Int(highest), packet: 0)
    }
    report.payloadLengths = payloadLengths.distribution
    report.notificationsPerSegment = perSegment.distribution
    report.notificationsPerSecond = perSecond.distribution()
    report.lifetimes = lifetimes.distribution
    report.repeatedlyRejectedTokens = rejectedTokens.filter { $0.value > 1 }
      .sorted { ($0.value, $1.key) > ($1.value, $0.key) }.prefix(20)
      .map { InspectionReport.TokenRow(prefix: $0.key, count: $0.value) }
    report.findings = findings.rows
    return report
  }
}
