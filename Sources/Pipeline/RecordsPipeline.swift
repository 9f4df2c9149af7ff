import Analysis
import BinaryProtocol
import CommandFiles
import Records

/// The way from a file of records to a sink: its lines are read, and their records selected, redacted and received.
package struct RecordsPipeline {
  /// How a reading went.
  package struct Outcome {
    /// The totals of all records.
    package fileprivate(set) var summary = SummaryRecord()
    /// Records that could be read; 0: the sink has received nothing.
    package fileprivate(set) var records = 0
    /// Lines that are no records.
    package fileprivate(set) var refusedLines = 0
    /// Records of kinds that are not known.
    package fileprivate(set) var unknownRecords = 0
    /// A line that is too long, at which the reading ended.
    package fileprivate(set) var cut: FileFailure?
    /// The records that the file lacks by its own totals, as a sentence; `nil`: none.
    package fileprivate(set) var missing: String?
    /// Notifications are selected, and their fates are not in the file.
    package fileprivate(set) var lacksFates = false
    /// A limit was reached, so that selected records are missing.
    package fileprivate(set) var isSelectionCut = false
  }

  private let path: String
  private let isStopRequested: () -> Bool
  package var limits = RecordReader.Limits()
  package var selection = RecordSelection()
  /// `nil`: records are not redacted.
  package var redaction: Redaction?
  /// Ranges of fates that are kept, and as many of other facts.
  package var maximumRanges = FateIndex.usualMaximumRanges

  /// - Parameter isStopRequested: asked before each line; the rest is not read.
  package init(_ path: String, isStopRequested: @escaping () -> Bool) {
    (self.path, self.isStopRequested) = (path, isStopRequested)
  }

  /// Reads the file, two times or three: later records add facts to earlier ones, and the selection may need more.
  ///
  /// - Parameter onRefusal: called with each line that is no record, and the reason.
  /// - Returns: the sink with what it has received, and how the reading went.
  /// - Throws: a `FileFailure` if the file cannot be read.
  package func read<Sink: RecordSink>(
    into sink: Sink, onRefusal: (borrowing RecordLines, RecordError) -> Void
  ) throws(FileFailure) -> (sink: Sink, reading: Outcome) {
    var facts = RecordingFacts(for: selection, maximumRanges: maximumRanges)
    if selection.needsFacts {
      // Errors are reported in the last pass.
      var pass = try pass()
      _ = try read(&pass, into: &facts) { _, _ in }
      pass.finish(into: &facts)
    }
    let received = SharedSink(sink)
    var redacted: any RecordSink = redaction.map { RedactedRecords(received, $0) } ?? received
    var reader = try pass()
    var reading = Outcome()
    func note(_ lines: borrowing RecordLines, _ error: RecordError) {
      reading.refusedLines += 1
      onRefusal(lines, error)
    }
    if selection.isEmpty && !reader.isSelection {
      reading.cut = try read(&reader, into: &redacted, note)
      if reader.records > 0 { reader.finish(into: &redacted) }
    } else {
      var selected = SelectedRecords(
        redacted, selection, facts: facts, countsSelected: true, maximumRanges: maximumRanges)
      reading.cut = try read(&reader, into: &selected, note)
      if reader.records > 0 { reader.finish(into: &selected) }
      reading.isSelectionCut = selected.isCut || facts.isCut
      reading.lacksFates = reader.summary.notifications > 0 && !reader.hasFates
    }
    (reading.summary, reading.records) = (reader.summary, reader.records)
    (reading.unknownRecords, reading.missing) = (reader.unknownRecords, reader.missing)
    return (received.sink, reading)
  }

  /// A reader that has seen the facts that later records add to earlier ones.
  private func pass() throws(FileFailure) -> RecordReader {
    var reader = RecordReader(limits: limits)
    // Errors are reported in the pass that follows.
    var lines = try RecordLines(path)
    while !isStopRequested(), try lines.nextIfReadable() { reader.scan(lines.text) }
    return reader
  }

  /// Reads all lines into a sink. Returns the line at which the reading ended, if one is too long.
  private func read(
    _ reader: inout RecordReader, into sink: inout some RecordSink,
    _ onRefusal: (borrowing RecordLines, RecordError) -> Void
  ) throws(FileFailure) -> FileFailure? {
    var lines = try RecordLines(path)
    while !isStopRequested(), try lines.nextIfReadable() {
      do {
        try reader.read(lines.text, into: &sink)
      } catch {
        onRefusal(lines, error)
      }
    }
    return lines.cut
  }
}
