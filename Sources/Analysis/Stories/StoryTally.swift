import Bytes
import Measurement
import Records

/// Counts stories for the report of a trace: the outcomes of all notifications, the outcomes of those that each error
/// response discarded, and the worst tokens.
package final class StoryTally: StorySink {
  /// The number of worst tokens that are listed.
  private static let named = 20

  private var report = TraceReport.Stories()
  /// The outcomes of the notifications that were discarded on a connection, selected or not.
  private var losses: [Int: Loss] = [:]
  /// Times from error responses to the sendings that send again what they discarded.
  private var resends = LatencyHistogram(.microseconds)
  /// The longest of them in nanoseconds: a histogram ends at one hour.
  private var longestResend: Int64 = 0
  private let listed: Int
  /// Counts of the tokens that begin so.
  package private(set) var tokens: [ProviderVerdict.Token]
  private var story: StoryRecord?
  /// The latest sending of the story that was discarded.
  private var discarded: SendingRecord?
  /// Its discarded sendings that no other has followed so far.
  private var pending = 0
  /// One of its sendings was accepted or rejected.
  private var isDecided = false

  /// The outcomes of the notifications that were discarded on a connection.
  private struct Loss {
    var outcomes: NamedCounts<StoryOutcome> = [:]
    var sentAgain = 0
    /// The least and the longest time from the error response to a sending again, in nanoseconds.
    var times: ClosedRange<Int64>?
  }

  /// - Parameters:
  ///   - listed: the number of refused notifications, and of connections with discarded ones, that are listed.
  ///   - prefixes: the beginnings of tokens that are counted separately, in lower-case hexadecimal.
  package init(listed: Int, countingTokens prefixes: [String] = []) {
    self.listed = listed
    tokens = prefixes.map(ProviderVerdict.Token.init)
  }

  package var isOpen: Bool { true }
  package func flush() {}
  package func receive(_ record: CaptureRecord) {}

  package func begin(_ story: StoryRecord) {
    self.story = story
    guard story.isSelected, let reason = story.openReason else { return }
    report.openReasons[reason, default: 0] += 1
    if story.seen == .lost { report.notSeenAgain[reason, default: 0] += 1 }
  }

  package func receive(_ sending: SendingRecord) {
    guard let story else { return }
    if let discarded, sending.relation.resent > 0 { note(sending, resending: discarded) }
    switch sending.fate {
    case .accepted: isDecided = true
    case .unknown: break
    case .discarded:
      discarded = sending
      pending += 1
      if story.isSelected { report.discarded += 1 }
      guard losses[sending.connection] != nil || losses.count < listed else { return }
      losses[sending.connection, default: Loss()].outcomes[story.outcome, default: 0] += 1
    case .rejected:
      isDecided = true
      guard report.refusals.count < listed else { return }
      let payload = story.payload ?? []
      report.refusals.append(
        TraceReport.Stories.Refusal(
          connection: sending.connection, notification: sending.index, token: Self.hex(story.token ?? []),
          payload: TableText.preview(payload.rawBytes)))
    }
  }

  private func note(_ sending: SendingRecord, resending discarded: SendingRecord) {
    let count = sending.relation.resent
    pending -= count
    losses[discarded.connection]?.sentAgain += count
    let isCounted = story?.isSelected == true
    if isCounted { report.sentAgain += count }
    // One that was written before the response is not its consequence.
    guard let time = sending.time.nanoseconds(since: discarded.discardedAt), time >= 0 else { return }
    if isCounted {
      resends.record(Int(time / 1_000), times: count)
      longestResend = max(longestResend, time)
    }
    let times = losses[discarded.connection]?.times ?? time...time
    losses[discarded.connection]?.times = min(times.lowerBound, time)...max(times.upperBound, time)
  }

  package func endStory() {
    // A gateway may read what it discards after it has decided on the same on another connection.
    if let story, story.isSelected, !isDecided {
      report.notSentAgain += pending
      // A notification without a token that was discarded loses nothing: it would have been rejected.
      if story.outcome == .open, story.seen == .lost || story.seen == .open { report.undecided += 1 }
    }
    if let story, let discarded { note(missing: story, discarded) }
    story = nil
    (discarded, pending, isDecided) = (nil, 0, false)
  }

  private func note(missing story: StoryRecord, _ sending: SendingRecord) {
    guard story.isSelected, story.seen == .lost else { return }
    let isLost = story.outcome == .lost
    guard report.missing.count(where: { $0.isLost == isLost }) < listed else { return }
    let payload = story.payload ?? []
    report.missing.append(
      TraceReport.Stories.Missing(
        isLost: isLost, connection: sending.connection, notification: sending.index,
        time: sending.time.isKnown ? rfc3339(sending.time.nanoseconds) : nil, token: Self.hex(story.token ?? []),
        payload: TableText.preview(payload.rawBytes)))
  }

  package func receive(_ token: TokenRecord) {
    let text = tokens.isEmpty ? "" : Self.hex(token.token)
    for place in tokens.indices where text.hasPrefix(tokens[place].prefix) {
      tokens[place].sent += token.sent
      tokens[place].accepted += token.accepted
      tokens[place].rejected += token.rejected
    }
    if token.isDead {
      if token.isOfRequests { report.unregisteredTokens += 1 } else { report.deadTokens += 1 }
    }
    let sentInVain = max(token.sentAfterListed ?? 0, token.sentAfterGone ?? 0)
    guard token.rejected + sentInVain > 0 else { return }
    let row = TraceReport.Stories.Token(
      token: Self.hex(token.token), topic: token.topic, sent: token.sent, rejected: token.rejected,
      status: token.status, reason: token.reason, sentInVain: sentInVain)
    // Ties are in the order in which tokens were seen.
    let place = report.worstTokens.firstIndex { $0.rejected + $0.sentInVain < row.rejected + row.sentInVain }
    report.worstTokens.insert(row, at: place ?? report.worstTokens.count)
    if report.worstTokens.count > Self.named { report.worstTokens.removeLast() }
  }

  package func receive(_ summary: StorySummary) {
    report.outcomes = StoryOutcome.allCases.map { TraceReport.Stories.Outcome($0.name, summary[$0]) }
    (report.gaps, report.gapBytes) = summary.gaps
    report.sendings = summary.sendings
    if resends.count > 0 {
      let longest = Double(longestResend) / 1e9
      func seconds(_ quantile: Double) -> Double {
        let value = resends.quantile(quantile)
        return value < LatencyHistogram.highest ? min(Double(value) / 1e6, longest) : longest
      }
      report.resend = RecoveryTimes(p50S: seconds(0.5), p99S: seconds(0.99), maxS: longest)
    }
    func seconds(_ nanoseconds: Int64) -> Double { Double(nanoseconds) / 1e9 }
    report.recovery = summary.recovery.map {
      RecoveryTimes(p50S: seconds($0.p50), p99S: seconds($0.p99), maxS: seconds($0.max))
    }
  }

  /// The records written so far.
  package var stories: TraceReport.Stories {
    var stories = report
    stories.losses = losses.sorted { $0.key < $1.key }.map { connection, loss in
      TraceReport.Stories.Loss(
        connection: connection,
        outcomes: StoryOutcome.allCases.compactMap { outcome in
          loss.outcomes[outcome].map { TraceReport.Stories.Outcome(outcome.name, $0) }
        }, sentAgain: loss.sentAgain, firstResentS: loss.times.map { Double($0.lowerBound) / 1e9 },
        lastResentS: loss.times.map { Double($0.upperBound) / 1e9 })
    }
    return stories
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    var text = ByteWriter(capacity: 2 * bytes.count)
    text.write(hex: bytes.rawBytes)
    return String(decoding: Array(copying: text.bytes), as: UTF8.self)
  }
}
