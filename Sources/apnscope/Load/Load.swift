import ArgumentParser
import CommandFiles
import LoadTest

struct Load: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Load a gateway with synthetic or recorded notifications, and keep exact books.",
    discussion: """
      Generates a stream of notifications at a set rate or as fast as the gateway takes them, in batches over several \
      connections, survives every error the protocol has, and sends again what was discarded. At the end it says what \
      became of every notification, because the protocol does not: accepted, rejected, unknown, or given up.

      Notification n is a pure function of --seed and n, so the same load can be run again, and several machines can \
      share one (--segment 2/4; 'apnscope merge' joins their results).

      A batch is written at once when nothing of ours is unsent; else it collects until it is full (--batch), has waited \
      (--linger), or the socket has drained. A marker, a notification that is bad on purpose, ends every connection's \
      life: its rejection proves everything before it accepted (--markers off for gateways that dislike it).

      --replay sends the notifications of a decoded trace instead, with the spacing that they were recorded with, so many \
      times as fast (--speed 10), or as fast as they are taken (--speed max), until all are sent. They are numbered anew \
      from 1, because the books need identifiers that differ. All else is as recorded: command, token, payload, \
      expiration, priority, items that are missing, unknown, or in another order, and notifications that are bad. White \
      space that the record of a payload does not have is put behind it, so that its length stays. Connections are joined \
      by time, and the order on each stays; what has no time follows at once. Frames wait in a file without a name in \
      TMPDIR or /tmp; memory takes 16 bytes a notification. --segment takes its part of the recording; several connections \
      and resends work as ever.

      Without --rate, --stage or --replay it goes as fast as it can. Send lag is the time from when a notification was \
      due to when it was written; what is late is sent late, or with --behind skip left out and counted. What was due and \
      never sent is in it with the time until it was given up, and a threshold on a quantile that it decides fails. The \
      lag has two shares: its own, in which this program did not look at its work, and the gateway's, in which no \
      connection took more.

      Rates, latencies, batches and loss windows are of the measured phase, by the time of writing; counts and times of \
      connecting are of the whole run, and the result has each of every phase. accepted_per_s is what was written in the \
      measured phase and proven accepted, over that phase; when it took the gateway longer than 2 % of the phase behind \
      its end to settle all of it, it is of the phase and the drain, over both (rates.basis), with a warning. Times of 10 ms and more in \
      which this program stood still are noted (stalls); when they are more than 1 % of the measured phase, or one is \
      longer than 50 ms, a warning says that lags are its own as well.

      Standard output carries the summary (or the result, --format json); on a terminal, standard error shows one line a \
      second. The result (--output) also has every histogram with its counts, the run second by second, each phase, and \
      when each connection was up (--timeline); the file is replaced when all of it is on disk. Until then its books are \
      kept every few seconds in a file beside it, with .part behind its name, which stays when the process is killed. \
      Ctrl-C ends it in good order with a full report, and so does a terminal that is lost, but under nohup; Ctrl-C twice \
      ends it at once. It sends for 60 seconds unless --for, --stage, --count or --replay says otherwise, and to this \
      machine only unless --allow-remote is given: the gateway's name is looked up once, and each address of it has to be \
      a loopback one.

      Times are written 250ms, 2s, 1m30s or 1h; rates 500, 200k/s (both a second) or 600/m; counts 1000, 20k or 10M; \
      bytes 4096, 64KiB or 1MB; shares 0.01, 1e-4 or 1%.

      Every option can stand in a TOML file (--plan), as with 'apnscope simulate --settings'; --print-plan shows what is \
      in effect, in comments what nobody gave but follows, as the length of stages. What is typed takes the place of \
      what the file says, and what follows, follows from both.

      Examples:
        apnscope load --identity ids --rate 10k/s --for 30s --output run.json
        apnscope load --identity ids --connections 8 --count 1M --payload 100..2000
        apnscope load --identity ids --stage 10s:0..50k/s --stage 1m:50k/s \\
          --threshold 'send_lag_p99<5ms'
        apnscope load --identity ids --rate 10k/s --payload-from records.jsonl
        apnscope load --identity ids --faults missing-token=1e-4,oversize=1e-5
        apnscope decode trace.pcap |
          apnscope load --identity ids --replay - --speed 10
        apnscope load --identity ids --rate 10k/s --print-plan > nightly.toml
        apnscope load --plan nightly.toml --history runs.sqlite

      A run is proven when all that was due was sent and the fate of each notification is known: "markers leave nothing \
      unknown" has a ✓ then. A line with ! says what is open or doubtful, one with ✗ what has failed: nothing was \
      accepted, it was given up, or not all connections came up. With --markers off nothing can be proven.

      What another attempt cannot overcome ends the run at once: a certificate that is refused, an unknown host, answers \
      that are no error responses. A refused connection is tried again, for 3 seconds when there never was one, else for \
      --give-up.

      Exit codes: 0 done; 64 usage; 65 a certificate, plan or file of records cannot be used; 66 cannot open a file; 69 \
      the gateway cannot be reached, nothing was accepted (with --markers off: nothing was written), the run was given \
      up, or fewer connections came up than were asked for (not with --markers off); 70 the books do not balance, or markers left something \
      unknown; 74 cannot write; 99 a threshold failed; 130 \
      interrupted (the result is written).
      """)

  @OptionGroup(title: "Where to") var target: TargetOptions
  @OptionGroup(title: "What is sent") var workload: WorkloadOptions
  @OptionGroup(title: "When") var pace: PaceOptions
  @OptionGroup(title: "A recorded trace instead") var replay: ReplayOptions
  @OptionGroup(title: "Over which connections") var connections: ConnectionOptions
  @OptionGroup(title: "Result") var result: ResultOptions

  @Option(
    help: ArgumentHelp("A TOML file that sets options; the command line wins.", valueName: "file"),
    completion: .file(extensions: ["toml"]))
  var plan: String?

  @Flag(help: "Print the effective plan as TOML and end.")
  var printPlan = false

  func validate() throws {
    if plan == nil { try requireCompanions() }
    if replay.replay != nil, let other = (workload.given + pace.given).first {
      throw ValidationError("--replay and --\(other) exclude each other: what is recorded is sent as it is.")
    }
  }

  /// What options need that a plan file may have instead of the command line.
  private func requireCompanions() throws {
    try target.requireIdentity()
    try pace.requireSchedule()
    try replay.requireReplay()
    if pace.behind == .skip, pace.given.isEmpty, !replay.isPaced {
      throw ValidationError("--behind skip needs --rate, --rate-per-connection, --stage, or --replay at a speed.")
    }
  }

  func run() async throws {
    guard let plan else {
      try checkFiles(plan: nil)
      return try await LoadRun(self).run()
    }
    let merged = try SettingsFile(path: plan).merged(
      into: Load.self, named: "load", except: ["plan", "print-plan"],
      alternatives: [
        ("identity", ["plain"]), ("rate", ["rate-per-connection", "stage"]), ("rate-per-connection", ["stage"]),
        ("payload", ["payload-from", "payload-template"]), ("payload-from", ["payload-template"]),
        ("replay", ReplayOptions.excluded), ("speed", ReplayOptions.excluded),
      ])
    try merged.requireCompanions()
    try merged.checkFiles(plan: plan)
    try await LoadRun(merged).run()
  }

  private func checkFiles(plan: String?) throws {
    try refuseConflicts(
      reading: target.files + [plan, replay.replay, workload.payloadFrom].compactMap { $0 },
      writing: [
        ("--output", result.output), ("--output", result.output.map { $0 + PartialResult.suffix }),
        ("--history", result.history), ("--keylog", target.keylog),
        FilesInUse.standardOutput,
      ])
  }

  /// What is to be done. Reads the files that are named.
  func loadPlan() throws -> LoadPlan {
    var plan = LoadPlan()
    try target.apply(to: &plan)
    try workload.apply(to: &plan)
    connections.apply(to: &plan)
    try pace.apply(to: &plan)
    try replay.apply(to: &plan, hasDuration: pace.duration != nil)
    plan.timelineLimit = result.timeline.value
    return plan
  }
}
