import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import ProviderAPI
import Records

/// The fields of stories in their documented order. A field that was absent on the wire is not written.

extension StoryRecord {
  /// Writes every field except the sendings, which follow.
  func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("notification_story")
    output.field("outcome", word: outcome.word)
    if let openReason { output.field("open_reason", openReason.rawValue) }
    if let token { output.field("token", hex: token.rawBytes) }
    if let topic { output.field("topic", topic) }
    if let payload {
      output.field("payload_length", payload.count)
      if !payload.isEmpty { output.field("payload", payload: payload.rawBytes) }
    }
    if isMalformed { output.field("malformed_items", true) }
    output.field("sent", sent)
    output.field("first_sent", knownTime: firstSent)
    output.field("last_sent", knownTime: lastSent)
    if let recoveredAfter { output.field("recovered_ms", milliseconds: recoveredAfter) }
    if let observedFor { output.field("observed_s", seconds: observedFor) }
  }
}

extension SendingRecord {
  func write(to output: inout some FieldWriter & ~Copyable) {
    output.field("file", fileOf: packet)
    output.field("connection", connection)
    output.field("index", index)
    output.field("time", knownTime: time)
    output.field("packet", packet: packet)
    output.field("fate", word: fate.word)
    output.field("status", optional: status)
    if let reason { output.field("reason", reason) }
    if let cause { output.field("discarded_by", word: cause.word) }
    output.field("identifier", optional: identifier.map(Int.init))
    output.field("expiration", optional: expiration.map(Int.init))
  }
}

extension TokenRecord {
  func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("token")
    output.field("token", hex: token.rawBytes)
    if let topic { output.field("topic", topic) }
    output.field("sent", sent)
    output.field("accepted", accepted)
    output.field("rejected", rejected)
    output.field("status", optional: status)
    output.field("listed", knownTime: listed)
    output.field("timestamp", optional: gone.map(Int.init))
    output.field("sent_after_listed", optional: sentAfterListed)
    output.field("sent_after_gone", optional: sentAfterGone)
    output.field("first_seen", knownTime: firstSeen)
    output.field("last_seen", knownTime: lastSeen)
    if let reason { output.field("reason", reason) }
    output.end()
  }
}

extension StorySummary {
  func write(to output: inout some FieldWriter & ~Copyable) {
    output.begin("summary")
    output.field("packets", recording.packets)
    output.field("connections", recording.connections)
    output.field("notifications", recording.notifications)
    output.field("error_responses", recording.errorResponses)
    output.field("feedback_tuples", recording.feedbackTuples)
    output.field("gaps", recording.gaps)
    output.field("malformed", recording.malformed)
    output.field("undecrypted_connections", recording.undecryptedConnections)
    if recording.droppedPackets > 0 { output.field("dropped_packets", recording.droppedPackets) }
    if recording.unreadPackets > 0 { output.field("unread_packets", recording.unreadPackets) }
    if !recording.unread.isEmpty { output.field("unread", recording.unread) }
    output.field("sent", sendings)
    output.field("stories", stories)
    for outcome in StoryOutcome.allCases { output.field(outcome.word, self[outcome]) }
    output.field("tokens", tokens)
    writeRecovery(to: &output)
    if recording.responses > 0 { output.field("responses", recording.responses) }
    output.end()
  }

  private func writeRecovery(to output: inout some FieldWriter & ~Copyable) {
    if let recovery {
      output.field("recovered_ms_p50", milliseconds: recovery.p50)
      output.field("recovered_ms_p99", milliseconds: recovery.p99)
      output.field("recovered_ms_max", milliseconds: recovery.max)
    }
  }
}

/// The columns of CSV, in an order that preserves each type's own field order.
enum StoryColumns {
  static let all: [StaticString] = [
    "type", "schema", "source", "format", "link_types", "selection", "file", "outcome", "open_reason", "token", "topic",
    "payload_length", "payload", "payload_base64", "malformed_items", "packets", "connections", "notifications",
    "error_responses", "feedback_tuples", "gaps", "malformed", "undecrypted_connections", "dropped_packets",
    "unread_packets", "unread", "sent",
    "first_sent", "last_sent", "recovered_ms", "observed_s", "sendings", "stories", "accepted_twice", "expired",
    "recovered", "accepted", "open", "rejected", "lost", "status", "listed", "timestamp", "sent_after_listed",
    "sent_after_gone", "first_seen", "last_seen", "tokens",
    "recovered_ms_p50", "recovered_ms_p99", "recovered_ms_max", "reason", "responses",
  ]
}
