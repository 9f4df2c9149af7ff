import ArgumentParser
import GatewaySimulator
import Payload
import ProviderAPI
import PushModel
import Records

/// The status and the reason that payloads with errors are refused with, as typed: `status=7`, `reason=PayloadEmpty`.
struct PayloadRefusal: ExpressibleByArgument, CustomStringConvertible {
  var status = BinaryStatus.processingError
  /// Over HTTP/2.
  var reason = ProviderReason.badRequestPayload
  let description: String
  /// Whether the text is one that is taken.
  private(set) var isValid = true

  init() { description = "status=\(status.rawValue)" }

  /// Takes any text: a word that is refused here would be an unexpected argument.
  init?(argument: String) {
    description = argument
    isValid = read(argument)
  }

  private mutating func read(_ argument: String) -> Bool {
    var keys: Set<Substring> = []
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, keys.insert(pair[0]).inserted else { return false }
      switch pair[0] {
      case "status":
        guard let number = UInt8(pair[1]) else { return false }
        status = BinaryStatus(rawValue: number)
        // Responses with these statuses accept the notification that they name.
        if status == .noError || status == .shutdown { return false }
      case "reason":
        reason = ProviderReason(rawValue: String(pair[1]))
        if reason.documentedStatus == nil { return false }
      default: return false
      }
    }
    return true
  }
}

/// How the simulator judges payloads.
struct ScrutinyOptions: ParsableArguments {
  @Option(
    defaultAsFlag: PayloadRefusal(), parsing: .scanningForValue,
    help: ArgumentHelp(
      "Refuse notifications whose payload or frame has an error (see 'apnscope lint') with status 1, over HTTP/2 with BadRequestPayload, or with others: --strict-payloads status=7,reason=PayloadEmpty. Apple documents neither.",
      valueName: "status=S,reason=R"))
  var strictPayloads: PayloadRefusal?

  @Flag(help: "Do not judge payloads: the ledger has neither their kinds nor the rules that they break.")
  var noLint = false

  @Option(
    help: ArgumentHelp(
      "Year that the gateway stands for when it judges payloads, 2009 to 2021. Default: only rules that hold in any year.",
      valueName: "year"))
  var era: Int?

  @Option(
    help: ArgumentHelp(
      "Number of distinct payloads whose judgement each thread keeps; further ones are judged again.",
      valueName: "count"))
  var maxJudgedPayloads = PayloadScrutiny().maximumKept

  func validate() throws {
    // The parser loses an attached value when an option follows.
    let attached = "--strict-payloads="
    for argument in CommandLine.arguments where argument.hasPrefix(attached) {
      guard argument.dropFirst(attached.count) != strictPayloads?.description ?? "" else { continue }
      throw ValidationError(
        "--strict-payloads takes status=S or reason=R as a separate word, e.g. --strict-payloads status=7.")
    }
    if let refusal = strictPayloads, !refusal.isValid {
      throw ValidationError(
        "--strict-payloads takes status=S,reason=R, a status that rejects and a documented reason, not '\(refusal)'.")
    }
    try JudgingRange.require(era: era)
    if noLint, strictPayloads != nil { throw ValidationError("--no-lint and --strict-payloads exclude each other.") }
    try JudgingRange.require(maxJudgedPayloads: maxJudgedPayloads)
  }

  func apply(to options: inout SimulatorOptions) {
    guard !noLint else { return }
    var scrutiny = PayloadScrutiny()
    scrutiny.era = era
    scrutiny.refusal = (strictPayloads?.status).map(Rejection.status)
    scrutiny.reason = strictPayloads?.reason
    scrutiny.maximumKept = maxJudgedPayloads
    options.payloads = scrutiny
  }

  /// How records judge payloads; `nil`: they do not.
  var ofRecords: PayloadJudging? {
    guard !noLint else { return nil }
    var judging = PayloadJudging()
    (judging.era, judging.maximumKept) = (era, maxJudgedPayloads)
    return judging
  }
}
