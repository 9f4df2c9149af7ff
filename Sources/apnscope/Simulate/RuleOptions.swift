import ArgumentParser
import GatewaySimulator

enum MalformedAnswer: String, CaseIterable, ExpressibleByArgument { case respond, close }

struct RuleOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Longest payload; longer ones get status 7. APNs had 256 until 2014, then 2048, and 4096 for VoIP certificates.",
      valueName: "bytes", default: ByteCount(2_048)), transform: ByteCount.parse)
  var payloadLimit = ByteCount(2_048)

  @Option(
    help: ArgumentHelp(
      "Length of device tokens, or a range, e.g. 32..100; others get status 5.", valueName: "bytes",
      default: NumberRange(32...32)), transform: NumberRange.parse)
  var tokenLength = NumberRange(32...32)

  @Flag(
    help:
      "Accept priority 10 (implied by commands 0 and 1) for a payload with only content-available. Otherwise it gets status 1."
  )
  var anyPriority = false

  @Option(
    help: ArgumentHelp(
      "The answer to bytes that are not a frame, and to frames with bad items: a response (status 128, documented in 2018), or just the close (observed earlier).",
      valueName: "answer")
  )
  var malformed = MalformedAnswer.respond

  func validate() throws {
    guard (1...65_535).contains(payloadLimit.bytes) else {
      throw ValidationError("--payload-limit must be 1 to 65535 (got \(payloadLimit.bytes)).")
    }
  }

  func apply(to options: inout SimulatorOptions) {
    options.rules.push.maximumPayloadLength = payloadLimit.bytes
    options.rules.push.tokenLengths = tokenLength.numbers
    options.rules.push.checksPriority = !anyPriority
    options.rules.answersMalformed = malformed == .respond
  }
}
