import BinaryProtocol
import Measurement
import PacketCapture

@testable import Analysis
@testable import Dissection
@testable import Records

/// A story as a test knows it, or as it was told.
struct ToldStory: Equatable {
  var outcome: String
  var token: [UInt8]
  var payload: [UInt8]
  var sendings: [Incident.Sending]
  var recoveredAfter: Int64?
  var observedFor: Int64?
}

/// A token as a test knows it, or as it was told.
struct ToldToken: Equatable {
  var token: [UInt8]
  var sent = 0
  var accepted = 0
  var rejected = 0
  var listed: Int64?
  var timestamp: UInt32?
  var sentAfterListed: Int?
  var sentAfterGone: Int?
  /// To be deleted.
  var isDead = false
}

extension Incident {
  /// The stories by the rule as it is written down, in the order of their first sendings.
  func stories(repeatAfter: Int64) -> [ToldStory] {
    var byContent: [[UInt8]: [(Content, Sending)]] = [:]
    for (content, sending) in sendings {
      byContent[content.token + content.payload, default: []].append((content, sending))
    }
    var told: [ToldStory] = []
    for group in byContent.values {
      let ordered = group.sorted { ($0.1.time, $0.1.connection, $0.1.index) < ($1.1.time, $1.1.connection, $1.1.index) }
      var parts: [[(Content, Sending)]] = []
      for item in ordered {
        let accepted = parts.last?.last { $0.1.fate == .accepted }
        if let accepted, item.1.time - accepted.1.time >= repeatAfter {
          parts.append([item])
        } else if parts.isEmpty {
          parts = [[item]]
        } else {
          parts[parts.count - 1].append(item)
        }
      }
      told += parts.map(story)
    }
    return told.sorted { a, b in
      let (a, b) = (a.sendings[0], b.sendings[0])
      return (a.time, a.connection, a.index) < (b.time, b.connection, b.index)
    }
  }

  private func story(_ part: [(content: Content, sending: Sending)]) -> ToldStory {
    let fates = part.map(\.sending.fate)
    let accepted = part.indices.filter { fates[$0] == .accepted }
    var story = ToldStory(
      outcome: "lost", token: part[0].content.token, payload: part[0].content.payload, sendings: part.map(\.sending))
    if accepted.count >= 2 {
      story.outcome = "accepted_twice"
    } else if fates.contains(.unknown) {
      story.outcome = "open"
    } else if let only = accepted.first {
      let expiration = Int64(part[only].content.expiration)
      if expiration != 0, part[only].sending.time > expiration * 1_000_000_000 {
        story.outcome = "expired"
      } else if only > 0 {
        story.outcome = "recovered"
        story.recoveredAfter = part[only].sending.time - part[0].sending.time
      } else {
        story.outcome = "accepted"
      }
    } else if fates.contains(.rejected) {
      story.outcome = "rejected"
    } else {
      story.observedFor = part.last.map { end - $0.sending.time }
    }
    return story
  }

  /// Whether a story that was told is what became of a notification, as far as the recording proves it: it is left open
  /// where something that the recording does not show could hold another sending, and only there.
  ///
  /// - Parameter truth: by the sendings that were recorded.
  func proves(_ told: ToldStory, of truth: ToldStory, among all: [ToldStory]) -> Bool {
    var usual = told
    usual.outcome = truth.outcome
    usual.recoveredAfter = truth.recoveredAfter
    guard usual == truth,
      told.outcome == truth.outcome ? told.recoveredAfter == truth.recoveredAfter : told.outcome == "open"
    else { return false }
    guard ["lost", "rejected", "recovered", "expired"].contains(truth.outcome) else {
      return told.outcome == truth.outcome
    }
    if hasGaps || !isFinished { return true }
    return (told.outcome == "open") == !isObserved(truth, among: all)
  }

  /// The recording goes on after a story for as long as providers take to send again; where it was lost also before it, and
  /// for a minute at least.
  private func isObserved(_ story: ToldStory, among all: [ToldStory]) -> Bool {
    let isLost = story.outcome == "lost"
    var within: Int64 = isLost ? 60_000_000_000 : 0
    for other in all {
      for (one, next) in zip(other.sendings, other.sendings.dropFirst()) where one.fate != .accepted {
        within = max(within, next.time - one.time)
      }
    }
    guard let first = story.sendings.first?.time, let last = story.sendings.last?.time else { return false }
    return (!isLost || first - within >= start) && last + within <= end
  }

  /// The tokens, by token.
  var tokens: [ToldToken] {
    var tokens: [[UInt8]: ToldToken] = [:]
    for (token, timestamp, time) in feedback {
      var told = tokens[token] ?? ToldToken(token: token)
      told.listed = min(told.listed ?? .max, time)
      if timestamp > 0 { told.timestamp = min(told.timestamp ?? .max, timestamp) }
      tokens[token] = told
    }
    for (content, sending) in sendings {
      var told = tokens[content.token] ?? ToldToken(token: content.token)
      told.sent += 1
      if sending.fate == .accepted { told.accepted += 1 }
      if sending.fate == .rejected { told.rejected += 1 }
      if let listed = told.listed {
        told.sentAfterListed = (told.sentAfterListed ?? 0) + (sending.time > listed ? 1 : 0)
      }
      if let gone = told.timestamp {
        told.sentAfterGone = (told.sentAfterGone ?? 0) + (sending.time > Int64(gone) * 1_000_000_000 ? 1 : 0)
      }
      tokens[content.token] = told
    }
    for token in tokens.keys {
      if tokens[token]?.listed != nil, tokens[token]?.sentAfterListed == nil { tokens[token]?.sentAfterListed = 0 }
      if tokens[token]?.timestamp != nil, tokens[token]?.sentAfterGone == nil { tokens[token]?.sentAfterGone = 0 }
    }
    for token in tokens.keys {
      // The last that is known of it.
      let events =
        feedback.filter { $0.token == token }.map { ($0.time, true) }
        + sendings.compactMap { content, sending in
          guard content.token == token else { return nil }
          if sending.fate == .accepted { return (sending.time, false) }
          return sending.fate == .rejected && sending.status == 8 ? (sending.time, true) : nil
        }
      tokens[token]?.isDead = events.max { $0.0 < $1.0 }?.1 ?? false
    }
    return tokens.values.sorted { $0.token.lexicographicallyPrecedes($1.token) }
  }
}

/// Keeps what it is told.
final class StoryBook: StorySink {
  var captures: [CaptureRecord] = []
  var stories: [ToldStory] = []
  /// Why those that are open are.
  var reasons: [OpenReason?] = []
  var tokens: [ToldToken] = []
  var summaries: [StorySummary] = []
  var isOpen: Bool { true }

  func flush() {}
  func receive(_ record: CaptureRecord) { captures.append(record) }
  func begin(_ story: StoryRecord) {
    reasons.append(story.openReason)
    stories.append(
      ToldStory(
        outcome: story.outcome.name, token: story.token ?? [], payload: story.payload ?? [], sendings: [],
        recoveredAfter: story.recoveredAfter, observedFor: story.observedFor))
  }
  func receive(_ sending: SendingRecord) {
    stories[stories.count - 1].sendings.append(
      Incident.Sending(
        connection: sending.connection, index: sending.index, time: sending.time.nanoseconds, fate: sending.fate,
        status: sending.status.flatMap { UInt8(exactly: $0) }, identifier: sending.identifier ?? 0))
  }
  func endStory() {}
  func receive(_ token: TokenRecord) {
    tokens.append(
      ToldToken(
        token: token.token, sent: token.sent, accepted: token.accepted, rejected: token.rejected,
        listed: token.listed.isKnown ? token.listed.nanoseconds : nil, timestamp: token.gone,
        sentAfterListed: token.sentAfterListed, sentAfterGone: token.sentAfterGone, isDead: token.isDead))
  }
  func receive(_ summary: StorySummary) { summaries.append(summary) }
}

/// What is expected of a recording.
func tell(
  _ path: String, _ options: StoryCollector.Options = StoryCollector.Options()
) throws -> (book: StoryBook, hasSpilled: Bool) {
  let book = StoryBook()
  let usual = DissectionOptions()
  let collector = StoryCollector(options, into: book)
  var dissection = Dissection(into: collector, options: usual, secrets: try secrets(beside: path))
  _ = try dissection.read(try CaptureInput.open(path, options: usual.capture), source: path) { _ in true }
  dissection.finish()
  let hasSpilled = collector.hasSpilled
  try collector.write()
  return (book, hasSpilled)
}
