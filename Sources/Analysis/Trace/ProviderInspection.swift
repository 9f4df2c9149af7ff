import Bytes
import Measurement
import Records

/// Follows what providers send to a gateway, for a verdict on them.
///
/// ```swift
/// let inspection = ProviderInspection(options)
/// inspection.trace.receive(record)
/// // …
/// let verdict = try inspection.finish()
/// ```
package final class ProviderInspection {
  /// Limits, and what is taken for granted.
  package struct Options: Sendable {
    /// Error responses and connections that are listed: this many of each.
    package var listed = 1_000
    /// How notifications are followed. Memory for these grows with the run, and goes to files above its limit.
    package var stories = StoryCollector.Options()
    /// The beginnings of tokens that are counted separately, in lower-case hexadecimal.
    package var tokens: [String] = []
    package init() {}
  }

  /// Receives the records of the gateway.
  package let trace: SharedSink<TraceInspection>
  private let collector: StoryCollector
  private let tally: StoryTally

  package init(_ options: Options) {
    var limits = TraceInspection.Limits()
    limits.inspection.listed = options.listed
    limits.inspection.judging = nil
    limits.inspection.resendWithin = options.stories.resendWithin
    limits.timelines = 0
    tally = StoryTally(listed: options.listed, countingTokens: options.tokens)
    collector = StoryCollector(options.stories, into: tally)
    trace = SharedSink(TraceInspection(limits: limits, stories: collector))
  }

  /// The verdict. To be called once, after the last record.
  ///
  /// - Throws: when a temporary file cannot be used.
  package func finish() throws(UnnamedFile.Failure) -> ProviderVerdict {
    var report = trace.sink.finish(withCounts: true)
    try collector.write()
    report.add(tally.stories)
    var verdict = ProviderVerdict(report)
    verdict.tokens = tally.tokens
    return verdict
  }
}
