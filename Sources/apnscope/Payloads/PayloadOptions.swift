import ArgumentParser
import Payload
import Records

/// How the payloads of recordings are judged.
struct PayloadOptions: ParsableArguments {
  @Flag(help: "Do not judge payloads: write neither their kinds nor the rules that they break.")
  var noLint = false

  @Option(
    help: ArgumentHelp(
      "Number of distinct payloads whose judgement is kept; further ones are judged again.", valueName: "count"))
  var maxJudgedPayloads = PayloadJudging().maximumKept

  func validate() throws {
    try JudgingRange.require(maxJudgedPayloads: maxJudgedPayloads)
  }

  /// `nil`: not at all.
  func judging(_ context: PayloadContextOptions) -> PayloadJudging? {
    guard !noLint else { return nil }
    var judging = PayloadJudging()
    judging.era = context.era
    judging.topic = context.topic
    judging.maximumKept = maxJudgedPayloads
    return judging
  }
}

/// Facts about payloads that they do not contain.
struct PayloadContextOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Year of sending, 2009 to 2021. It decides the limit of payloads (256, 2,048 or 4,096 bytes) and which keys are known. Default: the recording's own time; without one, only rules that hold in any year.",
      valueName: "year"))
  var era: Int?

  @Option(
    help: ArgumentHelp(
      "Topic of payloads where no certificate names one. Topics that end in .voip or .complication, or begin with pass., web. or com.apple.mgmt., follow other rules.",
      valueName: "name"))
  var payloadTopic: String?

  @Flag(help: "The app is a Newsstand app; from 2013 on payloads do not show it.")
  var newsstand = false

  func validate() throws {
    try JudgingRange.require(era: era)
    if newsstand, let payloadTopic, PayloadTopic(name: payloadTopic) != .app {
      throw ValidationError("--newsstand is for an app, and the topic \(payloadTopic) is of another kind.")
    }
  }

  var topic: PayloadTopic { newsstand ? .newsstand : PayloadTopic(name: payloadTopic) }
}

/// The ranges of options about judging payloads, which recordings and the simulator share.
enum JudgingRange {
  /// Throws a usage error unless the year is one in which the binary protocol was used.
  static func require(era: Int?) throws {
    if let era, !(2009...2021).contains(era) {
      throw ValidationError("--era must be a year from 2009 to 2021 (got \(era)).")
    }
  }

  /// Throws a usage error unless the number of kept judgements fits memory.
  static func require(maxJudgedPayloads count: Int) throws {
    guard 1...1 << 24 ~= count else {
      throw ValidationError("--max-judged-payloads must be 1 to 16777216 (got \(count)).")
    }
  }
}
