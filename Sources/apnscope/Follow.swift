import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import InterfaceCapture
import Measurement
import Records
import Reporting

struct Follow: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case jsonl, csv, table
  }

  /// The types of records that are written.
  enum WrittenRecord: String, CaseIterable, ExpressibleByArgument {
    case story = "notification_story"
    case token
  }

  static let configuration = CommandConfiguration(
    abstract: "Tell the story of every notification: lost, recovered, accepted twice, or open.",
    discussion: """
      Writes one record for each distinct notification of a recording - one token, payload and topic, however often it \
      was sent and with whatever identifiers - with all of its sendings and what became of it over all of them. A record \
      for each token follows, and a summary. Fates are those of 'decode'.

      The outcomes, in the order in which they are decided:
        accepted_twice  two or more sendings were accepted: \(StoryOutcome.acceptedTwice.meaning)
        expired         one was accepted, written after its expiration
        recovered       one was accepted, after others that were not
        accepted        the first one was accepted, no other was
        open            the recording does not prove what became of it; open_reason says why
        rejected        none was accepted, and one was rejected or has no token
        lost            all of them were discarded

      Rejected, recovered, expired and lost are said only when nothing that the recording does not show could hold \
      another sending of the same provider: no gap, no connection that was not decrypted or is of an unknown protocol, no \
      packet that the capture dropped, no beginning or end of a connection that was not captured. For lost the recording \
      also has to go on, before and after, for the time within which providers send again (--resend-within, or the longest \
      that it shows). A notification whose sending would be on another connection later than that, or on a connection of \
      which no packet was recorded, cannot be told from a lost one.

      "Accepted" is what the protocol proves: the gateway took the notification. Nothing in it says that a device got \
      one. A sending 10 minutes or more (--repeat-after) after an accepted one is a repeat on purpose, and begins a story \
      of its own. Connections without a certificate in the recording, as those of resumed sessions, are taken to be of \
      the recording's topic if it shows only one.

      --dead lists the tokens to delete: those of which the feedback service listed the app as gone, or the gateway rejected \
      the token with status 8, after the last notification to them that is known to be accepted.

      Options select sendings, as those of 'decode' select notifications: --from 10:00 --to 10:05, --token 3b1d, --fate \
      discarded, --status 8. A story is written, with all of its sendings, when one of them is selected; a token also \
      when one of its feedback tuples is. --outcome selects stories by what became of them.

      Records are written when all was read. Recordings, secrets and damage are treated as by 'decode', but every input \
      is read once. What does not fit into --max-memory goes to unnamed files in TMPDIR, so that outcomes are exact at \
      any size.

      Examples:
        apnscope follow --format table capture.pcap
        apnscope follow --outcome lost ring/ | jq -r .token
        apnscope follow --outcome open capture.pcap | jq -r .open_reason
        apnscope follow --from 10:00 --to 10:05 --fate discarded capture.pcap
        apnscope follow capture.pcap | jq 'select(.recovered_ms > 60000)'
        apnscope follow --type token a.pcap | jq 'select(.sent_after_listed > 0)'
        apnscope follow --dead --fields token --format csv capture.pcap
        apnscope follow --keys sslkeys.log --format csv capture.pcap > a.csv

      Exit codes: 0 done (damage is counted in the summary); 64 usage; 65 not a capture, a key that cannot be used, or \
      --strict found damage or nothing; 66 cannot open a file or interface; 69 no program to capture with; 74 cannot read \
      or write, or the capture ended by itself; 130 interrupted.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct StoryOptions: ParsableArguments {
    @Option(
      help:
        "jsonl (one JSON object a line), csv (one table), or table (for people: with a line for each sending of what was not simply accepted, and only tokens that were rejected or listed by feedback)."
    )
    var format = Format.jsonl

    @Option(
      help: ArgumentHelp("File to write to. Default, and -: standard output.", valueName: "file"), completion: .file())
    var output: String?

    @Option(
      parsing: .singleValue,
      help: ArgumentHelp(
        "Only stories with this outcome, and no tokens: \(StoryOutcome.allCases.map(\.name).joined(separator: ", ")).",
        valueName: "outcome"))
    var outcome: [StoryOutcome] = []

    @Option(
      name: .customLong("type"), parsing: .singleValue,
      help: ArgumentHelp(
        "Only records of this type: \(WrittenRecord.allCases.map(\.rawValue).joined(separator: ", ")).",
        valueName: "type"))
    var types: [WrittenRecord] = []

    func writes(_ type: WrittenRecord) -> Bool {
      dead ? type == .token : types.isEmpty || types.contains(type)
    }

    /// The selected fields; `nil`: all.
    func selectedFields() throws -> FieldSelection? {
      guard let names = fields?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) else {
        return nil
      }
      if let selection = FieldSelection(names, of: TokenFields.names) { return selection }
      let known = TokenFields.names.map(\.description)
      let unknown = names.first { !known.contains($0) } ?? ""
      throw ValidationError("--fields: unknown field '\(unknown)'. \(hint(unknown, of: known))")
    }

    @Flag(
      help:
        "Only tokens that feedback listed, or that were rejected with status 8, after they were last accepted: the ones to delete. Implies --type token."
    )
    var dead = false

    @Option(
      help: ArgumentHelp(
        "Only these fields of tokens, separated by commas; nothing else is written. For --type token and --dead.",
        valueName: "names"), completion: .words { TokenFields.names.map(\.description) })
    var fields: String?

    @Option(
      help: ArgumentHelp(
        "Time after an accepted sending from which another one of the same content is a repeat on purpose.",
        valueName: "time"), transform: TimeSpan.parse)
    var repeatAfter = TimeSpan(.seconds(600))

    @Flag(help: "Exit with 65 when anything is missing, malformed or not decrypted, or nothing was read.")
    var strict = false
  }

  @OptionGroup(title: "Output") var stories: StoryOptions
  @OptionGroup(title: "Redaction") var redacting: RedactionOptions
  @OptionGroup(title: "Selection") var which: RecordSelectionOptions
  @OptionGroup var recordings: RecordingsArgument
  @OptionGroup(title: "Live capture") var live: LiveOptions
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Outcomes") var resends: ResendOption
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var output: String? { OutputFile.file(stories.output) }
  private var decoding: DecodingOptions { DecodingOptions(selection: selection, secrets: secrets, limits: limits) }

  func validate() throws {
    try live.check(recordings.inputs)
    if stories.repeatAfter.duration <= .zero { throw ValidationError("--repeat-after must be more than 0s.") }
    if !stories.writes(.story), !stories.outcome.isEmpty {
      throw ValidationError("--outcome is of stories, and \(stories.dead ? "--dead" : "--type token") leaves them out.")
    }
    if stories.dead, stories.types.contains(.story) {
      throw ValidationError("--dead is of tokens, and --type notification_story leaves them out.")
    }
    if try stories.selectedFields() != nil, stories.writes(.story) {
      throw ValidationError("--fields is of tokens: give --type token or --dead.")
    }
    if let output, Paths.isDirectory(output) {
      throw ValidationError("--output names a directory; stories are written to one file.")
    }
    try refuseConflicts(
      reading: recordings.inputs + secrets.files + redacting.files,
      writing: [output.map { ("--output", $0) } ?? FilesInUse.standardOutput])
  }

  private var options: StoryCollector.Options {
    var options = StoryCollector.Options()
    options.selection = which.selection
    options.outcomes = Set(stories.outcome)
    options.writesStories = stories.writes(.story)
    options.writesOnlyDeadTokens = stories.dead
    options.writesTokens = stories.writes(.token) && stories.outcome.isEmpty
    options.repeatAfter = Int64((stories.repeatAfter.duration / .nanoseconds(1)).rounded())
    options.resendWithin = resends.nanoseconds
    options.isPart = selection.isPart
    options.apply(limits)
    return options
  }

  private func makeWriter(_ output: @escaping RecordOutput) throws -> any StorySink {
    if let fields = try stories.selectedFields() {
      return stories.format == .jsonl
        ? JSONTokenFieldsWriter(fields, output: output)
        : CSVTokenFieldsWriter(fields, isTabbed: stories.format == .table, output: output)
    }
    return switch stories.format {
    case .jsonl: JSONStoryWriter(output: output)
    case .csv: CSVStoryWriter(output: output)
    case .table: StoryTableWriter(output: output)
    }
  }

  func run() throws {
    if live.listInterfaces { return try CaptureProgram.listInterfaces(endingSignals: StopSignals.numbers) }
    Interrupt.watch()
    let outputs = try Outputs(output, isDirectory: false)
    let output = try outputs.open()
    let plain = try makeWriter(output)
    let writer: any StorySink = try redacting.redaction.map { RedactedStories(plain, $0) } ?? plain
    let collector = StoryCollector(options, into: writer)
    var pipeline = try decoding.pipeline(recordings.inputs, live: live)
    let reading = try pipeline.read(into: collector).reading
    // If nothing could be read, the file stays unchanged.
    if reading.hasRead {
      try collector.writeOrFail()
      try outputs.check()
      let messages = reading.summary.messages
      if messages > 0 {
        complain("\(counted(messages, "message")) to devices are not followed; 'decode' and 'inspect' have them")
      }
    }
    let code = ExitStatus.code(for: reading, strict: stories.strict)
    if code != .success { throw code }
  }
}

extension StoryOutcome: ExpressibleByArgument {}
