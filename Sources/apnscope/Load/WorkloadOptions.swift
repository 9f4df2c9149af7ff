import ArgumentParser
import LoadTest
import Payload

struct WorkloadOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Seed of the stream; the same seed gives the same stream, but for times that count from the start of the run. Default: 1.",
      valueName: "number"))
  var seed: UInt64?

  @Option(
    help: ArgumentHelp("Commands: 0, 1 or 2, or a mix, e.g. 0=1,2=9. Default: 2.", valueName: "mix"),
    transform: MixArgument.parse)
  var command: MixArgument?

  @Option(
    help: ArgumentHelp("Number of different device tokens. Default: 1M.", valueName: "count"), transform: Count.parse)
  var tokens: Count?

  @Option(
    help: ArgumentHelp("Length of a device token. Default: 32.", valueName: "bytes"), transform: ByteCount.parse)
  var tokenLength: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Sizes of payloads: a size, e.g. 200 or 2KB, a range, e.g. 100..2KB, or a mix, e.g. 100..200=9,2000=1. Default: 100..200.",
      valueName: "bytes"), transform: MixArgument.parse)
  var payload: MixArgument?

  @Option(
    help: ArgumentHelp(
      "Draw payload sizes from those in records of 'apnscope decode'; - for standard input.",
      valueName: "records.jsonl"), completion: .file(extensions: ["jsonl"]))
  var payloadFrom: String?

  @Option(
    help: ArgumentHelp(
      "Payloads from a template instead: {index}, {random:N} and {time} stand for the notification's number, N letters, and the start of the run; the rest is sent unchanged.",
      valueName: "text"))
  var payloadTemplate: String?

  @Option(
    help: ArgumentHelp(
      "Realistic payloads of these kinds: \(Self.kinds.joined(separator: ", ")); or a mix, e.g. alert=8,background=2. Alerts are plain and localized, in several languages; silent pushes have priority 5.",
      valueName: "mix"), transform: MixArgument.parse)
  var payloadKind: MixArgument?

  @Option(
    help: ArgumentHelp("Priorities: 10, 5 or none, or a mix, e.g. 10=9,5=1. Default: 10.", valueName: "mix"),
    transform: MixArgument.parse)
  var priority: MixArgument?

  @Option(
    help: ArgumentHelp(
      "Expirations: UNIX seconds, +1h for an hour after the start of the run, or none, or a mix. Default: +30d.",
      valueName: "mix"),
    transform: MixArgument.parse)
  var expiration: MixArgument?

  @Option(
    help: ArgumentHelp(
      "Shares of notifications with a fault: \(Self.faultNames.joined(separator: ", ")), as missing-token=1e-4,oversize=1%; and with a payload or frame that breaks a rule of 'apnscope lint', as payload=json_trailing_comma:1%.",
      valueName: "shares"), transform: FaultsArgument.parse)
  var faults: FaultsArgument?

  @Option(
    help: ArgumentHelp(
      "Send one part of the stream, so that machines share a load: 2/4 is every 4th notification, from the 2nd. Rates and counts are those of this part. Up to 1000000 parts.",
      valueName: "part"), transform: SegmentArgument.parse)
  var segment: SegmentArgument?

  /// The options that describe made notifications.
  static let described = [
    "seed", "command", "tokens", "token-length", "payload", "payload-from", "payload-template", "payload-kind",
    "priority", "expiration", "faults",
  ]

  /// The names of the workload options that the user set.
  var given: [String] {
    let areGiven = [
      seed != nil, command != nil, tokens != nil, tokenLength != nil, payload != nil, payloadFrom != nil,
      payloadTemplate != nil, payloadKind != nil, priority != nil, expiration != nil, faults != nil,
    ]
    return zip(Self.described, areGiven).filter(\.1).map(\.0)
  }

  func validate() throws {
    let given = [
      payload.map { _ in "--payload" }, payloadFrom.map { _ in "--payload-from" },
      payloadTemplate.map { _ in "--payload-template" }, payloadKind.map { _ in "--payload-kind" },
    ].compactMap { $0 }
    if given.count > 1 { throw ValidationError("\(given[0]) and \(given[1]) exclude each other.") }
  }

  /// Reads the file that payload sizes come from.
  func apply(to plan: inout LoadPlan) throws {
    if let seed { plan.workload.seed = seed }
    if let tokens { plan.workload.tokens = tokens.value }
    if let tokenLength { plan.workload.tokenLength = tokenLength.bytes }
    if let command {
      plan.workload.commands = try read(command, "command", "0, 1 or 2") { UInt8($0).flatMap { $0 <= 2 ? $0 : nil } }
    }
    if let payload {
      plan.workload.payload = .sizes(
        try read(payload, "payload", "sizes, e.g. 100, 2KB or 100..2KB") { ByteRange(argument: $0)?.bytes })
    }
    if let payloadFrom, let mix = try PayloadSizes(contentsOf: payloadFrom).mix { plan.workload.payload = .sizes(mix) }
    if let payloadTemplate { plan.workload.payload = .template(payloadTemplate) }
    if let payloadKind {
      let names = "kinds (\(Self.kinds.joined(separator: ", ")))"
      plan.workload.payload = .kinds(try read(payloadKind, "payload-kind", names) { PayloadKind(rawValue: $0) })
    }
    if let priority {
      plan.workload.priorities = try read(priority, "priority", "numbers from 0 to 255, or none") { text -> UInt8?? in
        text == "none" ? .some(nil) : UInt8(text).map { .some($0) }
      }
    }
    if let expiration {
      plan.workload.expirations = try read(
        expiration, "expiration", "UNIX seconds, +1h for an hour after the start of the run (up to +100d), or none",
        Self.expiration)
    }
    if let faults {
      plan.workload.faults = try shares(faults.faults)
      plan.workload.payloadFaults = try payloadShares(faults.payloads)
    }
    if let segment { (plan.workload.segment, plan.workload.segments) = (segment.number - 1, segment.count) }
  }

  private func read<Value>(
    _ argument: MixArgument, _ name: String, _ expected: String, _ read: (String) -> Value?
  ) throws -> WorkloadPlan.Mix<Value> {
    guard let mix = argument.mix(read) else { throw ValidationError("--\(name) takes \(expected), or a mix of them.") }
    return mix
  }

  private static func expiration(_ text: String) -> WorkloadPlan.Expiration?? {
    if text == "none" { return .some(nil) }
    guard text.hasPrefix("+") else { return UInt32(text).map { .some(.at($0)) } }
    let length = String(text.dropFirst())
    // Expirations are in seconds, so a number alone is one, too.
    guard let time = TimeSpan(argument: length) ?? TimeSpan(argument: length + "s") else { return nil }
    let (seconds, rest) = time.duration.components
    return rest == 0 ? .some(.after(seconds: UInt32(clamping: seconds))) : nil
  }

  private static let kinds = PayloadKind.allCases.map(\.rawValue)
  private static let faultNames = WorkloadPlan.Fault.allCases.map(\.rawValue)

  private func payloadShares(_ payloads: [(code: String, share: Double)]) throws -> [String: Double] {
    var shares: [String: Double] = [:]
    for (code, share) in payloads {
      guard Workload.faultyPayloadCodes.contains(code) else {
        let hint =
          nearest(code, of: Workload.faultyPayloadCodes).map { "Did you mean '\($0)'?" }
          ?? "Available: \(Workload.faultyPayloadCodes.joined(separator: ", "))."
        throw ValidationError("--faults: unknown rule '\(code)', or not one that a single notification breaks. \(hint)")
      }
      shares[code] = share
    }
    return shares
  }

  private func shares(_ parts: [(value: String, weight: Double?)]) throws -> [WorkloadPlan.Fault: Double] {
    var shares: [WorkloadPlan.Fault: Double] = [:]
    for (name, share) in parts {
      guard let fault = WorkloadPlan.Fault(rawValue: name), fault != .payload else {
        if name == "payload" {
          throw ValidationError("--faults: payload takes a rule and its share, as payload=json_trailing_comma:1%.")
        }
        let names = Self.faultNames
        let hint =
          nearest(name, of: names).map { "Did you mean '\($0)'?" } ?? "Available: \(names.joined(separator: ", "))."
        throw ValidationError("--faults: unknown fault '\(name)'. \(hint)")
      }
      guard let share else {
        throw ValidationError("--faults takes the share of notifications with the fault, e.g. \(name)=1e-4.")
      }
      shares[fault] = share
    }
    return shares
  }
}
