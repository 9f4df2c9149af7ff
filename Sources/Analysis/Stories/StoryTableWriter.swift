import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import Records

/// Writes stories as a table for people: a row for each notification, followed by rows for its sendings unless it was
/// simply accepted; then a row for each token that was rejected or listed by feedback.
package final class StoryTableWriter: StorySink {
  private var text = ByteWriter(capacity: 2 * StoryOutput.flushThreshold)
  private var output: StoryOutput
  private var times = TimestampFormatter()
  private var hasHeader = false
  private var listsSendings = false

  package init(output: @escaping RecordOutput) { self.output = StoryOutput(output) }

  package var isOpen: Bool { output.isOpen }
  package func flush() { output.flush(&text) }

  package func receive(_ record: CaptureRecord) {
    let number = record.file.map { "\($0): " } ?? ""
    text.write(text: "\(number)\(TableText.printable(record.source)) (\(record.format.rawValue))\n")
    if !record.selection.isEmpty {
      text.write(text: "selected: \(TableText.printable(record.selection.joined(separator: " ")))\n")
    }
  }

  private func beginRow(_ time: Timestamp, _ word: StaticString) {
    if !hasHeader { text.write("first sent (UTC)             outcome         sent  details\n") }
    hasHeader = true
    write(time)
    let start = text.count
    text.write(word)
    pad(to: start + 14)
  }

  package func begin(_ story: StoryRecord) {
    beginRow(story.firstSent, story.outcome.word)
    write(story.sent, width: 6)
    let (token, payload) = (story.token ?? [], story.payload ?? [])
    text.write("  token ")
    text.write(short: token.rawBytes)
    text.write("  ")
    text.write(decimal: payload.count)
    text.write(" B ")
    text.write(preview: payload.rawBytes)
    if let topic = story.topic { text.write(text: "  topic \(TableText.printable(topic))") }
    if story.isMalformed { text.write("  malformed items") }
    if let nanoseconds = story.recoveredAfter { text.write(text: "  after \(seconds(nanoseconds))") }
    if let nanoseconds = story.observedFor {
      text.write(text: "  not sent again in the \(seconds(nanoseconds)) that follow")
    }
    text.write("\n")
    listsSendings = story.outcome != .accepted
  }

  package func receive(_ sending: SendingRecord) {
    guard listsSendings else { return }
    text.write("  ")
    write(sending.time)
    text.write(sending.fate.word)
    if let status = sending.status {
      let name = sending.isRequest ? sending.reason.map(TableText.printable) : Self.name(ofStatus: status)
      text.write(text: " (\([String(status), name].compactMap { $0 }.joined(separator: " ")))")
    }
    if let cause = sending.cause { text.write(text: " (\(cause.rawValue))") }
    text.write(text: "  connection \(sending.connection) #\(sending.index)")
    let file = PacketNumber.file(sending.packet)
    if sending.packet > 0 {
      text.write(text: "  packet \(file > 0 ? "\(file):" : "")\(PacketNumber.packet(sending.packet))")
    }
    if let identifier = sending.identifier { text.write(text: "  id \(identifier)") }
    text.write("\n")
    output.flushWhenFull(&text)
  }

  package func endStory() { output.flushWhenFull(&text) }

  package func receive(_ token: TokenRecord) {
    guard token.rejected > 0 || token.sentAfterListed != nil else { return }
    beginRow(token.firstSeen, "token")
    write(token.sent, width: 6)
    text.write("  token ")
    text.write(short: token.token.rawBytes)
    text.write(text: "  \(token.accepted) accepted  \(token.rejected) rejected")
    if let status = token.status {
      let name = token.isOfRequests ? token.reason.map(TableText.printable) : Self.name(ofStatus: status)
      text.write(text: " (\([String(status), name].compactMap { $0 }.joined(separator: " ")))")
    }
    if token.listed.isKnown { text.write(text: "  listed at \(TimestampFormatter.text(token.listed).prefix(19))") }
    if let count = token.sentAfterListed, count > 0 { text.write(text: "  \(count) sent after it was listed") }
    if let count = token.sentAfterGone, count > 0 { text.write(text: "  \(count) sent after its app was gone") }
    text.write("\n")
    output.flushWhenFull(&text)
  }

  package func receive(_ summary: StorySummary) {
    let outcomes = StoryOutcome.allCases.filter { summary[$0] > 0 }
      .map { "\(summary[$0]) \($0.words)" }
    text.write(
      text: "\(summary.stories) notifications, sent \(summary.sendings) times"
        + (outcomes.isEmpty ? "" : ": \(outcomes.joined(separator: ", "))")
        + (summary.tokens > 0 ? "; \(summary.tokens) tokens\n" : "\n"))
    if let recovery = summary.recovery {
      text.write(
        text:
          "recovered after: p50 \(seconds(recovery.p50)), p99 \(seconds(recovery.p99)), max \(seconds(recovery.max))\n")
    }
  }

  // MARK: cells

  private static func name(ofStatus status: Int) -> String {
    "\(ErrorResponse.Status(rawValue: UInt8(clamping: status)))"
  }

  /// Microseconds are precise enough.
  private func write(_ time: Timestamp) {
    let start = text.count
    if time.isKnown {
      times.write(time, into: &text)
      text.truncate(to: text.count - 4)
    } else {
      text.write("-")
    }
    pad(to: start + 29)
  }

  private func seconds(_ nanoseconds: Int64) -> String { "\(TableWriter.decimal(Double(nanoseconds) / 1e9, 1)) s" }

  private func write(_ number: Int, width: Int) {
    let digits = "\(number)"
    pad(to: text.count + max(0, width - digits.utf8.count))
    text.write(text: digits)
  }

  private func pad(to count: Int) { while text.count < count { text.write(UInt8(ascii: " ")) } }
}
