import ArgumentParser
import CommandFiles
import LoadTest

struct Capacity: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Find the highest rate a gateway sustains, and plan a campaign with it.",
    discussion: """
      A burst as fast as possible gives an upper bound; then a search runs trials at set rates, each of which passes, fails, \
      or is void. A trial passes when send lag stays low, the backlog does not grow, the gateway has caught up at the end \
      (it has answered the markers), nothing is lost without an error, and few notifications are refused or resent. A \
      trial that does not pass is void instead of failed when this program lacked processor time or stalled: it says \
      nothing about the gateway, and is repeated. A failed trial is repeated too; only a rate that failed twice bounds the \
      search. The search bisects, in logarithms, until a passing and a failing rate are --precision apart; then a long \
      trial has to confirm the first, and a long trial one step above it has to fail.

      The rate is reported with a range: the limit that the fewest trials contradict, every limit that one more trial \
      contradicts (a long one counts twice), and half a step on either side. In simulated searches nine of ten ranges \
      contain the limit. When a trial as fast as possible exceeded the range, a warning says that the limit is doubtful.

      Further trials run as fast as possible over other numbers of connections, with other batches, and with intentionally \
      bad notifications, to fit the universal scalability law over connections, the goodput law over errors, and F/b + V \
      over batches. Each law is checked against one more measured point, and both numbers are shown. --target asks how \
      long a number of notifications takes, --within how many connections and hosts send it in time. No prediction is made \
      for more than twice the measured connections, and none for more than the search had when no law was fitted.

      --demand lays a demand over the capacity: rates over time from 'apnscope inspect --format json', from a CSV with \
      the columns time (or seconds) and rate, where each rate lasts until the next line, or from the runs of a history. \
      What exceeds the sustained rate waits and is sent in order: shown are whether the demand fits, the headroom at its \
      peak, the largest and the longest backlog, the longest delay, and when the last one is out. It fits only if the \
      peak is not above the range of the sustained rate. A recording shows what was sent, not what was due: a sender that \
      its gateway slowed down shows less. --storm opens that many connections at once, with full handshakes, as after a \
      restart of the gateway: how long until all are back. 'apnscope report capacity.json' answers --target, --within, \
      --demand, --storm and --devices from the document, without another search.

      With --trial-command every trial is a command, which starts the load where it likes: on many machines by srun, mpirun \
      or kubectl. It runs in a process group of its own, with these variables:
      \(TrialCommand.variables.map { "  \(TrialCommand.prefix)\($0.0)\(String(repeating: " ", count: 12 - $0.0.count))\($0.1)" }.joined(separator: "\n"))

      The plan file has all settings of the trial, for 'apnscope load --plan'; several segments add --segment auto, since it \
      is the plan of the whole. The command leaves one result, that of 'load' or 'merge', of the rate, connections and \
      length that were asked for; another, or none, ends the search. Plans and results are in the folder trials of \
      --output, or else in a temporary one, so with several machines --output is on a shared file system. A trial whose \
      segments did not run at the same time, or whose generator was the limit, is void and repeated. An interrupt ends the \
      process group of the running trial.

      Standard output is a summary (or the document, --format json); standard error has one line for each trial. --output \
      creates a directory with capacity.json, report.html, and report.md with its charts; 'apnscope report capacity.json' \
      creates the pages again. Ctrl-C once ends it with a report of the completed trials.

      Times, counts, bytes and shares are written as with 'apnscope load'.

      --error-limit 0 --resent-limit 0 searches for the highest rate without any error. Trials that share a machine with \
      the gateway measure the machine. It sends only to this machine unless --allow-remote is given.

      Examples:
        apnscope capacity --identity ids --connections 4 --output capacity
        apnscope capacity --identity ids --target 50M --within 10m
        apnscope capacity --identity ids --demand monday.json,factor=2
        apnscope capacity --identity ids --storm 1k
        apnscope capacity --identity ids --dry-run
        apnscope capacity --trial-command ./trial.sh --output capacity
        apnscope capacity --identity ids --trial 3s --confirm 10s \\
          --batch-sweep none --error-sweep none
        apnscope capacity --identity ids --payload-from records.jsonl \\
          --threshold 'send_lag_p999<100ms'

      Exit codes: 0 a rate was found; 64 usage; 65 a certificate, a demand or a file of records cannot be used; 66 cannot open a file; \
      69 the gateway is unreachable, or a trial's command failed; 74 cannot write; 99 no rate passed; 130 interrupted (completed trials are written).
      """)

  @OptionGroup(title: "Questions") var questions: CapacityQuestions
  @OptionGroup(title: "Trials") var trials: TrialOptions
  @OptionGroup(title: "What passes") var limits: PassOptions
  @OptionGroup(title: "Where to") var target: TargetOptions
  @OptionGroup(title: "Workload") var workload: WorkloadOptions
  @OptionGroup(title: "Connections") var connections: ConnectionOptions
  @OptionGroup(title: "Result") var result: DocumentOptions
  @OptionGroup(title: "Live page") var web: WebOptions
  @OptionGroup(title: "Display") var display: DisplayOptions

  @Flag(help: "Print the trials and how long they will take, and exit.")
  var dryRun = false

  struct DocumentOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "Write capacity.json, report.html, report.md and its charts to this directory.", valueName: "directory"),
      completion: .directory)
    var output: String?

    @Option(help: "Format of standard output: text (a summary) or json (the document).")
    var format = ResultOptions.Format.text

    @Option(
      help: ArgumentHelp(
        "Append the document to this history, an SQLite file; see 'apnscope history --help'.", valueName: "file"),
      completion: .file(extensions: ["sqlite"]))
    var history: String?
  }

  func validate() throws {
    if trials.trialCommand == nil { try target.requireIdentity() }
    try target.requireOneIdentity(for: "capacity", "the search is for the rate of one")
    try web.requireWeb()
    try requireFolder(result.output)
    guard (0.001...0.5).contains(trials.precision.value) else {
      throw ValidationError("--precision must be 0.1% to 50%.")
    }
    guard trials.maxTrials.value >= 1 else {
      throw ValidationError("--max-trials must be at least 1 (got \(trials.maxTrials.value)).")
    }
    if trials.trialCommand != nil, questions.storm != nil {
      throw ValidationError(
        "--trial-command and --storm exclude each other: a result does not tell how connections opened.")
    }
    guard trials.trialTimeout.duration > .zero else { throw ValidationError("--trial-timeout must be more than 0s.") }
    for (name, time) in [("trial", trials.trial), ("confirm", trials.confirm)] where time.duration < .milliseconds(500)
    {
      throw ValidationError("--\(name) must be at least 500ms.")
    }
    if connections.markers == .off {
      throw ValidationError("--markers off: capacity needs markers to measure how far the gateway was behind.")
    }
  }

  /// How the capacity is searched.
  var searchPlan: CapacityPlan {
    var plan = CapacityPlan()
    plan.precision = trials.precision.value
    plan.maximumTrials = trials.maxTrials.value
    plan.trial = trials.trial.duration
    plan.confirmation = trials.confirm.duration
    plan.settling = trials.settle.duration
    plan.limits.lag = Int(limits.lagLimit.duration / .microseconds(1))
    plan.limits.errorShare = limits.errorLimit.value
    plan.limits.resentShare = limits.resentLimit.value
    plan.thresholds = limits.threshold.map(\.threshold)
    plan.connectionsSweep = trials.connectionsSweep.values
    plan.batchSweep = trials.batchSweep.values
    plan.errorSweep = trials.errorSweep.values
    plan.storms = questions.storm?.values ?? []
    return plan
  }

  private func checkFiles() throws {
    let pages = result.output.map { ReportFolder.pages(in: $0) + [Paths.path(of: "capacity.json", in: $0)] } ?? []
    try refuseConflicts(
      reading: target.files + questions.files + workload.files,
      writing: pages.map { ("--output", $0) } + [
        ("--history", result.history), ("--keylog", target.keylog), FilesInUse.standardOutput,
      ])
  }

  func run() async throws {
    try checkFiles()
    try await CapacityRun(self).run()
  }
}
