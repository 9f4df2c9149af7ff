import ArgumentParser
import Dissection

/// Reads the selected records of the inputs into a sink that counts them.
struct InspectedRecording<Sink: RecordSink> {
  let sink: Sink
  /// The exit status.
  let code: ExitCode

  /// - Parameters:
  ///   - redaction: redacts the records before the sink receives them.
  ///   - onProgress: called like that of `RecordingReader`, with a copy of the sink.
  init(
    _ inputs: [String], _ options: DecodingOptions, live: LiveOptions? = nil, _ selection: RecordSelection,
    _ redaction: Redaction? = nil, into empty: Sink, strict: Bool,
    onProgress: ((Sink, SummaryRecord) -> Void)? = nil
  ) throws {
    if let redaction, selection.isEmpty {
      let reading = try RecordingReader(
        inputs, options, live: live, into: RedactedRecords(empty, redaction),
        onProgress: onProgress.map { body in
          { redacted, summary in if let sink = redacted.sink as? Sink { body(sink, summary) } }
        })
      (sink, code) = (reading.sink.sink as? Sink ?? empty, reading.exitCode(strict: strict))
      return
    }
    guard !selection.isEmpty else {
      let reading = try RecordingReader(
        inputs, options, live: live, into: empty,
        onProgress: onProgress.map { body in { sink, summary in body(sink, summary) } })
      (sink, code) = (reading.sink, reading.exitCode(strict: strict))
      return
    }
    let firstPass = try FirstPass(inputs, isLive: live?.interface != nil, options, selection)
    let redacted: any RecordSink = redaction.map { RedactedRecords(empty, $0) } ?? empty
    let selected = SelectedRecords(
      redacted, selection, facts: firstPass.facts, countsSelected: true, maximumRanges: options.limits.maxFateRanges)
    let reading = try RecordingReader(
      inputs, options, live: live, into: selected, secrets: firstPass.secrets,
      onProgress: onProgress.map { body in
        { selected, _ in
          if let sink = RedactedRecords.inner(of: selected.sink) as? Sink { body(sink, selected.summary) }
        }
      })
    firstPass.complain(after: reading.summary, isCut: reading.sink.isCut)
    sink = RedactedRecords.inner(of: reading.sink.sink) as? Sink ?? empty
    code = firstPass.isCut ? ExitStatus.interrupted : reading.exitCode(strict: strict)
  }
}
