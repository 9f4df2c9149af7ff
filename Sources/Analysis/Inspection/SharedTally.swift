import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import Payload
import PushModel
import Records

/// The counts of an inspection over all connections.
struct SharedTally {
  var findings = Findings()
  var payloadLengths = Counts(highest: 65_535)
  var perSecond = PerSecond()
  var history: SentHistory
  /// Notifications with a story, of the history and before.
  var tracked: TrackedNotifications
  var fates: RecentFates
  var listings: FeedbackListings
  /// `nil`: payloads are not judged.
  var verdicts: PayloadVerdicts?
  /// Notifications that are not selected.
  private var othersPerSecond = PerSecond()
  /// Judges unselected notifications, because findings about selected ones depend on them.
  private var others: PayloadVerdicts?
  var unseen: UnseenSendings
  var topics: ProviderTopics
  private var background: BackgroundPushes

  init(_ limits: Inspection.Limits) {
    history = SentHistory(maximum: limits.history)
    tracked = TrackedNotifications(limit: limits.remembered)
    fates = RecentFates(limit: max(1_024, 4 * limits.history))
    listings = FeedbackListings(limit: limits.remembered)
    verdicts = limits.judging.map { PayloadVerdicts($0, keepsExamples: true) }
    others = limits.judging.map { PayloadVerdicts($0) }
    background = BackgroundPushes(limit: limits.remembered)
    unseen = UnseenSendings(resendWithin: limits.resendWithin, isPart: limits.isPart)
    topics = ProviderTopics(limit: limits.remembered)
  }

  mutating func note(subject: String, of connection: Int) {
    verdicts?.note(subject: subject, of: connection)
    others?.note(subject: subject, of: connection)
  }

  mutating func noteEnd(of connection: Int) {
    verdicts?.noteEnd(of: connection)
    others?.noteEnd(of: connection)
  }

  @inline(__always)
  mutating func note(
    _ fields: PushFields, _ token: RawSpan, _ payload: RawSpan, _ place: RecordPlace
  ) {
    payloadLengths.add(payload.byteCount)
    note(time: place.time)
    let isUsual =
      token.byteCount == DeviceToken.usualLength && payload.byteCount <= 2_048 && !fields.binary.hasUnknownItems
      && !Self.isStrange(fields.expiration)
    if !isUsual { noteForm(fields, token, payload, packet: place.packet) }
    if listings.has(token, before: place.time) { findings.note(.sentAfterFeedback, packet: place.packet) }
  }

  /// Counts and judges a notification of the provider API.
  mutating func note(
    _ record: borrowing ProviderNotificationRecord, isSelected: Bool
  ) -> PayloadVerdict? {
    if !record.isRecognisable { unseen.noteUncertain(hasEnded: record.request.completion == .complete) }
    // With a provider token, an absent topic is none; with a certificate it may be the certificate's.
    if record.request.topic.isPresent || record.trust != .token {
      unseen.noteTopic(isShown: record.request.topic.isPresent)
    }
    guard isSelected else {
      if record.place.time.isKnown { othersPerSecond.add(1, at: record.place.time) }
      return others?.verdict(record)
    }
    if !record.request.uncertain.contains(.payload) { payloadLengths.add(record.request.payloadLength) }
    note(time: record.place.time)
    return verdicts?.verdict(record)
  }

  /// Tracks the next of the latest notifications, if it has a story.
  @inline(__always)
  mutating func trackNext() {
    let (sent, earlier, packet, loss) = history.next()
    if loss >= 0 || earlier != nil || sent.isLate || tracked.mayHave(sent.digest) {
      track(sent, after: earlier, loss: loss, packet: packet)
    }
  }

  /// Tracks all waiting notifications, before results are read.
  mutating func trackAll() { while history.waiting > 0 { trackNext() } }

  /// Tracks a sending: that may have been discarded, that repeats another, or whose notification is tracked.
  ///
  /// - Parameter loss: the error response that discards it; -1: none.
  @inline(never)
  private mutating func track(_ sent: SentNotification, after earlier: SentNotification?, loss: Int, packet: Int) {
    guard sent.isRecognisable else { return }
    if loss >= 0, tracked.isFull, !tracked.mayHave(sent.digest) { return tracked.addForgotten(1) }
    let before = earlier.map { ($0, fates.fate(of: $0.index, on: $0.connection)) }
    if loss < 0 {
      if earlier == nil, sent.isLate, !tracked.has(sent.digest) { return tracked.addLate(sent) }
      return tracked.addRepeat(sent, packet: packet, after: before)
    }
    tracked.add(sent, packet: packet, loss: loss, fate: .discarded, after: before)
  }

  /// All notifications by second since 1970, unselected ones included.
  mutating func sentPerSecond() -> InspectionReport.Values {
    var all = perSecond
    all.add(othersPerSecond.values())
    return all.values()
  }

  @inline(__always)
  mutating func note(time: Timestamp) { if time.isKnown { perSecond.add(1, at: time) } }

  /// Judges the payload and counts what is found.
  @inline(__always)
  mutating func judge(
    _ fields: PushFields, _ frame: RawSpan, _ sent: SentNotification, _ place: RecordPlace
  ) {
    guard let verdict = verdicts?.verdict(fields, frame, place) else { return }
    if verdict.needsBudget { noteBackground(verdict.kind, fields, frame, sent, place) }
  }

  /// Judges an unselected notification: it is not counted, but uses up its token's budget.
  @inline(never)
  mutating func judgeOther(
    _ fields: PushFields, _ frame: RawSpan, _ sent: SentNotification, _ place: RecordPlace
  ) {
    if place.time.isKnown { othersPerSecond.add(1, at: place.time) }
    guard let verdict = others?.verdict(fields, frame, place), verdict.needsBudget else { return }
    noteBackground(verdict.kind, fields, frame, sent, place)
  }

  @inline(never)
  private mutating func noteBackground(
    _ kind: PayloadKind, _ fields: PushFields, _ frame: RawSpan, _ sent: SentNotification,
    _ place: RecordPlace
  ) {
    // A resend after a loss is not another push.
    trackAll()
    if tracked.isWaiting(sent.digest) { return }
    guard fields.token.length > 0,
      background.note(frame.extracting(fields.token.range), at: place.time, kind: kind)
    else { return }
    if sent.isSelected { verdicts?.noteTooOften(frame, fields, place) }
  }

  /// Before 2001, or the end of time.
  private static func isStrange(_ expiration: UInt32?) -> Bool {
    guard let expiration else { return false }
    return expiration != 0 && expiration < 1_000_000_000 || expiration == .max
  }

  @inline(never)
  private mutating func noteForm(
    _ fields: PushFields, _ token: RawSpan, _ payload: RawSpan, packet: Int
  ) {
    if token.byteCount != 32 { findings.note(token.byteCount == 0 ? .knownBad : .unusualTokenLength, packet: packet) }
    if payload.byteCount > 2_048 {
      findings.note(payload.byteCount > 4_096 ? .payloadOver4096 : .payloadOver2048, packet: packet)
    }
    if Self.isStrange(fields.expiration) { findings.note(.strangeExpiration, packet: packet) }
    if fields.binary.hasUnknownItems { findings.note(.unknownItems, packet: packet) }
  }
}
