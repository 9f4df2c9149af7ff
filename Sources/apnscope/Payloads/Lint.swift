import ArgumentParser
import Bytes
import CommandFiles
import Payload
import Records

struct Lint: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case text, json
  }

  static let configuration = CommandConfiguration(
    abstract: "Judge payloads: what is wrong with them, and where.",
    discussion: """
      Reads one payload, or one on each line (JSON Lines, also records of 'apnscope decode', whose notifications are \
      judged with their frames), and lists every rule that each breaks, with line and column. Errors: the gateway or the \
      device refuses or ignores the payload. Warnings: the user sees something other than intended. Advice: it works, but \
      costs or risks something. The line break at the end of a file is no part of its payload.

      Options supply what a payload does not contain: --era, --payload-topic, the frame with --command and --priority, and \
      the app's texts with --strings and --language, to find missing keys and wrong numbers of arguments.

      Examples:
        apnscope lint payload.json
        printf '{"aps":{"alert":"hi",}}' | apnscope lint -
        apnscope lint --command 2 --priority 10 --era 2015 payload.json
        apnscope lint --strings App/Resources --language ja payloads.jsonl
        apnscope lint Payloads/*.json --strict
        apnscope decode capture.pcap | apnscope lint -

      Exit codes: 0 no error; 1 a payload with an error, with --strict also one with a warning; 64 usage; 65 a file that \
      cannot be used; 66 cannot open a file; 74 cannot read or write. Other files are judged first.
      """)

  @Argument(
    help: ArgumentHelp("Payloads to judge; - is standard input.", valueName: "file"), completion: .file())
  var files: [String]

  @Option(help: "text (a line for each finding) or json (a line with an object for each payload).")
  var format = Format.text

  @Flag(help: "Exit with 1 when a payload breaks a rule that is a warning, too.")
  var strict = false

  @OptionGroup(title: "What is read") var reading: PayloadInputOptions
  @OptionGroup(title: "Context of payloads") var context: PayloadContextOptions

  @Option(help: ArgumentHelp("Command that the payloads are sent with: 0, 1 or 2.", valueName: "number"))
  var command: UInt8?

  @Option(help: ArgumentHelp("Priority item of command 2. Default: none.", valueName: "number"))
  var priority: UInt8?

  @OptionGroup(title: "The app") var app: AppResourceOptions

  func validate() throws {
    if let command, command > 2 { throw ValidationError("--command must be 0, 1 or 2 (got \(command)).") }
    if priority != nil, command != 2 { throw ValidationError("--priority is an item of command 2: add --command 2.") }
  }

  func run() throws {
    Interrupt.watch()
    let strings = try app.table()
    let output = try TextOutput()
    var judge = PayloadJudge()
    var report = LintReport(namesFiles: files.count > 1)
    var failure: FileFailure?
    for file in files where !Interrupt.isRequested {
      do {
        try read(file, &judge, &report, output, strings)
      } catch let error as FileFailure {
        // With one file, its error is the outcome; with several, the other files are still judged.
        if let failure { complain("\(failure)") }
        failure = error
      }
    }
    if let failure { throw failure }
    if format == .text { output.say(report.summary) }
    try output.check()
    if Interrupt.isRequested { throw ExitStatus.interrupted }
    if report.hasErrors || strict && report.hasWarnings { throw ExitStatus.faultFound }
  }

  private func read(
    _ file: String, _ judge: inout PayloadJudge, _ report: inout LintReport, _ output: TextOutput,
    _ strings: [String: String]?
  ) throws {
    let input = try PayloadInput(file, reading)
    report.name = input.name
    try input.eachItem(topic: context.topic) { item in
      var environment = PayloadEnvironment(
        era: context.era ?? item.frame?.sentAt.flatMap { SendingYear.around(second: $0).year },
        topic: item.topic ?? context.topic,
        frame: item.frame ?? command.map { PushFrame(command: $0, priority: priority) }, strings: strings)
      environment.longestPayload = item.longestPayload
      let judgement = judge.judge(item.payload.rawBytes, in: environment, findsPlaces: true)
      switch format {
      case .text: for line in report.lines(judgement, item) { output.say(line) }
      case .json: output.say(report.object(judgement, item))
      }
      return !Interrupt.isRequested
    }
  }
}

/// The findings about payloads, as text and as JSON, and their sum.
struct LintReport {
  /// The name in messages of the file that is read.
  var name = ""
  /// There are several files, so each payload is shown with its file.
  let namesFiles: Bool
  private var payloads = 0
  private var kinds: [PayloadKind: Int] = [:]
  private var severities: [PayloadRule.Severity: Int] = [:]

  init(namesFiles: Bool) { self.namesFiles = namesFiles }

  var hasErrors: Bool { severities[.error] != nil }
  var hasWarnings: Bool { severities[.warning] != nil }

  private mutating func count(_ judgement: PayloadJudgement) {
    payloads += 1
    kinds[judgement.kind, default: 0] += 1
    for finding in judgement.findings { severities[finding.rule.severity, default: 0] += 1 }
  }

  /// Line and column in the file; of a payload out of a record, in the payload.
  private func position(_ finding: PayloadFinding, _ item: PayloadInput.Item) -> PayloadPosition? {
    finding.offset.map { PayloadPosition(offset: $0, in: item.payload.rawBytes) }
  }

  mutating func lines(_ judgement: PayloadJudgement, _ item: PayloadInput.Item) -> [String] {
    count(judgement)
    let name = ControlCharacters.escaped(name)
    return judgement.findings.map { finding in
      let position = position(finding, item)
      var place = name
      if let line = item.line {
        place += ":\(line)"
        if let position {
          place += item.isRecorded ? " (payload \(position.line):\(position.column))" : ":\(position.column)"
        }
      } else if let position {
        place += ":\(position.line):\(position.column)"
      }
      return
        "\(place): \(finding.rule.severity.rawValue) \(finding.rule.code): \(ControlCharacters.escaped(finding.message))"
    }
  }

  /// The sum of all findings, in a sentence.
  var summary: String {
    func some(_ count: Int, _ one: String) -> String { "\(count) \(one)\(count == 1 ? "" : "s")" }
    var found: [String] = []
    if let count = severities[.error] { found.append(some(count, "error")) }
    if let count = severities[.warning] { found.append(some(count, "warning")) }
    if let count = severities[.advice] { found.append("\(count) of advice") }
    let kinds = kinds.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
      .map { payloads == 1 ? $0.key.rawValue : "\($0.value) \($0.key.rawValue)" }
    let what = kinds.isEmpty ? "" : " (\(kinds.joined(separator: ", ")))"
    return "\(some(payloads, "payload"))\(what): \(found.isEmpty ? "clean" : found.joined(separator: ", "))"
  }

  mutating func object(_ judgement: PayloadJudgement, _ item: PayloadInput.Item) -> String {
    count(judgement)
    var writer = ByteWriter(capacity: 512)
    writer.write("{")
    if namesFiles {
      writer.write("\"file\":")
      writer.write(jsonString: name)
      writer.write(",")
    }
    if let line = item.line {
      writer.write("\"line\":")
      writer.write(decimal: line)
      writer.write(",")
    }
    writer.write("\"payload_length\":")
    writer.write(decimal: item.payload.count)
    writer.write(",\"kind\":")
    writer.write(jsonString: judgement.kind.rawValue)
    writer.write(",\"lint\":[")
    for (index, rule) in judgement.rules.enumerated() {
      if index > 0 { writer.write(",") }
      writer.write(jsonString: rule.code)
    }
    writer.write("],\"findings\":[")
    for (index, finding) in judgement.findings.enumerated() {
      if index > 0 { writer.write(",") }
      write(finding, item, &writer)
    }
    writer.write("]}")
    return String(decoding: Array(copying: writer.bytes), as: UTF8.self)
  }

  private func write(_ finding: PayloadFinding, _ item: PayloadInput.Item, _ writer: inout ByteWriter) {
    writer.write("{\"code\":")
    writer.write(jsonString: finding.rule.code)
    writer.write(",\"severity\":")
    writer.write(jsonString: finding.rule.severity.rawValue)
    if let offset = finding.offset, let position = position(finding, item) {
      writer.write(",\"offset\":")
      writer.write(decimal: offset)
      writer.write(",\"line\":")
      writer.write(decimal: position.line)
      writer.write(",\"column\":")
      writer.write(decimal: position.column)
    }
    writer.write(",\"message\":")
    writer.write(jsonString: finding.message)
    writer.write("}")
  }
}
