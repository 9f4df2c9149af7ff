import BinaryProtocol
import Bytes
import Measurement
import PacketCapture

/// Makes stories from rows, after the recording was read.
extension StoryCollector {
  /// The sendings of stories, and rows about tokens, sorted by content and by token.
  private struct Sorted {
    var byContent: RowSorter<ContentOrder>
    var byToken: RowSorter<TokenOrder>
  }

  /// Hands the stories to the sink: call it once, when all was read. Throws when a temporary file cannot be used.
  package func write() throws(UnnamedFile.Failure) {
    if let failure { throw failure }
    var summary = StorySummary()
    summary.recording = self.summary
    let sorted = try joined()
    if options.writesStories { try writeStories(sorted.byContent, &summary) }
    if options.writesTokens { try writeTokens(sorted.byToken, &summary) }
    if output.isOpen { output.receive(summary) }
    output.flush()
  }

  // MARK: by connection

  /// Facts about a connection while its rows are read.
  private struct Standing {
    var connection: Int
    var topic = ContentKey.zero
    var topicPlace = -1
    /// The topic is that of the connection's own certificate.
    var hasCertificate = false
    var isSelected = false
    /// The latest range of fates.
    var fate = FateCode.unknown
    var lastOfFate = -1
    /// The index of the latest notification that responses name; -1: none. The status is that of its rejection.
    var named = -1
    var status: UInt16?
    var isNamed = false
    /// Of an answer to a request: its reason, and when it says that the token was gone.
    var reason: UInt16 = 0
    var gone: UInt32?
    /// The latest cause of the fates.
    var cause: UInt8 = 0
    /// When the gateway sent GOAWAY.
    var goAwayAt = Timestamp.none.nanoseconds
    /// The time of the latest response that names a notification: it discards those after it.
    var respondedAt = Timestamp.none.nanoseconds
  }

  /// Adds to each sending its fate and topic.
  private func joined() throws(UnnamedFile.Failure) -> Sorted {
    let result = Sorted(
      byContent: RowSorter(memory: options.memory / 4, folder: options.folder),
      byToken: RowSorter(memory: options.memory / 8, folder: options.folder))
    guard var rows = try byConnection?.sorted() else { return result }
    byConnection = nil
    var standing = Standing(connection: 0)
    while var row = try rows.next() {
      if row.connection != standing.connection {
        standing = Standing(connection: row.connection)
        standing.isSelected = selection.takes(topics: [])
        // A session that is resumed shows no certificate, and a connection without TLS has none.
        if !hasSeveralTopics, let onlyTopic { (standing.topic, standing.topicPlace) = onlyTopic }
      }
      switch row.kind {
      case .connection:
        if row.topicPlace >= 0 {
          (standing.topic, standing.topicPlace, standing.hasCertificate) = (row.topic, row.topicPlace, true)
        }
        standing.isSelected = row.flags.contains(.isSelected)
      case .fate: (standing.fate, standing.lastOfFate, standing.cause) = (row.fate, row.last, row.cause)
      case .response where row.flags.contains(.isRequest): add(answer: row, to: &standing)
      case .response:
        if standing.named != row.index { (standing.named, standing.status, standing.isNamed) = (row.index, nil, false) }
        if selection.takes(row.status) { standing.isNamed = true }
        let status = ErrorResponse.Status(rawValue: UInt8(truncatingIfNeeded: row.status))
        if status != .noError, status != .shutdown { standing.status = row.status }
        if status != .noError { standing.respondedAt = row.time }
      case .feedback:
        add(standing, to: &row, isSelected: standing.isSelected)
        try result.byToken.append(row)
      case .sending:
        row.fate = row.index <= standing.lastOfFate ? standing.fate : .unknown
        let isNamed = standing.named == row.index
        if isNamed, row.fate == .rejected, let status = standing.status {
          row.status = status
          row.flags.insert(.hasStatus)
        }
        if row.flags.contains(.isRequest) {
          finish(&row, standing, isNamed: isNamed)
        } else if row.fate == .discarded {
          row.discardedAt = standing.respondedAt
        }
        let isSelected = selection.takes(row.fate.fate, isNamed: isNamed && standing.isNamed)
        add(standing, to: &row, isSelected: isSelected && (standing.isSelected || row.topicPlace >= 0))
        if options.writesStories { try result.byContent.append(row) }
        if options.writesTokens, row.flags.contains(.hasToken) { try result.byToken.append(row) }
      }
    }
    return result
  }

  /// An answer to a request, the end of its stream, or a GOAWAY (no notification).
  private func add(answer row: StoryRow, to standing: inout Standing) {
    guard row.index >= 0 else {
      standing.goAwayAt = row.time
      return
    }
    if standing.named != row.index { (standing.named, standing.status, standing.isNamed) = (row.index, nil, false) }
    (standing.reason, standing.respondedAt) = (row.reason, row.time)
    standing.gone = row.flags.contains(.isGone) ? row.expiration : nil
    guard row.flags.contains(.hasStatus) else { return }
    if selection.takes(row.status) { standing.isNamed = true }
    standing.status = row.status
  }

  /// Adds to a request what its answer or its fate says.
  private func finish(_ row: inout StoryRow, _ standing: Standing, isNamed: Bool) {
    if isNamed, row.fate == .rejected {
      row.reason = standing.reason
      if let gone = standing.gone {
        row.identifier = gone
        row.flags.insert(.isGone)
      }
    }
    guard row.fate == .discarded else { return }
    row.cause = standing.cause
    row.discardedAt = row.discardCause == .goAway ? standing.goAwayAt : isNamed ? standing.respondedAt : row.time
  }

  private func add(_ standing: Standing, to row: inout StoryRow, isSelected: Bool) {
    let isOfRequest = row.flags.contains(.isRequest)
    // A request has its own topic, or none where that is uncertain.
    if !isOfRequest || row.flags.contains(.hasTopicOfConnection) && standing.hasCertificate {
      (row.topic, row.topicPlace) = (standing.topic, standing.topicPlace)
    }
    if !isSelected { row.flags.remove(.isSelected) }
  }

  // MARK: stories

  private func writeStories(
    _ sorter: RowSorter<ContentOrder>, _ summary: inout StorySummary
  ) throws(UnnamedFile.Failure) {
    let stories = RowSorter<StoryOrder>(memory: options.memory / 8, folder: options.folder)
    let sendings = RowSorter<FoldedOrder>(memory: options.memory / 4, folder: options.folder)
    var store = try sorter.sorted()
    var longestResend: Int64 = 0
    try store.makeStories(repeatAfter: options.repeatAfter) { (row, story) throws(UnnamedFile.Failure) in
      try sendings.append(FoldedSending(story: story, row: row))
    } story: { (facts) throws(UnnamedFile.Failure) in
      longestResend = max(longestResend, facts.longestResend)
      try stories.append(facts)
    }
    let view = unseen.view(longestResend: longestResend)
    try write(stories, sendings, view, &summary)
  }

  private func write(
    _ stories: RowSorter<StoryOrder>, _ sendings: RowSorter<FoldedOrder>, _ view: UnseenSendings.View,
    _ summary: inout StorySummary
  ) throws(UnnamedFile.Failure) {
    var stories = try stories.sorted()
    var sendings = try sendings.sorted()
    let durations = RowSorter<DurationOrder>(memory: options.memory / 8, folder: options.folder)
    while output.isOpen, let story = try stories.next() {
      let (outcome, reason) = story.outcome(in: view)
      let isCounted = story.isSelected && (options.outcomes.isEmpty || options.outcomes.contains(outcome))
      let isWanted = isCounted || options.writesOthers
      if isCounted {
        summary[outcome] += 1
        summary.sendings += story.sent
        if outcome == .recovered, let duration = story.recoveredAfter { try durations.append(duration) }
      }
      if isWanted {
        output.begin(try record(of: story, outcome, reason))
      }
      // Both are in the order of first sendings.
      if story.sent == 1, isWanted { output.receive(SendingRecord(story.first, .first, reasons: reasons)) }
      var relations = SendingRelations()
      for _ in 0..<(story.sent == 1 ? 0 : story.sent) {
        guard let sending = try sendings.next() else { break }
        let relation = relations.next(
          sending.row.fate, on: sending.row.connection, isRequest: sending.row.flags.contains(.isRequest))
        if isWanted { output.receive(SendingRecord(sending.row, relation, reasons: reasons)) }
      }
      if isWanted { output.endStory() }
    }
    summary.recovery = try recovery(durations)
    summary.gaps = view.gaps
  }

  private func recovery(_ sorter: RowSorter<DurationOrder>) throws(UnnamedFile.Failure) -> StorySummary.Recovery? {
    let count = sorter.count
    var durations = try sorter.sorted()
    var recovery: StorySummary.Recovery?
    // The value that a share of all does not exceed.
    let (half, most) = ((count + 1) / 2, (99 * count + 99) / 100)
    var rank = 0
    while let duration = try durations.next() {
      rank += 1
      if recovery == nil { recovery = StorySummary.Recovery(p50: duration, p99: duration, max: duration) }
      if rank <= half { recovery?.p50 = duration }
      if rank <= most { recovery?.p99 = duration }
      recovery?.max = duration
    }
    return recovery
  }

  private func record(
    of story: StoryFacts, _ outcome: StoryOutcome, _ reason: OpenReason?
  ) throws(UnnamedFile.Failure) -> StoryRecord {
    let first = story.first
    return StoryRecord(
      outcome: outcome, seen: story.seen, openReason: reason, token: try string(at: first.tokenPlace),
      payload: try string(at: first.payloadPlace),
      topic: try string(at: first.topicPlace).map { String(decoding: $0, as: UTF8.self) },
      isMalformed: first.flags.contains(.isMalformed),
      isRecognisable: first.flags.contains(.isRecognisable), isSelected: story.isSelected, sent: story.sent,
      firstSent: Timestamp(nanoseconds: first.time), lastSent: Timestamp(nanoseconds: story.lastTime),
      recoveredAfter: outcome == .recovered ? story.recoveredAfter : nil, observedFor: story.observedFor(until: end))
  }

  private func string(at place: Int) throws(UnnamedFile.Failure) -> [UInt8]? {
    place < 0 ? nil : try contents.string(at: place)
  }

  // MARK: tokens

  private func writeTokens(_ sorter: RowSorter<TokenOrder>, _ summary: inout StorySummary) throws(UnnamedFile.Failure) {
    let tokens = RowSorter<TokenFactsOrder>(memory: options.memory / 8, folder: options.folder)
    var rows = try sorter.sorted()
    var facts: TokenFacts?
    while let row = try rows.next() {
      if facts?.takes(row) == true {
        facts?.add(row)
      } else {
        if let facts, facts.isSelected { try tokens.append(facts) }
        facts = TokenFacts(row)
      }
    }
    if let facts, facts.isSelected { try tokens.append(facts) }
    var sorted = try tokens.sorted()
    while output.isOpen, let facts = try sorted.next() {
      if options.writesOnlyDeadTokens, !facts.isDead { continue }
      summary.tokens += 1
      output.receive(
        TokenRecord(
          token: try string(at: facts.tokenPlace) ?? [],
          topic: try string(at: facts.topicPlace).map { String(decoding: $0, as: UTF8.self) }, sent: facts.sent,
          accepted: facts.accepted, rejected: facts.rejected, status: facts.status.map(Int.init),
          reason: facts.reason > 0 ? reasons[Int(facts.reason) - 1] : nil,
          listed: Timestamp(nanoseconds: facts.listed), gone: facts.gone,
          sentAfterListed: facts.isListed ? facts.sentAfterListed : nil,
          sentAfterGone: facts.gone == nil ? nil : facts.sentAfterGone,
          firstSeen: Timestamp(nanoseconds: facts.first.time), lastSeen: Timestamp(nanoseconds: facts.lastTime),
          isDead: facts.isDead, isOfRequests: facts.isOfRequests))
    }
  }
}
