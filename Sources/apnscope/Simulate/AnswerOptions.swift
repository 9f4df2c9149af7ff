import ArgumentParser
import BinaryProtocol
import GatewaySimulator

extension Behavior.Response.Identifier: ExpressibleByArgument {}
extension Behavior.Response.Ending: ExpressibleByArgument {}

struct AnswerOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Reject valid notifications: every=N, probability=P, uninstalled=P (of those to uninstalled apps), prefix=HEX (whole bytes of the token), token=HEX, or tokens=FILE (hexadecimal, one a line), each with ,status=S (8 unless given), over HTTP/2 ,reason=R (BadDeviceToken unless given; ,http=N for another status than its own), ,topic=T (of no other topic) and ,times=N (the next N, and no further ones). Repeatable; the first that applies decides.",
      valueName: "rule"), transform: RejectionSpecification.parse)
  var reject: [RejectionSpecification] = []

  @Option(
    help: ArgumentHelp(
      "Delay of error responses, e.g. 200ms, or drawn from a range, e.g. 100ms..800ms.", valueName: "time"),
    transform: TimeSpanRange.parse)
  var responseDelay: TimeSpanRange?

  @Option(
    help: ArgumentHelp(
      "Send an error response in pieces of these lengths, e.g. 1,2,3; the last piece has the rest.",
      valueName: "lengths"))
  var responsePieces: String?

  @Option(
    help: ArgumentHelp("Delay between the pieces.", valueName: "time", default: TimeSpan(.milliseconds(20))),
    transform: TimeSpan.parse)
  var responsePieceDelay = TimeSpan(.milliseconds(20))

  @Option(
    help: ArgumentHelp(
      "Identifier of error responses; zero simulates a gateway that did not read it.",
      valueName: "which"))
  var responseIdentifier = Behavior.Response.Identifier.right

  @Option(
    help: ArgumentHelp(
      "How the gateway ends a connection: with an error response and then the close, with just the close (fin), or with a reset (rst), which also destroys data in flight.",
      valueName: "how")
  )
  var responseEnding = Behavior.Response.Ending.response

  @Option(
    help: ArgumentHelp("Shut a connection down (status 10) after this many accepted notifications.", valueName: "count")
  )
  var shutdownAfter: Int?

  @Option(
    help: ArgumentHelp(
      "Seed of all random decisions. The same connections in the same order get the same decisions.",
      valueName: "number"))
  var seed: UInt64 = 1

  func validate() throws {
    if let shutdownAfter, shutdownAfter < 0 {
      throw ValidationError("--shutdown-after must be at least 0 (got \(shutdownAfter)).")
    }
    _ = try pieces()
  }

  private func pieces() throws -> [Int] {
    guard let responsePieces else { return [] }
    let lengths = responsePieces.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    let valid = lengths.compactMap { $0 }.filter { (1...ErrorResponse.length).contains($0) }
    guard valid.count == lengths.count else {
      throw ValidationError("--response-pieces takes lengths from 1 to 6, e.g. 1,2,3, not '\(responsePieces)'.")
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
