import APNSProtocol
import Bytes
import Measurement
import PacketCapture

/// Counts records into one screen's worth of facts. It sees the same records that `RecordWriter` writes; nothing is
/// decoded a second time.
public struct Inspection: RecordSink {
  /// Limits on what is kept; the rest is only counted.
  public struct Limits: Sendable {
    /// Connections and error responses that are listed one by one.
    public var listed = 10_000
    /// Latest notifications of all connections to remember in order to recognise resends.
    public var history = 1 << 16
    /// Lost notifications, and rejected tokens, that are remembered.
    public var remembered = 1 << 16
    public init() {}
  }

  private let limits: Limits
  private var report = InspectionReport()
  private var tallies = Tallies(blank: ConnectionTally(number: 0, opened: .none))
  private(set) var shared: SharedTally
  private var perSegment = Counts(highest: 4_096)
  private var opens = PerSecond()
  private var lifetimes = Samples()
  private var unread = UnreadConnections()
  private var rejectedTokens: [UInt64: Int] = [:]
  /// Of each listed error response, what its notifications were lost as.
  private var losses: [Int] = []

  public init(limits: Limits = Limits()) {
    self.limits = limits
    shared = SharedTally(limits)
  }

  public var isOpen: Bool { true }

  // MARK: records

  public mutating func receive(_ record: CaptureRecord) {
    if !record.selection.isEmpty { report.selection = record.selection }
  }

  public mutating func receive(_ outcome: CaptureOutcome) { report.files.append(InspectionReport.File(outcome)) }

  public mutating func opened(connection: Int, at time: Timestamp) {
    tallies.add(ConnectionTally(number: connection, opened: time), number: connection)
    if time.isKnown { opens.add(1, at: time) }
  }

  @inline(__always)
  public mutating func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    guard let tally = tallies.index(of: place.connection) else { return }
    tallies[tally].note(layout, frame, place, index: index, &shared)
  }

  public mutating func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    if let tally = tallies.index(of: place.connection) {
      tallies[tally].note(malformed: layout, frame, place, index: index, &shared)
    }
    report.malformed += 1
    shared.findings.note(.malformedItems, packet: place.packet)
  }

  public mutating func segment(notifications: Int, at time: Timestamp) {
    if notifications > 0 && time.isKnown { perSegment.add(notifications) }
  }

  public mutating func receiveEarly(_ record: ErrorResponseRecord) {
    guard let index = tallies.index(of: record.place.connection) else { return }
    let tally = tallies[index]
    if record.response.command != ErrorResponse.documentedCommand {
      shared.findings.note(.foreignCommand, packet: record.place.packet)
    }
    guard let named = record.notification else {
      shared.findings.note(record.isAmbiguous ? .ambiguousZero : .unresolvedResponse, packet: record.place.packet)
      return
    }
    if record.candidates > 1 { shared.findings.note(.ambiguousIdentifier, packet: record.place.packet) }
    if record.response.status == .noError { return shared.findings.note(.acknowledgement, packet: record.place.packet) }
    if tally.isTerminated { shared.findings.note(.severalResponses, packet: record.place.packet) }
    if !tally.isTerminated { tallies[index].loss = shared.lost.beginLoss() }
    noteFates(after: named, tallies[index], record)
    tallies[index].isTerminated = true
    tallies[index].named = max(tally.named, named)
  }

  /// Notifications written after the named one are lost until seen again.
  private mutating func noteFates(after named: Int, _ tally: ConnectionTally, _ record: ErrorResponseRecord) {
    let packet = record.place.packet
    var rejected: SentNotification?
    var oldest = tally.written
    // A further response proves that those before the one it names were taken after all.
    let first = tally.isTerminated ? min(named, tally.named + 1) : named
    shared.history.forEach(from: first, latest: tally.latest) { index, sent in
      oldest = index
      if index > named {
        if !tally.isTerminated || index <= tally.named { shared.lost.add(sent, packet: packet, loss: tally.loss) }
      } else if tally.isTerminated && index > tally.named {
        shared.lost.remove(sent)
      }
      if index == named { rejected = sent }
    }
    // Notifications that were not selected are missing among the remembered ones.
    if !tally.isTerminated, report.selection == nil { shared.lost.addForgotten(oldest - named - 1) }
    if record.response.status != .shutdown, let rejected, !rejected.isKnownBad {
      noteRejected(rejected, packet: packet)
    }
  }

  public mutating func receive(_ record: ErrorResponseRecord) {
    let index = tallies.index(of: record.place.connection)
    if let index, tallies[index].firstError == nil { tallies[index].firstError = record }
    report.errorsByStatus[Int(record.response.status.rawValue), default: 0] += 1
    report.errorCount += 1
    if report.errors.count < limits.listed {
      report.errors.append(InspectionReport.ErrorRow(record))
      losses.append(-1)
      // Losses of a connection belong to the last response that names a notification: it proved earlier ones accepted.
      if let index, record.notification != nil, record.response.status != .noError {
        if let row = tallies[index].lossRow { losses[row] = -1 }
        losses[losses.count - 1] = tallies[index].loss
        tallies[index].lossRow = losses.count - 1
      }
    }
  }

  public mutating func receive(_ record: borrowing FeedbackRecord) {
    report.feedbackTuples += 1
    if record.tuple.timestamp == 0 { shared.findings.note(.feedbackWithoutTime, packet: record.place.packet) }
  }

  public mutating func receive(_ record: GapRecord) {
    report.gapsByReason[record.reason, default: 0] += 1
    let kind: FindingKind =
      switch record.reason {
      case .lost: .lostBytes
      case .truncated: .truncatedBytes
      case .undecrypted: .undecryptedBytes
      case .beforeCapture, .captureEnd: .cutRecord
      }
    shared.findings.note(kind, packet: record.place.packet)
  }

  public mutating func receive(_ record: MalformedRecord) {
    report.malformed += 1
    shared.findings.note(.malformed, packet: record.place.packet)
  }

  public mutating func receive(_ record: ConnectionRecord) {
    guard let tally = tallies.remove(record.connection) else { return }
    report.add(record, tally, listed: limits.listed)
    if let lifetime = record.closed.nanoseconds(since: record.opened) { lifetimes.add(Double(lifetime) / 1e9) }
    if record.service == .feedback { report.feedbackConnections += 1 }
    let packet = tally.lastPacket
    unread.note(record)
    if record.fates.unknown > 0 && record.end != .captureEnd {
      let kind: FindingKind = record.errorResponses > 0 ? .unknownFateAfterResponse : .unknownFate
      shared.findings.note(kind, count: record.fates.unknown, packet: packet)
    }
    if record.conflictingBytes > 0 { shared.findings.note(.conflict, count: record.conflictingBytes, packet: packet) }
    if !record.limits.isEmpty { shared.findings.note(.limitHit, packet: packet) }
  }

  public mutating func receive(_ record: SummaryRecord) { report.summary = InspectionReport.Summary(record) }

  // MARK: findings

  private mutating func noteRejected(_ sent: SentNotification, packet: Int) {
    if let count = rejectedTokens[sent.tokenPrefix] {
      rejectedTokens[sent.tokenPrefix] = count + 1
      shared.findings.note(.tokenFailedAgain, packet: packet)
    } else if rejectedTokens.count < limits.remembered {
      rejectedTokens[sent.tokenPrefix] = 1
    }
  }

  // MARK: the report

  /// Everything seen so far, counted up. Call it once, when reading has ended.
  public mutating func finish() -> InspectionReport {
    shared.lost.report(into: &shared.findings)
    for (index, loss) in losses.enumerated() where loss >= 0 {
      report.errors[index].sentAgain = shared.lost.resent(ofLoss: loss)
    }
    let sent = report.summary.notifications
    // A segment may have had notifications that are not selected.
    if report.selection == nil, perSegment.total >= 100, Double(sent) / Double(max(1, perSegment.total)) < 1.1 {
      shared.findings.note(.unbatched, count: perSegment.total, packet: 0)
    }
    report.opensPerMinute = opens.perMinute()
    if let highest = report.opensPerMinute.map(\.max), highest > 60 {
      shared.findings.note(.reconnectStorm, count: Int(highest), packet: 0)
    }
    report.payloadLengths = shared.payloadLengths.distribution
    report.notificationsPerSegment = perSegment.distribution
    report.notificationsPerSecond = shared.perSecond.distribution()
    report.lifetimesS = lifetimes.distribution
    report.repeatedlyRejectedTokens = rejectedTokens.filter { $0.value > 1 }
      .sorted { ($0.value, $1.key) > ($1.value, $0.key) }.prefix(20)
      .map { InspectionReport.TokenRow(prefix: $0.key, count: $0.value) }
    // Unread connections first: the other findings do not cover them.
    report.findings = unread.findings(report.summary, isSelection: report.selection != nil) + shared.findings.rows
    if report.selection != nil {
      for index in report.findings.indices where report.findings[index].kind == .neverResent {
        report.findings[index].text += ", among the selected records"
      }
    }
    return report
  }
}
