import Analysis
import ArgumentParser
import BinaryProtocol
import Bytes
import CommandFiles
import Measurement
import Records
import Reporting

struct TraceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Rows of each table.", valueName: "count"))
  var rows = 50

  @Flag(
    help:
      "Exit with 65 when anything of a trace is missing, malformed or not decrypted, or nothing was read; the report is written."
  )
  var strict = false

  @Option(
    help: ArgumentHelp(
      "Connections with separate series over time; further ones are summed as 'others'.",
      valueName: "count"))
  var maxTimelines = TraceInspection.Limits().timelines

  @Option(
    help: ArgumentHelp(
      "Distinct device tokens to count exactly; above, a sample is counted. Also the number of remembered feedback tokens.",
      valueName: "count"))
  var maxTokens = TraceInspection.Limits().tokens

  @Option(help: ArgumentHelp("Unreadable lines of records to report one by one.", valueName: "count"))
  var maxComplaints = 20

  func validate() throws {
    for (name, value) in [
      ("rows", rows), ("max-timelines", maxTimelines), ("max-tokens", maxTokens), ("max-complaints", maxComplaints),
    ] where value < 0 || value > 1 << 24 {
      throw ValidationError("--\(name) must be 0 to 16777216 (got \(value)).")
    }
  }

  /// A trace is read into this, and its stories into the tally.
  static func sinks(
    _ limits: TraceInspection.Limits, _ reading: LimitOptions, _ selection: RecordSelection
  ) -> (inspection: TraceInspection, collector: StoryCollector, tally: StoryTally) {
    let tally = StoryTally(listed: limits.inspection.listed)
    var options = StoryCollector.Options()
    options.apply(reading)
    options.selection = selection
    options.writesOthers = true
    options.resendWithin = limits.inspection.resendWithin
    options.isPart = limits.inspection.isPart
    let collector = StoryCollector(options, into: tally)
    return (TraceInspection(limits: limits, stories: collector), collector, tally)
  }

  func limits(_ tallies: TallyLimitOptions) -> TraceInspection.Limits {
    var limits = TraceInspection.Limits()
    limits.inspection = tallies.limits
    limits.timelines = maxTimelines
    limits.tokens = maxTokens
    return limits
  }
}

/// A trace that was read, from records or from a recording.
struct TraceReading {
  let report: TraceReport
  /// The exit status.
  let code: ExitCode

  /// Decodes recordings, as `inspect` does. Throws an exit code when nothing of it could be read.
  init(
    recordings paths: [String], _ traceLimits: TraceInspection.Limits,
    _ options: TraceOptions, _ selection: RecordSelection, _ redaction: Redaction?, _ decoding: DecodingOptions
  ) throws {
    Interrupt.watch()
    let (empty, collector, tally) = TraceOptions.sinks(traceLimits, decoding.limits, selection)
    var pipeline = try decoding.pipeline(paths, selection, redaction)
    let reading = try pipeline.read(into: empty)
    code = ExitStatus.code(for: reading.reading, strict: options.strict)
    var inspection = reading.sink
    var report = inspection.finish()
    if report.inspection.files.isEmpty { throw code == .success ? ExitStatus.damaged : code }
    report.warnings = report.inspection.files.flatMap(\.warnings)
    try collector.writeOrFail()
    report.add(tally.stories)
    self.report = report
  }

  /// Reads the records of `apnscope decode`. Invalid lines are reported and skipped.
  init(
    records path: String, _ traceLimits: TraceInspection.Limits, _ options: TraceOptions,
    _ selection: RecordSelection, _ redaction: Redaction?, _ limits: LimitOptions
  ) throws {
    Interrupt.watch()
    var readerLimits = RecordReader.Limits()
    readerLimits.connections = limits.maxConnections
    readerLimits.remembered = traceLimits.inspection.remembered
    readerLimits.fateRanges = limits.maxFateRanges
    var facts = RecordingFacts(for: selection, maximumRanges: limits.maxFateRanges)
    if selection.needsFacts {
      // Errors are reported in the last pass.
      var pass = try RecordsPass(path, readerLimits)
      try pass.read(into: &facts) { _, _ in }
      pass.reader.finish(into: &facts)
    }
    var pass = try RecordsPass(path, readerLimits)
    var refused = 0
    func read(into sink: inout some RecordSink) throws {
      try pass.read(into: &sink) { lines, error in
        refused += 1
        if refused <= options.maxComplaints { complain("\(lines.failure(error))") }
      }
      if let cut = pass.cut { complain("\(cut); the rest is not read") }
      if refused > options.maxComplaints {
        complain("\(path): \(grouped(refused - options.maxComplaints)) more lines cannot be read (--max-complaints)")
      }
      guard pass.reader.records > 0 else {
        complain("\(path): contains no readable record of 'apnscope decode'")
        throw ExitStatus.damaged
      }
      pass.reader.finish(into: &sink)
    }
    let (empty, collector, tally) = TraceOptions.sinks(traceLimits, limits, selection)
    let counted = SharedSink(empty)
    var redacted: any RecordSink = redaction.map { RedactedRecords(counted, $0) } ?? counted
    if selection.isEmpty && !pass.reader.isSelection {
      try read(into: &redacted)
    } else {
      var selected = SelectedRecords(
        redacted, selection, facts: facts, countsSelected: true, maximumRanges: limits.maxFateRanges)
      try read(into: &selected)
      if selected.isCut || facts.isCut {
        complain("some selected records are missing: the limit of --max-fate-ranges is reached")
      }
      if pass.reader.summary.notifications > 0, !pass.reader.hasFates {
        complain("\(path): contains no fates; those of selected notifications are unknown")
      }
    }
    var warnings: [String] = []
    func some(_ count: Int) -> String { count == 1 ? "1 line" : "\(grouped(count)) lines" }
    if refused > 0 {
      warnings.append("\(some(refused)) of the records could not be read; skipped.")
    }
    if pass.cut != nil {
      warnings.append("The records end with a line that is too long; the rest was not read.")
    }
    if let missing = pass.reader.missing { warnings.append(missing) }
    if pass.reader.unknownRecords > 0 {
      let count = pass.reader.unknownRecords
      warnings.append(
        "\(count == 1 ? "1 record is" : "\(grouped(count)) records are") of an unknown kind; skipped.")
    }
    var report = counted.sink.finish()
    report.warnings = warnings
    try collector.writeOrFail()
    report.add(tally.stories)
    self.report = report
    if Interrupt.isRequested {
      code = ExitStatus.interrupted
    } else if refused > 0 || pass.cut != nil {
      code = ExitStatus.damaged
    } else {
      let isWhole = !pass.reader.summary.isDamaged && pass.reader.summary.hasRead && pass.reader.missing == nil
      code = options.strict && !isWhole ? ExitStatus.damaged : .success
    }
  }
}

/// Reads the lines of a file of records twice: first for facts that later records add to earlier ones.
private struct RecordsPass: ~Copyable {
  var reader: RecordReader
  private let path: String
  /// A line that is too long; reading ended before it.
  private(set) var cut: FileFailure?

  init(_ path: String, _ limits: RecordReader.Limits) throws(FileFailure) {
    self.path = path
    reader = RecordReader(limits: limits)
    // Errors are reported in the second pass.
    var early = try RecordLines(path)
    while !Interrupt.isRequested, try early.nextIfReadable() { reader.scan(early.text) }
  }

  mutating func read(
    into sink: inout some RecordSink, refused: (borrowing RecordLines, RecordError) -> Void
  ) throws(FileFailure) {
    var lines = try RecordLines(path)
    while !Interrupt.isRequested, try lines.nextIfReadable() {
      do {
        try reader.read(lines.text, into: &sink)
      } catch {
        refused(lines, error)
      }
    }
    cut = lines.cut
  }
}
