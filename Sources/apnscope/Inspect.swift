import ArgumentParser
import Bytes
import CommandFiles
import Dissection
import Measurement
import Reporting

extension InspectionReport.Order: ExpressibleByArgument {}

struct Inspect: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case text, json
  }

  static let configuration = CommandConfiguration(
    abstract: "Summarize recordings on one screen.",
    discussion: """
      Shows the files, the clients, the notifications and their batching, the error responses and how many notifications \
      each of them cost, when connections were opened and closed, and a list of findings: each with its count and the \
      first packet it occurs in. TLS is decrypted as by 'decode', and shown with version, cipher suite, key exchange, \
      resumption, and overhead in bytes.

      Counts and fates are those of the records that 'decode' writes. A resent notification is recognised by its token \
      and payload.

      Examples:
        apnscope inspect capture.pcap
        apnscope inspect --keys sslkeys.log capture.pcap
        apnscope inspect --rows 100 --filter 'host 10.0.0.5' capture.pcap
        apnscope inspect --from 10:00 --to 10:05 --status 8 capture.pcap
        apnscope inspect --format json monday.pcapng.gz | jq .findings

      Options select records as for 'decode'; all figures are then of these records, and a line says so.

      When no APNs traffic is found, the findings state the reason: encryption, ports with another protocol, a filter that \
      matches nothing.

      Exit codes: 0 done (damage is among the findings); 64 usage; 65 not a capture, a key that cannot be used, or \
      --strict found damage or nothing; 66 cannot open a file; 74 cannot read or write; 130 interrupted.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct ViewOptions: ParsableArguments {
    @Option(help: "text (one screen) or json (everything, for programs).")
    var format = Format.text

    @Option(help: ArgumentHelp("Connections and error responses that the text lists, 0 to 10000.", valueName: "count"))
    var rows = 12

    @Option(
      help:
        "Order of connections and error responses: start (by time), or cost (most lost notifications first), among those that are kept (--max-listed)."
    )
    var sort = InspectionReport.Order.start

    @Flag(help: "Exit with 65 when anything is missing, malformed or not decrypted, or nothing was read.")
    var strict = false
  }

  @OptionGroup(title: "Display") var view: ViewOptions
  @OptionGroup(title: "Selection") var which: RecordSelectionOptions
  @OptionGroup var recordings: RecordingsArgument
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits of the summary") var tallies: TallyLimitOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var format: Format { view.format }
  private var rows: Int { view.rows }
  private var decoding: DecodingOptions { DecodingOptions(selection: selection, secrets: secrets, limits: limits) }

  func validate() throws {
    if rows < 0 || rows > 10_000 { throw ValidationError("--rows takes a number from 0 to 10000, not \(rows).") }
    try refuseConflicts(reading: recordings.inputs + secrets.files, writing: [FilesInUse.standardOutput])
  }

  func run() throws {
    Interrupt.watch()
    let result = try InspectedRecording(
      recordings.inputs, decoding, which.selection, into: Inspection(limits: tallies.limits), strict: view.strict)
    var inspection = result.sink
    var report = inspection.finish()
    report.sort(by: view.sort)
    let outputs = try Outputs(nil, isDirectory: false)
    let write = try outputs.open()
    // Nothing to show when no input could be read.
    if !report.files.isEmpty {
      let text: String
      switch format {
      case .text: text = InspectionText(report, rows: rows).text
      case .json: text = try InspectionDocument(report).jsonDocument() + "\n"
      }
      _ = write(Array(text.utf8).rawBytes)
    }
    try outputs.check()
    if result.code != .success { throw result.code }
  }
}
