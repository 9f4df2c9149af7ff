import ArgumentParser
import Dissection

/// A sink that counts records, with all that are selected in the inputs.
struct InspectedRecording<Sink: RecordSink> {
  let sink: Sink
  /// What the shell is told.
  let code: ExitCode

  init(
    _ inputs: [String], _ options: DecodingOptions, _ selection: RecordSelection, into empty: Sink, strict: Bool
  ) throws {
    guard !selection.isEmpty else {
      let reading = try RecordingReader(inputs, options, into: empty)
      (sink, code) = (reading.sink, reading.exitCode(strict: strict))
      return
    }
    let early = try EarlyReading(inputs, options, selection)
    let selected = SelectedRecords(
      empty, selection, facts: early.facts, countsSelected: true, maximumRanges: options.limits.maxFateRanges)
    let reading = try RecordingReader(inputs, options, into: selected, secrets: early.secrets)
    early.complain(after: reading.summary, isCut: reading.sink.isCut)
    sink = reading.sink.sink as? Sink ?? empty
    code = early.isCut ? ExitStatus.interrupted : reading.exitCode(strict: strict)
  }
}
