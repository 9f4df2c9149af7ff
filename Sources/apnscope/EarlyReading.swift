import ArgumentParser
import Dissection
import TLSDecryption

/// The first of two readings of the same inputs, for what is known of notifications when their connection has ended:
/// their fates, and what a selection asks for.
struct EarlyReading {
  /// How the records of the second reading tell fates.
  let notation: FateNotation
  /// What the second reading selects by.
  let facts: RecordingFacts
  /// What the options name, for the second reading.
  let secrets: Secrets
  /// Ctrl-C ended standard input while it was kept; what had come is read.
  let isCut: Bool
  private let summary: SummaryRecord?

  /// Reads the inputs for records, if they can be read twice.
  ///
  /// - Parameter fates: `true`: standard input is kept until it ends, so that it can; `false`: no record tells any.
  init(_ inputs: [String], _ options: DecodingOptions, _ selection: RecordSelection, fates: Bool?) throws {
    isCut = try fates == true && RepeatableInput.require(inputs, for: "--fates")
    let isRepeatable = inputs.allSatisfy(RepeatableInput.isRepeatable)
    if selection.needsFacts && !isRepeatable {
      throw ValidationError(
        "--fate, --status and --topic select by what is known when connections have ended; give --fates, which waits for the end of standard input."
      )
    }
    secrets = try options.secrets.read(options.limits)
    guard isRepeatable, fates != false || selection.needsFacts else {
      notation = fates == false ? .omitted : .ranges
      (facts, summary) = (RecordingFacts(for: selection), nil)
      return
    }
    (facts, summary) = try Self.read(inputs, options, selection, secrets)
    notation = fates == false ? .omitted : .each(facts.fates)
  }

  /// Reads the inputs if the selection needs it; standard input is kept until it ends then.
  init(_ inputs: [String], _ options: DecodingOptions, _ selection: RecordSelection) throws {
    isCut = try selection.needsFacts && RepeatableInput.require(inputs, for: "The selection")
    secrets = try options.secrets.read(options.limits)
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
    let facts = RecordingFacts(for: selection, maximumRanges: options.limits.maxFateRanges)
    let reading = try RecordingReader(inputs, options, into: facts, secrets: secrets, isQuiet: true)
    return (reading.sink, reading.summary)
  }

  /// Says where the records are not all that they should be.
  ///
  /// - Parameter isCut: the second reading could not remember all that it had to.
  func complain(after second: SummaryRecord, isCut: Bool) {
    if case .each(let fates) = notation, fates.connectionsNotKept > 0 {
      let (which, whose) =
        fates.connectionsNotKept == 1
        ? ("1 connection", "its") : ("\(fates.connectionsNotKept) connections", "their")
      apnscope.complain(
        "the fates of \(which) are in 'fate' records and not in \(whose) notifications' (--max-fate-ranges)")
    }
    if isCut || facts.isCut {
      apnscope.complain("more is selected than can be remembered, so that some of it is missing (--max-fate-ranges)")
    }
    guard let summary, !Interrupt.isRequested else { return }
    if summary.packets > second.packets || summary.notifications > second.notifications { return }
    if summary.packets != second.packets || summary.notifications != second.notifications {
      apnscope.complain("an input has grown while it was read; where fates differ, those in 'fate' records are right")
    }
  }
}
