import ArgumentParser
import GatewaySimulator
import PushModel

/// The status that payloads with errors are refused with, as typed: `status=7`.
struct PayloadRefusal: ExpressibleByArgument, CustomStringConvertible {
  var status = BinaryStatus.processingError

  init() {}

  init?(argument: String) {
    guard argument.hasPrefix("status="), let number = UInt8(argument.dropFirst("status=".count)) else { return nil }
    status = BinaryStatus(rawValue: number)
    // Responses with these statuses accept the notification that they name.
    if status == .noError || status == .shutdown { return nil }
  }

  var description: String { "status=\(status.rawValue)" }
}

/// How the simulator judges payloads.
struct ScrutinyOptions: ParsableArguments {
  @Option(
    defaultAsFlag: PayloadRefusal(), parsing: .scanningForValue,
    help: ArgumentHelp(
      "Refuse notifications whose payload or frame has an error (see 'apnscope lint') with status 1, or with another: --strict-payloads status=7.",
      valueName: "status=S"))
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
      throw ValidationError("--strict-payloads takes status=S as a separate word, e.g. --strict-payloads status=7.")
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
    scrutiny.maximumKept = maxJudgedPayloads
    options.payloads = scrutiny
  }
}
