import BinaryProtocol
import Bytes
import PacketCapture
import Records

/// Output of stories that is handed on in large pieces.
struct StoryOutput {
  static let flushThreshold = 1 << 17
  private let output: RecordOutput
  private(set) var isOpen = true

  init(_ output: @escaping RecordOutput) { self.output = output }

  mutating func flush(_ text: inout ByteWriter) {
    if isOpen && text.count > 0 { isOpen = output(text.bytes) }
    text.removeAll()
  }

  mutating func flushWhenFull(_ text: inout ByteWriter) { if text.count >= Self.flushThreshold { flush(&text) } }
}

/// Writes stories as JSON Lines.
package final class JSONStoryWriter: StorySink {
  private var fields = JSONFieldWriter(capacity: 2 * StoryOutput.flushThreshold)
  private var output: StoryOutput

  package init(output: @escaping RecordOutput) { self.output = StoryOutput(output) }

  package var isOpen: Bool { output.isOpen }
  package func flush() { output.flush(&fields.output) }

  package func receive(_ record: CaptureRecord) { record.write(to: &fields) }

  package func begin(_ story: StoryRecord) {
    story.write(to: &fields)
    fields.beginList("sendings")
  }

  package func receive(_ sending: SendingRecord) {
    fields.beginItem()
    sending.write(to: &fields)
    fields.endObject()
    output.flushWhenFull(&fields.output)
  }

  package func endStory() {
    fields.endList()
    fields.end()
    output.flushWhenFull(&fields.output)
  }

  package func receive(_ token: TokenRecord) {
    token.write(to: &fields)
    output.flushWhenFull(&fields.output)
  }

  package func receive(_ summary: StorySummary) { summary.write(to: &fields) }
}

/// Writes stories as CSV, all types of records into one table.
package final class CSVStoryWriter: StorySink {
  private var fields = CSVFieldWriter(columns: StoryColumns.all, capacity: 2 * StoryOutput.flushThreshold)
  private var output: StoryOutput
  private var isFirst = true

  package init(output: @escaping RecordOutput) { self.output = StoryOutput(output) }

  package var isOpen: Bool { output.isOpen }
  package func flush() { output.flush(&fields.output) }

  package func receive(_ record: CaptureRecord) { record.write(to: &fields) }

  package func begin(_ story: StoryRecord) {
    story.write(to: &fields)
    fields.beginList("sendings")
    isFirst = true
  }

  package func receive(_ sending: SendingRecord) {
    fields.item(sending.connection, sending.index, sending.fate.word, isFirst: isFirst)
    isFirst = false
    output.flushWhenFull(&fields.output)
  }

  package func endStory() {
    fields.end()
    output.flushWhenFull(&fields.output)
  }

  package func receive(_ token: TokenRecord) {
    token.write(to: &fields)
    output.flushWhenFull(&fields.output)
  }

  package func receive(_ summary: StorySummary) { summary.write(to: &fields) }
}

/// The fields of tokens that are written, and nothing else of a recording.
package enum TokenFields {
  /// All fields of tokens.
  package static let names: [StaticString] = [
    "token", "topic", "sent", "accepted", "rejected", "status", "listed", "timestamp", "sent_after_listed",
    "sent_after_gone", "first_seen", "last_seen", "reason",
  ]
}

/// Writes selected fields of tokens as JSON Lines.
package final class JSONTokenFieldsWriter: StorySink {
  private var fields: SelectedFieldWriter<JSONFieldWriter>
  private var output: StoryOutput

  package init(_ selection: FieldSelection, output: @escaping RecordOutput) {
    fields = SelectedFieldWriter(JSONFieldWriter(capacity: 2 * StoryOutput.flushThreshold), selection)
    self.output = StoryOutput(output)
  }

  package var isOpen: Bool { output.isOpen }
  package func flush() { output.flush(&fields.base.output) }
  package func receive(_ record: CaptureRecord) {}
  package func begin(_ story: StoryRecord) {}
  package func receive(_ sending: SendingRecord) {}
  package func endStory() {}
  package func receive(_ token: TokenRecord) {
    token.write(to: &fields)
    output.flushWhenFull(&fields.base.output)
  }
  package func receive(_ summary: StorySummary) {}
}

/// Writes selected fields of tokens as columns of CSV, or of a table that is separated by tabs.
package final class CSVTokenFieldsWriter: StorySink {
  private var fields: SelectedFieldWriter<CSVFieldWriter>
  private var output: StoryOutput

  package init(_ selection: FieldSelection, isTabbed: Bool, output: @escaping RecordOutput) {
    fields = SelectedFieldWriter(
      CSVFieldWriter(columns: selection.columns, capacity: 2 * StoryOutput.flushThreshold, isTabbed: isTabbed),
      selection)
    self.output = StoryOutput(output)
  }

  package var isOpen: Bool { output.isOpen }
  package func flush() { output.flush(&fields.base.output) }
  package func receive(_ record: CaptureRecord) {}
  package func begin(_ story: StoryRecord) {}
  package func receive(_ sending: SendingRecord) {}
  package func endStory() {}
  package func receive(_ token: TokenRecord) {
    token.write(to: &fields)
    output.flushWhenFull(&fields.base.output)
  }
  package func receive(_ summary: StorySummary) {}
}
