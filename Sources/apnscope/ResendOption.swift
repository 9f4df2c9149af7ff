import Analysis
import ArgumentParser

/// How long a recording has to continue after a discarded notification until this counts as lost if it is not resent.
struct ResendOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Time within which providers send again what was discarded, at least; longer when the recording shows that they take longer. What was discarded so shortly before its end, or after its beginning, is open and not lost.",
      valueName: "time"), transform: TimeSpan.parse)
  var resendWithin = TimeSpan(.nanoseconds(StoryCollector.Options().resendWithin))

  func validate() throws {
    if resendWithin.duration < .zero { throw ValidationError("--resend-within must be at least 0s.") }
  }

  var nanoseconds: Int64 { Int64((resendWithin.duration / .nanoseconds(1)).rounded()) }
}
