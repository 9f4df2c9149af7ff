import Analysis
import ArgumentParser
import Records

/// Reads the selected records of the inputs into a sink that counts them.
struct InspectedRecording<Sink: RecordSink> {
  let sink: Sink
  /// The exit status.
  let code: ExitCode

  /// - Parameters:
  ///   - redaction: redacts the records before the sink receives them.
  ///   - onProgress: called as `onProgress` of `RecordingReader`, with a copy of the sink.
  init(
    _ inputs: [String], _ options: DecodingOptions, live: LiveOptions? = nil, _ selection: RecordSelection,
    _ redaction: Redaction? = nil, into empty: Sink, strict: Bool,
    onProgress: ((Sink, SummaryRecord) -> Void)? = nil
  ) throws {
    let counted = SharedSink(empty)
    let redacted: any RecordSink = redaction.map { RedactedRecords(counted, $0) } ?? counted
    guard !selection.isEmpty else {
      let reading = try RecordingReader(
        inputs, options, live: live, into: redacted,
        onProgress: onProgress.map { body in { summary in body(counted.sink, summary) } })
      (sink, code) = (counted.sink, reading.exitCode(strict: strict))
      return
    }
    let firstPass = try FirstPass(inputs, isLive: live?.interface != nil, options, selection)
    let selected = SharedSink(
      SelectedRecords(
        redacted, selection, facts: firstPass.facts, countsSelected: true,
        maximumRanges: options.limits.maxFateRanges))
    let reading = try RecordingReader(
      inputs, options, live: live, into: selected, secrets: firstPass.secrets,
      onProgress: onProgress.map { body in { _ in body(counted.sink, selected.sink.summary) } })
    firstPass.complain(after: reading.summary, isCut: selected.sink.isCut)
    sink = counted.sink
    code = firstPass.isCut ? ExitStatus.interrupted : reading.exitCode(strict: strict)
  }
}
