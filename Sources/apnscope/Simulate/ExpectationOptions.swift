import ArgumentParser
import CommandFiles
import Measurement

struct ExpectationArgument {
  var expectation: Expectation

  /// For `@Option(transform:)`, which reports the error.
  @Sendable static func parse(_ text: String) throws -> ExpectationArgument {
    do {
      return ExpectationArgument(expectation: try Expectation(text))
    } catch {
      throw ValidationError(error.description)
    }
  }
}

struct ExpectationOptions: ParsableArguments {
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      """
      Exit with 99 unless this holds at the end, e.g. 'accepted>=1000', 'lost<=0', 'resend_p99<5s' or \
      'token=43bf,count=1' (accepted ones; sent and rejected are others); an unknown name lists all metrics. Times are of \
      discarded notifications (resend) and of error responses (reconnect), and 0 where there were none. Takes several \
      arguments; repeatable. Those of the verdict imply --verdict.
      """, valueName: "condition"), completion: .words { Expectation.names }, transform: ExpectationArgument.parse)
  var expect: [ExpectationArgument] = []

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      """
      End as soon as this holds, e.g. 'received>=1000'; with several, when all do. If the end comes before, the exit \
      status is 99. Not for what the verdict knows.
      """, valueName: "condition"), completion: .words { Expectation.names }, transform: ExpectationArgument.parse)
  var until: [ExpectationArgument] = []

  @Option(
    help: ArgumentHelp(
      "End when no notification has arrived for this time, after the first one.", valueName: "time"),
    transform: TimeSpan.parse)
  var untilIdle: TimeSpan?

  @Option(
    help: ArgumentHelp(
      """
      Write the lines with the ports to this file as soon as they accept connections; there is no such file before, nor \
      after the end.
      """, valueName: "file"), completion: .file())
  var readyFile: String?

  @Option(
    help: ArgumentHelp("Write the outcome of each --expect and --until to this file, as JUnit XML.", valueName: "file"),
    completion: .file(extensions: ["xml"]))
  var junit: String?

  func validate() throws {
    for argument in until where argument.expectation.needsVerdict {
      throw ValidationError("--until '\(argument.expectation.expression)': only the verdict at the end knows this.")
    }
    if let untilIdle, untilIdle.duration <= .zero { throw ValidationError("--until-idle must be more than 0s.") }
    if junit != nil, expect.isEmpty, until.isEmpty {
      throw ValidationError("--junit has the outcomes of --expect and --until, and there is none.")
    }
  }

  /// Whether the verdict on providers is needed.
  var needVerdict: Bool { expect.contains { $0.expectation.needsVerdict } }
  var tokens: [String] { expect.compactMap(\.expectation.token) }
  var all: [Expectation] { (expect + until).map(\.expectation) }
}
