import APNSProtocol
import ArgumentParser
import GatewaySimulator

enum MalformedAnswer: String, CaseIterable, ExpressibleByArgument { case respond, close }

struct RuleOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Longest payload; a longer one gets status 7. 256 until 2014, then 2048, 4096 for VoIP certificates.",
      valueName: "bytes"))
  var payloadLimit = 2_048

  @Option(
    help: ArgumentHelp(
      "Length of device tokens, or a range as 32..100; others get status 5.", valueName: "bytes"))
  var tokenLength = NumberRange(32...32)

  @Flag(
    help:
      "Accept priority 10 (which commands 0 and 1 have) for a payload with only content-available. It gets status 1 otherwise."
  )
  var anyPriority = false

  @Option(
    help:
      "What is answered to bytes that are no frame: respond (status 128, as documented in 2018) or close (as seen before)."
  )
  var malformed = MalformedAnswer.respond

  func validate() throws {
    guard (1...65_535).contains(payloadLimit) else {
      throw ValidationError("--payload-limit takes a number from 1 to 65535, not \(payloadLimit).")
    }
  }

  func apply(to options: inout SimulatorOptions) {
    options.rules.maximumPayloadLength = payloadLimit
    options.rules.tokenLengths = tokenLength.numbers
    options.rules.checksPriority = !anyPriority
    options.rules.answersMalformed = malformed == .respond
  }
}

extension Behavior.Response.Identifier: ExpressibleByArgument {}
extension Behavior.Response.Ending: ExpressibleByArgument {}

struct AnswerOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Refuse notifications that nothing is wrong with: every=N, probability=P, prefix=HEX (of the token), token=HEX, or tokens=FILE (hexadecimal, one a line), each with ,status=S (8 unless given). Repeatable; the first that applies decides.",
      valueName: "rule"))
  var reject: [RejectionSpecification] = []

  @Option(
    help: ArgumentHelp(
      "Wait before an error response, evenly drawn from a range as 100ms..800ms.", valueName: "time"))
  var responseDelay: TimeSpanRange?

  @Option(
    help: ArgumentHelp(
      "Send an error response in pieces of these lengths, as 1,2,3; the last takes the rest.", valueName: "lengths"))
  var responsePieces: String?

  @Option(help: ArgumentHelp("Wait between the pieces.", valueName: "time"))
  var responsePieceDelay = TimeSpan(.milliseconds(20))

  @Option(help: "Which identifier an error response carries: right, wrong, or zero (unknown).")
  var responseIdentifier = Behavior.Response.Identifier.right

  @Option(
    help:
      "How a connection is ended: response (then close), fin (without a response), or rst (without, and what is under way is destroyed)."
  )
  var responseEnding = Behavior.Response.Ending.response

  @Option(
    help: ArgumentHelp("Shut a connection down (status 10) after so many accepted notifications.", valueName: "count"))
  var shutdownAfter: Int?

  @Option(help: ArgumentHelp("Where all chance comes from.", valueName: "number"))
  var seed: UInt64 = 1

  func validate() throws {
    if let shutdownAfter, shutdownAfter < 0 {
      throw ValidationError("--shutdown-after takes a number from 0, not \(shutdownAfter).")
    }
    _ = try pieces()
  }

  private func pieces() throws -> [Int] {
    guard let responsePieces else { return [] }
    let lengths = responsePieces.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    let valid = lengths.compactMap { $0 }.filter { (1...ErrorResponse.length).contains($0) }
    guard valid.count == lengths.count else {
      throw ValidationError("--response-pieces takes lengths from 1 to 6 as 1,2,3, not '\(responsePieces)'.")
    }
    return valid
  }

  func apply(to options: inout SimulatorOptions) throws {
    do {
      options.behavior.rejections = try reject.map { try $0.rejection() }
    } catch let error as DevicePopulationError {
      complain(error.description)
      throw ExitStatus.code(for: error)
    }
    if let responseDelay { options.behavior.response.delay = responseDelay.durations }
    options.behavior.response.pieces = try pieces()
    options.behavior.response.pieceDelay = responsePieceDelay.duration
    options.behavior.response.identifier = responseIdentifier
    options.behavior.response.ending = responseEnding
    options.behavior.shutdownAfter = shutdownAfter
    options.behavior.seed = seed
  }
}
