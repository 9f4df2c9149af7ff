import Analysis
import ArgumentParser
import BinaryProtocol
import Bytes
import CommandFiles
import Measurement
import Pipeline
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
  /// Whether records are missing, by the counts of others; the report says which.
  let isIncomplete: Bool

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
    isIncomplete = false
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
    var pipeline = RecordsPipeline(path) { Interrupt.isRequested }
    pipeline.limits.connections = limits.maxConnections
    pipeline.limits.remembered = traceLimits.inspection.remembered
    pipeline.limits.fateRanges = limits.maxFateRanges
    pipeline.maximumRanges = limits.maxFateRanges
    (pipeline.selection, pipeline.redaction) = (selection, redaction)
    let (empty, collector, tally) = TraceOptions.sinks(traceLimits, limits, selection)
    var left = options.maxComplaints
    var (inspection, reading) = try pipeline.read(into: empty) { lines, error in
      if left > 0 { complain("\(lines.failure(error))") }
      left -= 1
    }
    try reading.report(path, maximumComplaints: options.maxComplaints)
    var report = inspection.finish()
    report.warnings = reading.warnings
    try collector.writeOrFail()
    report.add(tally.stories)
    self.report = report
    code = reading.code(strict: options.strict)
    isIncomplete = reading.missing != nil
  }
}

extension RecordsPipeline.Outcome {
  /// Reports what could not be read; throws an exit code if nothing could.
  fileprivate func report(_ path: String, maximumComplaints: Int) throws {
    if let cut { complain("\(cut); the rest is not read") }
    if refusedLines > maximumComplaints {
      complain("\(path): \(grouped(refusedLines - maximumComplaints)) more lines cannot be read (--max-complaints)")
    }
    guard records > 0 else {
      complain("\(path): contains no readable record of 'apnscope decode'")
      throw ExitStatus.damaged
    }
    if isSelectionCut { complain("some selected records are missing: the limit of --max-fate-ranges is reached") }
    if lacksFates { complain("\(path): contains no fates; those of selected notifications are unknown") }
  }

  fileprivate var warnings: [String] {
    var warnings: [String] = []
    if refusedLines > 0 {
      let lines = refusedLines == 1 ? "1 line" : "\(grouped(refusedLines)) lines"
      warnings.append("\(lines) of the records could not be read; skipped.")
    }
    if cut != nil { warnings.append("The records end with a line that is too long; the rest was not read.") }
    if let missing { warnings.append(missing) }
    if unknownRecords > 0 {
      let records = unknownRecords == 1 ? "1 record is" : "\(grouped(unknownRecords)) records are"
      warnings.append("\(records) of an unknown kind; skipped.")
    }
    return warnings
  }

  fileprivate func code(strict: Bool) -> ExitCode {
    if Interrupt.isRequested { return ExitStatus.interrupted }
    if refusedLines > 0 || cut != nil { return ExitStatus.damaged }
    let isWhole = !summary.isDamaged && summary.hasRead && missing == nil
    return strict && !isWhole ? ExitStatus.damaged : .success
  }
}
