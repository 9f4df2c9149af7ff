import ArgumentParser
import Dissection

/// Reads the selected records of the inputs into a sink that counts them.
struct InspectedRecording<Sink: RecordSink> {
  let sink: Sink
  /// The exit status.
  let code: ExitCode

  init(
    _ inputs: [String], _ options: DecodingOptions, _ selection: RecordSelection, into empty: Sink, strict: Bool
  ) throws {
    guard !selection.isEmpty else {
      let reading = try RecordingReader(inputs, options, into: empty)
      (sink, code) = (reading.sink, reading.exitCode(strict: strict))
      return
    }
    let firstPass = try FirstPass(inputs, options, selection)
    let selected = SelectedRecords(
      empty, selection, facts: firstPass.facts, countsSelected: true, maximumRanges: options.limits.maxFateRanges)
    let reading = try RecordingReader(inputs, options, into: selected, secrets: firstPass.secrets)
    firstPass.complain(after: reading.summary, isCut: reading.sink.isCut)
    sink = reading.sink.sink as? Sink ?? empty
    code = firstPass.isCut ? ExitStatus.interrupted : reading.exitCode(strict: strict)
  }
}
