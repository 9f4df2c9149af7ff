import ArgumentParser
import Records
import TLSDecryption

/// The first of two passes over the same inputs, for facts that are known only at the ends of connections: fates, and
/// what a selection needs.
struct FirstPass {
  /// How the second pass writes fates.
  let notation: FateNotation
  /// The facts for the selection of the second pass.
  let facts: RecordingFacts
  /// The secrets named by the options, for the second pass; `nil` if there is only one pass.
  let secrets: Secrets?
  /// Ctrl-C ended the copying of standard input; the copied part is read.
  let isCut: Bool
  private let summary: SummaryRecord?

  /// Reads the inputs of `decode`, if they can be read twice.
  ///
  /// - Parameters:
  ///   - isLive: an interface is read instead, in one pass.
  ///   - fates: `true`: standard input is first copied to a file; `false`: fates are not written.
  init(
    _ inputs: [String], isLive: Bool = false, _ options: DecodingOptions, _ selection: RecordSelection, fates: Bool?
  ) throws {
    if isLive {
      try Self.refuse(selection, fates: fates)
      notation = fates == false ? .omitted : .ranges
      (facts, secrets, summary, isCut) = (RecordingFacts(for: selection), nil, nil, false)
      return
    }
    isCut = try fates == true && RepeatableInput.require(inputs, for: "--fates")
    let isRepeatable = inputs.allSatisfy(RepeatableInput.isRepeatable)
    if selection.needsFacts && !isRepeatable {
      throw ValidationError(
        "--fate, --status and --topic depend on facts that are known only when connections have ended; add --fates, which waits for the end of standard input."
      )
    }
    let secrets = try options.secrets.read(options.limits)
    self.secrets = secrets
    guard isRepeatable, fates != false || selection.needsFacts else {
      notation = fates == false ? .omitted : .ranges
      (facts, summary) = (RecordingFacts(for: selection), nil)
      return
    }
    (facts, summary) = try Self.read(inputs, options, selection, secrets)
    notation = fates == false ? .omitted : .each(facts.fates)
  }

  /// Facts that come with the end of a recording are not known of an interface.
  private static func refuse(_ selection: RecordSelection, fates: Bool?) throws {
    if fates == true { throw ValidationError("--fates waits for the end of the input, and --interface has none.") }
    if selection.needsFacts {
      throw ValidationError(
        "--fate, --status and --topic depend on facts that are known only when connections have ended; --interface cannot be read twice."
      )
    }
  }

  /// Reads the inputs if the selection needs it; standard input is then first copied to a file.
  init(
    _ inputs: [String], isLive: Bool = false, _ options: DecodingOptions, _ selection: RecordSelection
  ) throws {
    if isLive {
      try Self.refuse(selection, fates: nil)
      notation = .omitted
      (facts, secrets, summary, isCut) = (RecordingFacts(for: selection), nil, nil, false)
      return
    }
    isCut = try selection.needsFacts && RepeatableInput.require(inputs, for: "The selection")
    let secrets = try options.secrets.read(options.limits)
    self.secrets = secrets
    notation = .omitted
    if selection.needsFacts {
      (facts, summary) = try Self.read(inputs, options, selection, secrets)
    } else {
      (facts, summary) = (RecordingFacts(for: selection), nil)
    }
  }

  private static func read(
    _ inputs: [String], _ options: DecodingOptions, _ selection: RecordSelection, _ secrets: Secrets
  ) throws -> (RecordingFacts, SummaryRecord) {
    let facts = SharedSink(RecordingFacts(for: selection, maximumRanges: options.limits.maxFateRanges))
    let reading = try RecordingReader(inputs, options, into: facts, secrets: secrets, isQuiet: true)
    return (facts.sink, reading.summary)
  }

  /// Warns about reached limits and changed inputs.
  ///
  /// - Parameter isCut: the second pass reached a limit.
  func complain(after second: SummaryRecord, isCut: Bool) {
    if case .each(let fates) = notation, fates.connectionsNotKept > 0 {
      let (which, whose) =
        fates.connectionsNotKept == 1
        ? ("1 connection", "its") : ("\(fates.connectionsNotKept) connections", "their")
      apnscope.complain(
        "the fates of \(which) are in 'fate' records, not in those of \(whose) notifications (--max-fate-ranges)")
    }
    if isCut || facts.isCut {
      apnscope.complain("some selected records are missing: the limit of --max-fate-ranges is reached")
    }
    guard let summary, !Interrupt.isRequested else { return }
    if summary.packets > second.packets || summary.notifications > second.notifications { return }
    if summary.packets != second.packets || summary.notifications != second.notifications {
      apnscope.complain("an input has grown while it was read; where fates differ, those in 'fate' records are valid")
    }
  }
}
