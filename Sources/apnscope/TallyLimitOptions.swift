import Analysis
import ArgumentParser

/// The memory limits of an inspection or the report of a trace.
struct TallyLimitOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Connections, and error responses, to keep individually; further ones are only counted.",
      valueName: "count"))
  var maxListed = Inspection.Limits().listed

  @Option(
    help: ArgumentHelp(
      "Latest notifications to recognise repeats among; and discarded, resent, and repeated ones to track, so many of each.",
      valueName: "count"))
  var maxRemembered = Inspection.Limits().remembered

  func validate() throws {
    for (name, value) in [("max-listed", maxListed), ("max-remembered", maxRemembered)]
    where value < 0 || value > 1 << 24 {
      throw ValidationError("--\(name) must be 0 to 16777216 (got \(value)).")
    }
  }

  var limits: Inspection.Limits {
    var limits = Inspection.Limits()
    limits.listed = maxListed
    limits.history = max(1, maxRemembered)
    limits.remembered = maxRemembered
    return limits
  }
}
