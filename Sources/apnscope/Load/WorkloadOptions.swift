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
    completion: .words { ["0", "1", "2"] }, transform: MixArgument.parse)
  var command: MixArgument?

  @Option(
    help: ArgumentHelp("Number of different device tokens. Default: 1M.", valueName: "count"), transform: Count.parse)
  var tokens: Count?

  @Option(
    help: ArgumentHelp("Length of a device token. Default: 32.", valueName: "bytes"), transform: ByteCount.parse)
  var tokenLength: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Send to the tokens of a file instead, in their order and from the first again: one a line, in hexadecimal, of any lengths; what follows a # is a comment; - for standard input. Up to 10000000 tokens and 1GiB.",
      valueName: "file"), completion: .file())
  var tokenFile: String?

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
      "Payloads from a template instead: {index}, {random:N} and {time} stand for the notification's number, N letters, and the start of the run; {due_ns} and {written_ns} for when it was due and when it is written, in UNIX nanoseconds; the rest is sent unchanged.",
      valueName: "text"))
  var payloadTemplate: String?

  @Flag(
    help:
      "Payloads that tell when they were due and written, so that 'apnscope devices' measures the latency from there. Short for --payload-template with a member \"apnscope\": see Documentation/devices.md."
  )
  var stamp = false

  @Option(
    help: ArgumentHelp(
      "Realistic payloads of these kinds: \(Self.kinds.joined(separator: ", ")); or a mix, e.g. alert=8,background=2. Alerts are plain and localized, in several languages; silent pushes have priority 5.",
      valueName: "mix"), completion: .words { Self.kinds }, transform: MixArgument.parse)
  var payloadKind: MixArgument?

  @Option(
    help: ArgumentHelp(
      "Payloads from a file instead, sent as they are: a line is a payload, or an entry such as {\"payload\": {…}, \"weight\": 3}, whose payload is sent three times as often as others; - for standard input. An entry's \"topic\" is that of the identity whose connections it goes on. Silent pushes have priority 5. Up to 100000 payloads and 64MiB.",
      valueName: "payloads.jsonl"), completion: .file(extensions: ["jsonl"]))
  var payloadFile: String?

  @Option(
    help: ArgumentHelp("Priorities: 10, 5 or none, or a mix, e.g. 10=9,5=1. Default: 10.", valueName: "mix"),
    completion: .words { ["10", "5", "none"] }, transform: MixArgument.parse)
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
      valueName: "shares"), completion: .words { Self.faultWords }, transform: FaultsArgument.parse)
  var faults: FaultsArgument?

  @Option(
    help: ArgumentHelp(
      "Send one part of the stream, so that machines share a load: 2/4 is every 4th notification, from the 2nd. auto takes the part from Slurm, Open MPI, PMI or PMIx; auto/N from engines that do not tell the number of parts, as a Kubernetes job. Rates and counts are those of this part, unless --of-whole is given. Up to 1000000 parts.",
      valueName: "part"), transform: SegmentArgument.parse)
  var segment: SegmentArgument?

  /// The options that describe made notifications.
  static let described = [
    "seed", "command", "tokens", "token-length", "token-file", "payload", "payload-from", "payload-template",
    "stamp", "payload-kind", "payload-file", "priority", "expiration", "faults",
  ]

  /// The names of the workload options that the user set.
  var given: [String] {
    let areGiven = [
      seed != nil, command != nil, tokens != nil, tokenLength != nil, tokenFile != nil, payload != nil,
      payloadFrom != nil, payloadTemplate != nil, stamp, payloadKind != nil, payloadFile != nil, priority != nil,
      expiration != nil, faults != nil,
    ]
    return zip(Self.described, areGiven).filter(\.1).map(\.0)
  }

  /// Options of which one excludes the others, by the option that decides: of a plan file the others are dropped then.
  static let alternatives = [
    ("payload", ["payload-from", "payload-template", "stamp", "payload-kind", "payload-file"]),
    ("payload-from", ["payload-template", "stamp", "payload-kind", "payload-file"]),
    ("payload-template", ["stamp", "payload-kind", "payload-file"]), ("stamp", ["payload-kind", "payload-file"]),
    ("payload-kind", ["payload-file"]),
    ("token-file", ["tokens", "token-length"]),
  ]

  /// What `--stamp` is short for.
  private static let stamped =
    #"{"aps":{"alert":"{random:40}"},"apnscope":{"due_ns":{due_ns},"written_ns":{written_ns}}}"#

  /// The files that are read.
  var files: [String] { [payloadFrom, tokenFile, payloadFile].compactMap { $0 } }

  func validate() throws {
    let given = Set(given)
    for (one, others) in Self.alternatives where given.contains(one) {
      guard let other = others.first(where: given.contains) else { continue }
      throw ValidationError("--\(one) and --\(other) exclude each other\(Self.reason(one, other)).")
    }
    if tokenFile == "-", let other = [payloadFrom, payloadFile].firstIndex(of: "-") {
      throw ValidationError(
        "--token-file and \(other == 0 ? "--payload-from" : "--payload-file") exclude each other as -: standard input is one file."
      )
    }
  }

  private static func reason(_ one: String, _ other: String) -> String {
    if one == "token-file" { return ": the file has the tokens" }
    return other == "payload-file" ? ": the payloads of a file are sent as they are" : ""
  }

  /// Reads the files of tokens and payloads, and the one that sizes come from.
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
    if let tokenFile { plan.workload.tokenList = try TokenList(contentsOf: tokenFile) }
    if let payloadFile {
      plan.workload.payload = .listed(try PayloadList(contentsOf: payloadFile, for: plan.workload.commands))
    }
    if let payloadFrom, let mix = try PayloadSizes(contentsOf: payloadFrom).mix { plan.workload.payload = .sizes(mix) }
    if let template = stamp ? Self.stamped : payloadTemplate { plan.workload.payload = .template(template) }
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
    let found = try foundSegment()
    (plan.workload.segment, plan.workload.segments) = (found.number - 1, found.count)
  }

  /// The segment, and where it is from.
  func foundSegment() throws -> EngineSegment {
    try segment?.found() ?? EngineSegment(number: 1, count: 1, source: "")
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
  /// Each with what is behind it: a share, or a rule and its share.
  private static var faultWords: [String] {
    faultNames.map { $0 + "=" } + Workload.faultyPayloadCodes.map { "payload=\($0):" }
  }

  private func payloadShares(_ payloads: [(code: String, share: Double)]) throws -> [String: Double] {
    var shares: [String: Double] = [:]
    for (code, share) in payloads {
      guard Workload.faultyPayloadCodes.contains(code) else {
        throw ValidationError(
          "--faults: unknown rule '\(code)', or not one that a single notification breaks. \(hint(code, of: Workload.faultyPayloadCodes))"
        )
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
        throw ValidationError("--faults: unknown fault '\(name)'. \(hint(name, of: Self.faultNames))")
      }
      guard let share else {
        throw ValidationError("--faults takes the share of notifications with the fault, e.g. \(name)=1e-4.")
      }
      shares[fault] = share
    }
    return shares
  }
}
