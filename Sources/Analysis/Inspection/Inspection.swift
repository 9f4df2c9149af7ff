import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import PushModel
import Records

/// A sink that counts records into an `InspectionReport`: connections, fates, error responses and findings.
///
/// `Inspection` receives the same records as `JSONLinesWriter`; nothing is decoded a second time.
public struct Inspection: RecordSink {
  /// Limits on what is kept individually; beyond a limit, records are only counted.
  public struct Limits: Sendable {
    /// Connections, and error responses, that the report lists: this many of each.
    public var listed = 10_000
    /// The latest notifications, of all connections together, among which resends are recognised.
    public var history = 1 << 16
    /// Lost notifications, repeated notifications, rejected tokens and tokens of the feedback service that are kept:
    /// this many of each.
    public var remembered = 1 << 16
    /// How payloads are judged; `nil`: payloads are not judged.
    public var judging: PayloadJudging? = PayloadJudging()
    /// Nanoseconds within which providers resend discarded notifications, unless the recording shows longer times: a
    /// notification that was discarded within this time before the recording's end, or after its beginning, is open and
    /// not lost.
    public var resendWithin = UnseenSendings.usualResendWithin
    /// Whether other connections of the recording are not read, so that no notification is proven lost.
    public var isPart = false
    public init() {}
  }

  private let limits: Limits
  private var report = InspectionReport()
  private var tallies = Tallies(blank: ConnectionTally(number: 0, opened: .none))
  private(set) var shared: SharedTally
  private var requests: RequestTally
  private var perSegment = Counts(highest: 4_096)
  private var opens = PerSecond()
  private var lifetimes = Samples()
  private var unread = UnreadConnections()
  private var messages = MessageTallies()
  /// Files that are being read.
  private var begun: [CaptureRecord] = []
  /// The number of packets whose time is before an earlier packet's, and the longest such difference in nanoseconds.
  private var latePackets = 0
  private var longestDelay: Int64 = 0
  /// The number of rejections by the token's first bytes.
  private var rejectedTokens: [[UInt8]: Int] = [:]
  /// The loss number of each listed error response (`TrackedNotifications.beginLoss`); -1: none.
  private var losses: [Int] = []
  /// Notifications that were refused, by connection and index, until their response's record comes.
  private var refused: [[Int]: NotificationBeginning] = [:]
  private var health: ProviderHealth
  /// The records that come are selected.
  private var isSelected = true
  /// Error responses by connection, until it ends: their records come with its end.
  private var early: [Int: EarlyResponses] = [:]
  private var earlyCount = 0

  private struct EarlyResponses {
    var records: [ErrorResponseRecord] = []
    /// Responses whose final records have come.
    var settled = 0
  }

  /// Makes an inspection of one recording.
  public init(limits: Limits = Limits()) {
    self.limits = limits
    shared = SharedTally(limits)
    requests = RequestTally(limit: limits.remembered)
    health = ProviderHealth(limit: limits.listed)
  }

  /// Whether records are still wanted.
  public var isOpen = true

  // MARK: records

  public var takesWholeRecording: Bool { true }
  public mutating func mark(isSelected: Bool) { self.isSelected = isSelected }

  public mutating func select(connection: Int) {
    guard let tally = tallies.index(of: connection), !tallies[tally].isShown else { return }
    tallies[tally].isShown = true
    noteShown(at: tallies[tally].opened)
  }

  private mutating func noteShown(at time: Timestamp) { if time.isKnown { opens.add(1, at: time) } }

  public mutating func receive(_ record: CaptureRecord) {
    shared.unseen.note(record)
    if !record.selection.isEmpty { report.selection = record.selection }
    if record.isOfSelection { messages.lacksRecords = true }
    begun.append(record)
    // Some more than can be open at a time.
    if begun.count > 1_024 { begun.removeFirst() }
  }

  public mutating func receive(_ outcome: CaptureOutcome) {
    begun.removeAll { $0.file == outcome.file && $0.source == outcome.source }
    shared.unseen.note(outcome)
    requests.health.note(outcome.lastTime)
    report.files.append(InspectionReport.File(outcome))
    latePackets += outcome.latePackets
    longestDelay = max(longestDelay, outcome.longestDelay)
  }

  public mutating func opened(connection: Int, at time: Timestamp) {
    var tally = ConnectionTally(number: connection, opened: time)
    tally.isShown = isSelected
    tallies.add(tally, number: connection)
    shared.unseen.note(time)
    if isSelected { noteShown(at: time) }
  }

  public mutating func presented(subject: String, connection: Int) {
    shared.note(subject: subject, of: connection)
  }

  @inline(__always)
  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    guard let tally = tallies.index(of: place.connection) else { return }
    tallies[tally].note(fields, frame, place, index: index, isSelected: isSelected, &shared)
  }

  @inline(__always)
  public mutating func prepare(for connection: Int) { tallies.prefetch(connection) }

  public func makeLane() -> sending any RecordLane { DigestLane() }

  @inline(__always)
  public mutating func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan) {
    batch.frames.forEach(range, in: block) { fields, frame, place, index, problem, digest in
      if let problem { return receive(malformed: problem, fields, frame, at: place, index: index) }
      guard let tally = tallies.index(of: place.connection) else { return }
      tallies[tally].note(fields, frame, place, index: index, digest: digest, isSelected: true, &shared)
    }
  }

  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    if let tally = tallies.index(of: place.connection) {
      tallies[tally].note(malformed: fields, frame, place, index: index, isSelected: isSelected, &shared)
    }
    guard isSelected else { return }
    report.malformed += 1
    shared.findings.note(.malformedItems, packet: place.packet)
  }

  public mutating func segment(notifications: Int, at time: Timestamp) {
    if notifications > 0 && time.isKnown { perSegment.add(notifications) }
  }

  public mutating func receiveEarly(_ record: ErrorResponseRecord) {
    if isSelected, earlyCount < limits.listed {
      earlyCount += 1
      early[record.place.connection, default: EarlyResponses()].records.append(record)
    }
    guard let index = tallies.index(of: record.place.connection) else { return }
    let tally = tallies[index]
    let packet = record.place.packet
    if record.response.command != ErrorResponse.documentedCommand { note(.foreignCommand, packet) }
    guard let named = record.notification else {
      return note(record.isAmbiguous ? .ambiguousZero : .unresolvedResponse, packet)
    }
    if record.candidates > 1 { note(.ambiguousIdentifier, packet) }
    if record.response.status == .noError { return note(.acknowledgement, packet) }
    if tally.isTerminated { note(.severalResponses, packet) }
    if !tally.isTerminated { tallies[index].loss = shared.tracked.beginLoss() }
    noteFates(after: named, tallies[index], record)
    if record.response.status == .invalidToken { tallies[index].invalidTokens += 1 }
    tallies[index].isTerminated = true
    tallies[index].named = max(tally.named, named)
  }

  /// Notes a finding about a record, if that is selected.
  private mutating func note(_ kind: FindingKind, _ packet: Int) {
    if isSelected { shared.findings.note(kind, packet: packet) }
  }

  /// Notifications written after the named one are discarded, as far as is known so far.
  private mutating func noteFates(after named: Int, _ tally: ConnectionTally, _ record: ErrorResponseRecord) {
    shared.trackAll()
    let packet = record.place.packet
    var rejected: (sent: SentNotification, place: Int)?
    var oldest = tally.written
    // A further response proves that the notifications before the one it names were accepted after all.
    let first = tally.isTerminated ? min(named, tally.named + 1) : named
    let isRefusal = record.response.status != .shutdown
    shared.history.forEach(from: first, latest: tally.latest) { sent, place in
      oldest = sent.index
      if sent.index > named {
        if !tally.isTerminated || sent.index <= tally.named {
          shared.tracked.add(sent, packet: packet, loss: tally.loss, fate: .discarded)
        }
      } else if sent.index == named {
        rejected = (sent, place)
        shared.tracked.add(sent, packet: packet, loss: -1, fate: isRefusal ? .rejected : .accepted)
      } else if tally.isTerminated && sent.index > tally.named {
        shared.tracked.add(sent, packet: packet, loss: -1, fate: .accepted)
      }
    }
    if !tally.isTerminated { shared.tracked.addForgotten(oldest - named - 1) }
    guard isRefusal, let rejected else { return }
    let beginning = shared.history.beginning(at: rejected.place)
    if refused.count < limits.listed { refused[[record.place.connection, named]] = beginning }
    guard rejected.sent.isRecognisable else { return }
    noteRejected(beginning.token, packet)
    if record.response.status == .invalidToken { note(.tokenNotOfGateway, packet) }
  }

  public mutating func receive(_ record: FateRecord) {
    shared.trackAll()
    takeRequests(record)
    shared.fates.add(record)
    shared.tracked.decide(record)
  }

  // MARK: HTTP/2

  public mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    guard let tally = tallies.index(of: record.place.connection) else { return }
    let (sent, verdict) = tallies[tally].note(record, isSelected: isSelected, &shared)
    requests.note(record, sent, verdict, isSelected: isSelected, &shared.findings)
  }

  public mutating func receive(_ record: ProviderRecord) {
    shared.unseen.note(record.place.time)
    guard case .response(let response) = record else {
      return requests.note(record, isSelected: isSelected, &shared.findings)
    }
    let pending = requests.note(response, isSelected: isSelected, &shared.findings)
    guard let pending, let status = response.status, !(200...299).contains(status) else { return }
    shared.trackAll()
    shared.tracked.add(pending.sent, packet: response.place.packet, loss: -1, fate: .rejected)
  }

  public mutating func receive(_ record: MessageRecord) {
    shared.unseen.note(record.place.time)
    messages.note(record, isSelected: isSelected)
    guard isSelected, let tally = tallies.index(of: record.place.connection) else { return }
    tallies[tally].lastPacket = max(tallies[tally].lastPacket, record.place.packet)
  }

  /// Follows the requests among notifications whose fates are final.
  private mutating func takeRequests(_ record: FateRecord) {
    let pending = requests.take(record)
    guard record.fate == .discarded, !pending.isEmpty else { return }
    let loss = requests.loss(of: record.connection) { shared.tracked.beginLoss() }
    for request in pending {
      if request.sent.isSelected { requests.note(discarded: 1, record.cause) }
      shared.tracked.add(request.sent, packet: request.packet, loss: loss, fate: .discarded)
    }
  }

  public mutating func receive(_ record: ErrorResponseRecord) {
    shared.unseen.note(record)
    let index = tallies.index(of: record.place.connection)
    let beginning = record.notification.flatMap { refused.removeValue(forKey: [record.place.connection, $0]) }
    // Losses of a connection belong to the last response that names a notification: it proved earlier ones accepted.
    let endsLoss = record.notification != nil && record.response.status != .noError
    if let index {
      tallies[index].isAnswered = true
      if endsLoss, let row = tallies[index].lossRow {
        losses[row] = -1
        tallies[index].lossRow = nil
      }
    }
    guard isSelected else { return }
    if let index, tallies[index].firstError == nil { tallies[index].firstError = record }
    report.errorsByStatus[Int(record.response.status.rawValue), default: 0] += 1
    report.errorCount += 1
    early[record.place.connection]?.settled += 1
    if report.errors.count < limits.listed {
      report.errors.append(InspectionReport.ErrorRow(record, beginning))
      losses.append(-1)
      if let index, endsLoss {
        losses[losses.count - 1] = tallies[index].loss
        tallies[index].lossRow = losses.count - 1
      }
    }
  }

  public mutating func receive(_ record: borrowing FeedbackRecord) {
    shared.listings.note(record.tuple.token, at: record.place.time)
    shared.unseen.note(record.place.time)
    guard isSelected else { return }
    report.feedbackTuples += 1
    if record.tuple.timestamp == 0 { shared.findings.note(.feedbackWithoutTime, packet: record.place.packet) }
  }

  public mutating func receive(_ record: GapRecord) {
    shared.unseen.note(record)
    requests.noteGap(record.direction, on: record.place.connection)
    messages.noteLoss(record.direction, on: record.place.connection)
    if record.direction == .server, let tally = tallies.index(of: record.place.connection) {
      tallies[tally].lacksAnswers = true
    }
    guard isSelected else { return }
    report.gapsByReason[record.reason, default: 0] += 1
    let kind: FindingKind =
      switch record.reason {
      case .lost: .lostBytes
      case .truncated: .truncatedBytes
      case .undecrypted: .undecryptedBytes
      case .beforeCapture, .captureEnd: .cutRecord
      case .givenUp: .givenUpBytes
      }
    shared.findings.note(kind, packet: record.place.packet)
  }

  public mutating func receive(_ record: CaptureLossRecord) { shared.unseen.note(record) }

  public mutating func receive(_ record: MalformedRecord) {
    messages.noteLoss(record.direction, on: record.place.connection)
    guard isSelected else { return }
    report.malformed += 1
    shared.findings.note(.malformed, packet: record.place.packet)
  }

  public mutating func receive(_ record: ConnectionRecord) {
    shared.noteEnd(of: record.connection)
    shared.unseen.note(record)
    shared.topics.note(record.tls?.topic, of: record.connection)
    earlyCount -= early.removeValue(forKey: record.connection)?.records.count ?? 0
    requests.end(record, isSelected: isSelected, &shared.findings)
    let messages = messages.end(record)
    guard let tally = tallies.remove(record.connection) else { return }
    // Devices come when they like; the openings that count are those of providers.
    if messages != nil, tally.isShown { opens.remove(at: tally.opened) }
    shared.fates.end(record.connection, total: shared.history.total, window: limits.history)
    health.note(record, tally, isSelected: isSelected, &shared.findings)
    guard isSelected else { return }
    let packet = tally.lastPacket
    unread.note(record)
    let record = record.counted
    report.add(record, tally, messages, listed: limits.listed)
    if let messages { messages.report(to: &shared.findings, packet: packet) }
    if let lifetime = record.closed.nanoseconds(since: record.opened) { lifetimes.add(Double(lifetime) / 1e9) }
    if record.service == .feedback { report.feedbackConnections += 1 }
    if record.fates.unknown > 0 && record.end != .captureEnd {
      shared.findings.note(Self.unknownFate(record, tally), count: record.fates.unknown, packet: packet)
    }
    if !record.alsoSeenAs.isEmpty { shared.findings.note(.seenTwice, packet: packet) }
    if record.conflictingBytes > 0 { shared.findings.note(.conflict, count: record.conflictingBytes, packet: packet) }
    if !record.limits.isEmpty { shared.findings.note(.limitHit, packet: packet) }
  }

  /// The reason why the fates of an ended connection's notifications are unknown.
  private static func unknownFate(_ record: ConnectionRecord, _ tally: ConnectionTally) -> FindingKind {
    if tally.lacksAnswers || record.notCaptured.isServerOpen { return .unknownFateEndNotCaptured }
    if record.http2 != nil { return .unanswered }
    return tally.isAnswered ? .unknownFateAfterResponse : .unknownFate
  }

  public mutating func receive(_ record: SummaryRecord) { report.summary = InspectionReport.Summary(record) }

  // MARK: findings

  private mutating func noteRejected(_ token: [UInt8], _ packet: Int) {
    if let count = rejectedTokens[token] {
      rejectedTokens[token] = count + 1
      note(.tokenFailedAgain, packet)
    } else if rejectedTokens.count < limits.remembered {
      rejectedTokens[token] = 1
    }
  }

  // MARK: the report

  /// The report of all records so far, while reading continues. Open connections are counted and not listed.
  ///
  /// - Parameter summary: the totals so far, as `Dissection.onProgress` passes them.
  public func report(after summary: SummaryRecord) -> InspectionReport {
    var copy = self
    copy.receive(summary)
    for record in begun { copy.report.files.append(InspectionReport.File(record)) }
    let open = messages.open
    tallies.forEachOpen { tally in
      guard tally.isShown else { return }
      if let counts = open[tally.number] { copy.report.add(counts) }
      copy.report.connectionsNotListed += 1
      for command in 0..<3 { copy.report.notificationsByCommand[command] += tally.commands[command] }
    }
    // Fates and the error responses that decided them are shown as of the same moment.
    let responses = early.sorted { $0.key < $1.key }.flatMap { $0.value.records.dropFirst($0.value.settled) }
    for record in responses {
      let beginning = record.notification.flatMap { refused[[record.place.connection, $0]] }
      copy.report.add(early: record, beginning, listed: limits.listed)
    }
    if report.selection == nil {
      // Responses that name no notification count, too.
      copy.report.errorCount = summary.errorResponses
      copy.report.errorsByStatus = [:]
      for (rejection, count) in summary.errorsByRejection {
        copy.report.errorsByStatus[Int(rejection.status.rawValue)] = count
      }
      copy.report.fates.accepted = summary.settled.accepted
      copy.report.fates.rejected = summary.settled.rejected
      copy.report.fates.discarded = summary.settled.discarded
    } else {
      copy.report.summary.errorResponses = copy.report.errorCount
    }
    copy.shared.trackAll()
    let tracked = copy.tracked
    // What a response discarded on an open connection is tracked already. Whether untracked notifications are
    // selected is unknown.
    let notTracked = report.selection == nil ? copy.shared.tracked.lossesNotTracked : 0
    copy.report.fates.discarded = max(copy.report.fates.discarded, tracked.discarded + notTracked)
    let fates = copy.report.fates
    copy.report.fates.unknown = max(0, summary.notifications - fates.accepted - fates.rejected - fates.discarded)
    return copy.finish(tracked)
  }

  private var tracked: TrackedStories { TrackedStories(shared.tracked, shared.unseen, shared.topics) }

  /// The report of all records. To be called once, when reading has ended.
  ///
  /// - Parameters:
  ///   - withCounts: whether the report has the counts with which reports are merged.
  ///   - shard: the part of the recording that was read.
  public mutating func finish(withCounts: Bool = false, shard: Shard? = nil) -> InspectionReport {
    shared.trackAll()
    if let shard, shard.count > 1 { shared.unseen.isPart = true }
    return finish(tracked, withCounts: withCounts, shard: shard)
  }

  private mutating func finish(
    _ tracked: TrackedStories, withCounts: Bool = false, shard: Shard? = nil
  ) -> InspectionReport {
    tracked.report(into: &shared.findings)
    let notTracked = shared.tracked.lossesNotTracked
    if notTracked > 0 { shared.findings.note(.lostNotTracked, count: notTracked, packet: 0) }
    for (index, loss) in losses.enumerated() where loss >= 0 {
      let known = tracked.losses[loss]
      report.errors[index].outcomes = known?.outcomes
      // `nil` if no notification of the loss could be tracked.
      report.errors[index].sentAgain = known?.sentAgain ?? (report.errors[index].discarded == 0 ? 0 : nil)
    }
    report.http2 = requests.report
    if report.summary.notifications > 0 { report.stories = stories(tracked) }
    if withCounts { report.counts = counts(shard, tracked) }
    if withCounts, let shard, shard.count > 1 {
      let alone = alone()
      report.counts?.alone = alone
    }
    report.opensPerMinute = opens.perMinute()
    shared.findings.noteSending(
      notifications: report.summary.notifications, segments: perSegment.total, opensPerMinute: report.opensPerMinute,
      isSelection: report.selection != nil)
    health.report(sent: shared.sentPerSecond(), into: &shared.findings)
    requests.health.report(into: &shared.findings)
    report.payloads = shared.verdicts?.counted.report
    report.payloadLengths = shared.payloadLengths.distribution
    report.notificationsPerSegment = perSegment.distribution
    report.notificationsPerSecond = shared.perSecond.distribution()
    report.lifetimesS = lifetimes.distribution
    report.repeatedlyRejectedTokens = InspectionReport.TokenRow.worst(tokenRows)
    report.findings = report.findings(
      unread, shared.findings, latePackets: latePackets, longestDelay: longestDelay)
    return report
  }

  /// The outcomes if the other parts of the recording hold no connections.
  private func alone() -> InspectionReport.Alone {
    var unseen = shared.unseen
    unseen.isPart = false
    let tracked = TrackedStories(shared.tracked, unseen, shared.topics)
    var alone = InspectionReport.Alone()
    if report.summary.notifications > 0 { alone.stories = stories(tracked) }
    alone.outcomes = losses.map { $0 < 0 ? [:] : tracked.losses[$0]?.outcomes ?? [:] }
    alone.recoveriesS = tracked.recoveries.sorted()
    return alone
  }

  private func stories(_ tracked: TrackedStories) -> InspectionReport.Stories {
    var stories = tracked.stories(report.fates, ofRequests: requests.report?.fates, gaps: tracked.gaps)
    if !shared.history.coversAll {
      stories.window = shared.history.window
      stories.windowS = shared.history.spanNanoseconds.map { Double($0) / 1e9 }
    }
    stories.notTracked = shared.tracked.lossesNotTracked + shared.tracked.repeatsNotTracked
    return stories
  }

  /// The rejected tokens as rows.
  private var tokenRows: [InspectionReport.TokenRow] {
    rejectedTokens.map { InspectionReport.TokenRow($0.key, rejections: $0.value) }
      .sorted { ($0.token ?? "") < ($1.token ?? "") }
  }

  private mutating func counts(_ shard: Shard?, _ tracked: TrackedStories) -> InspectionReport.Counts {
    var counts = InspectionReport.Counts()
    counts.shard = shard.map { "\($0.number)/\($0.count)" }
    counts.payloadLengths = shared.payloadLengths.values
    counts.notificationsPerSegment = perSegment.values
    counts.sentPerSecond = shared.perSecond.values()
    counts.opensPerSecond = opens.values()
    counts.lifetimesS = lifetimes.sorted
    counts.rejectedTokens = tokenRows
    counts.recoveriesS = tracked.recoveries.sorted()
    health.write(to: &counts)
    counts.unread = unread.counts
    counts.readFeedbackConnections = report.summary.readFeedbackConnections
    counts.latePackets = latePackets
    counts.longestDelayNs = longestDelay
    return counts
  }
}
