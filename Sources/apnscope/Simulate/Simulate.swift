import ArgumentParser
import CommandFiles
import GatewaySimulator

struct Simulate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run a simulated gateway and feedback service, or the HTTP/2 API.",
    discussion: """
      Listens on the ports of the gateway and the feedback service, with real TLS and the real protocol: accepts, rejects \
      and discards notifications as the service did, with faults on demand. At the end it writes a ledger: notifications \
      received, accepted, rejected by status, and discarded after an error response.

      'apnscope identity' creates the certificates. Standard output has a line for each port ("gateway 127.0.0.1:2195") as \
      soon as it accepts connections, and a summary at the end; on a terminal, standard error shows a status line.

      It ends after --for, or at SIGINT or SIGTERM: connections with notifications get status 10 (shutdown), notifications \
      that still arrive are counted for at most --linger, then the ledger is written. A second signal, half a second later or \
      more, ends it at once, without a ledger. SIGUSR1 shuts down all open connections and continues with new ones. SIGUSR2 brings all offline \
      devices online for a moment.

      --records has what arrived, as the records of 'decode', with the fate of each notification as the gateway decided it. \
      Fates are certain: none is "unknown". What becomes of an accepted notification for its device, unless it is delivered \
      at once, is a record of its own, "delivery". With --records-size they are several files. A writer that is behind leaves notifications out: the records have a gap, or lack \
      a connection, and the ledger counts them (records.lost). When it cannot write any more, the file ends and not the \
      gateway. 'apnscope report', 'jq' and others read the file.

      --verdict says what the providers did, with the outcomes and the words of 'apnscope follow', and with the gateway's \
      certainty: the distinct notifications and what became of each; what an error response discarded, whether and when it \
      was sent again, and when the provider was back; connections, batches, and the feedback service. A notification that \
      was discarded is lost when it was not sent again for the time within which providers do (--resend-within, or the \
      longest that was seen); when the gateway ended before, it is open. What notifications left out may hide is open, too. \
      The verdict is of this gateway: a provider may have sent to another one.

      --control serves the same to a test while it runs, over HTTP and JSON: list and wait for notifications by token, topic \
      or text, counts and verdict, faults and devices that change at once, and a reset between two tests. GET / says where \
      the gateway listens, GET /openapi.json what else there is.

      In a test of a provider: --ready-file tells when to begin, --until and --until-idle end the run, --expect says what must \
      have come of it. A condition passes only if it is proven: 'lost<=0' fails, with the reason, while notifications are \
      open that may be lost.

      Counts: received = accepted + rejected + discarded, and accepted = delivered + stored + coalesced + expired + dropped \
      + uninstalled. A response, a close or a shutdown that proves notifications accepted is sent only after their \
      failures are stored on the feedback list. When the list cannot be written (a full disk), they are counted as lost, \
      and their connections end without an answer. An error response is counted when all six bytes were sent; a partial \
      one is counted as incomplete.

      A topic's feedback list is cleared when the client's kernel has acknowledged all of it, and either the FIN after it or \
      the client's close without a reset; with --feedback-never-closes, at the client's close.

      --http2 serves the HTTP/2 provider API, with the same devices, rules of --reject and ledger; without --gateway nothing \
      else. Documentation/http2-simulator.md has the order of its checks. Records are those of decode, fates are in fate \
      and response records; one verdict, list and set of expectations is of both protocols. --http2-fault disturbs it: \
      delays, silence, GOAWAY, refusals, resets, closes, wrong frames and answers; the ledger counts them.

      Times are written 250ms, 2s, 1m30s or 1h; bytes 4096, 64KiB or 1MB; shares 0.01 or 1%.

      Every option can be set in a TOML file (--settings): its name with _ for -, optionally in tables: 'delay' in \
      [response] is --response-delay, and each table of [[reject]] is one --reject. An option on the command line \
      overrides that of the file, and those that exclude it. A file bad-day.toml:
        identity = "ids"
        shutdown_after = 50000
        [response]
        delay = "100ms..800ms"
        [[reject]]
        every = 1000
        status = 7

      Examples:
        apnscope identity --directory ids --topic com.example.app
        apnscope simulate --identity ids --ledger sim.json
        apnscope simulate --identity ids --for 30s --reject every=1000,status=7
        apnscope simulate --plain --reject prefix=dead --response-delay 50ms..800ms
        apnscope simulate --identity ids --devices-uninstalled 1%
        apnscope simulate --identity ids --log log.jsonl --metrics 127.0.0.1:9100
        apnscope simulate --plain --records - | jq -c 'select(.fate)'
        apnscope simulate --plain --records a.jsonl --records-size 1GiB
        apnscope simulate --plain --verdict --reject every=1000
        apnscope simulate --plain --until 'received>=1000' --expect 'rejected=0'
        apnscope simulate --plain --ready-file up --until-idle 5s --expect lost=0
        apnscope simulate --plain --control 127.0.0.1:9103 --ready-file up
        curl '127.0.0.1:9103/notifications/wait?count=3&text=Hello'
        apnscope simulate --http2 127.0.0.1:0 --plain --ready-file up
        apnscope simulate --http2 127.0.0.1:0 --plain --provider-key AuthKey_X.p8
        apnscope simulate --http2 127.0.0.1:0 --plain --control 127.0.0.1:9103
        apnscope simulate --http2 127.0.0.1:0 --plain --records - --verdict
        apnscope simulate --http2 127.0.0.1:0 --plain --http2-fault refuse
        apnscope simulate --plain --local-push 127.0.0.1:2199 --local-push-rate 9/s
        apnscope simulate --plain --local-push ship=127.0.0.1:2199
        apnscope simulate --settings bad-day.toml --seed 2

      Exit codes: 0 done; 64 usage; 65 a certificate, list or settings file cannot be used; 66 cannot open a file; 69 a \
      port is in use, or the limit of open files is too low (ulimit -n); 74 cannot write; 99 an --expect or --until does not \
      hold; 130 ended by a second signal.
      """)

  @OptionGroup(title: "Where") var listening: ListeningOptions
  @OptionGroup(title: "HTTP/2") var http2: HTTP2Options
  @OptionGroup(title: "TLS") var tls: ServerTLSOptions
  @OptionGroup(title: "Accepted notifications") var rules: RuleOptions
  @OptionGroup(title: "Payloads") var payloads: ScrutinyOptions
  @OptionGroup(title: "Rejections and responses") var answers: AnswerOptions
  @OptionGroup(title: "Treatment of connections") var treatment: TreatmentOptions
  @OptionGroup(title: "Devices and feedback") var devices: DeviceOptions
  @OptionGroup(title: "Device channel") var channel: DeviceChannelOptions
  @OptionGroup(title: "Local push") var localPush: LocalPushOptions
  @OptionGroup(title: "Books") var books: AccountingOptions
  @OptionGroup(title: "Verdict") var resends: ResendOption
  @OptionGroup(title: "Expectations") var expectations: ExpectationOptions
  @OptionGroup(title: "Control") var control: ControlOptions
  @OptionGroup(title: "Live page") var web: WebOptions
  @OptionGroup(title: "Display") var screen: ScreenOption
  @OptionGroup(title: "Display") var display: DisplayOptions
  @OptionGroup(title: "Limits") var limits: SimulatorLimitOptions

  @Option(
    help: ArgumentHelp("A TOML file that sets options; the command line wins.", valueName: "file"),
    completion: .file(extensions: ["toml"]))
  var settings: String?

  func validate() throws {
    if tls.identity == nil, !tls.plain, settings == nil {
      throw ValidationError("Give --identity DIR (see 'apnscope identity --help'), or --plain for TCP without TLS.")
    }
    if settings == nil {
      try http2.requireCompanions()
      try channel.requireCompanions()
      try localPush.requireCompanions()
      try books.requireCompanions()
      try web.requireWeb()
    }
  }

  func run() async throws {
    guard let settings else {
      try checkFiles(settings: nil)
      return try await SimulatorRun(self).run()
    }
    let merged = try SettingsFile(path: settings).merged(
      into: Simulate.self, named: "simulate", except: ["settings"],
      alternatives: [
        ("identity", ["plain"]), ("feedback", ["no-feedback"]),
        ("devices-file", ["devices-offline", "devices-uninstalled", "devices-unknown"]),
      ])
    if merged.tls.identity == nil, !merged.tls.plain {
      throw ValidationError("Neither the command line nor \(settings) has identity or plain.")
    }
    try merged.http2.requireCompanions()
    try merged.channel.requireCompanions()
    try merged.localPush.requireCompanions()
    try merged.checkFiles(settings: settings)
    try await SimulatorRun(merged).run()
  }

  private func checkFiles(settings: String?) throws {
    try refuseConflicts(
      reading: [tls.identity, settings, devices.devicesFile, localPush.localPushMessages].compactMap { $0 }
        + http2.files,
      writing: [
        ("--ledger", books.ledger), ("--history", books.history), ("--log", books.log),
        ("--records", OutputFile.file(books.records)),
        ("--keylog", tls.keylog), ("--ready-file", expectations.readyFile), ("--junit", expectations.junit),
        ("--feedback-list", feedbackListFile), ("--device-store", channel.deviceStore), FilesInUse.standardOutput,
      ])
  }

  /// The file of the feedback list; `nil`: it is in memory. Without a feedback service there is a file only if it is
  /// named, so that two gateways with one identity can run at the same time.
  var feedbackListFile: String? {
    if let named = devices.feedbackList { return named == DeviceOptions.memory ? nil : named }
    if listening.noFeedback || http2.http2 != nil && listening.gateway == nil { return nil }
    return tls.identity.map { "\($0)/feedback.sqlite" }
  }

  /// The simulator's options. Reads the files that are named.
  func options() throws -> SimulatorOptions {
    var options = SimulatorOptions()
    listening.apply(to: &options, servesHTTP2: http2.http2 != nil)
    if options.gateway != nil || options.feedback != nil { try tls.apply(to: &options) }
    try http2.apply(to: &options) { try tls.http2Context($0) }
    rules.apply(to: &options)
    payloads.apply(to: &options)
    try answers.apply(to: &options)
    treatment.apply(to: &options)
    try devices.apply(to: &options)
    limits.apply(to: &options)
    try channel.apply(to: &options) { try tls.deviceContext() }
    try localPush.apply(to: &options) { try tls.deviceContext() }
    options.keepsFeedback = !listening.noFeedback || devices.feedbackList != nil
    return options
  }
}
