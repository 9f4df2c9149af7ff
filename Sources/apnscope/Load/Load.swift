import ArgumentParser
import CommandFiles
import LoadTest

struct Load: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Load a gateway with synthetic or recorded notifications, and report the fate of each.",
    discussion: """
      Generates a stream of notifications at a set rate or as fast as the gateway takes them, in batches over several \
      connections, recovers from all errors of the protocol, and resends discarded notifications. At the end it reports \
      the fate of every notification, which the protocol does not tell: accepted, rejected, unknown, or abandoned.

      Notification n is a pure function of --seed and n, so a load can be repeated, and several machines can share one \
      (--segment 2/4; 'apnscope merge' joins their results). Under Slurm, MPI or Kubernetes --segment auto takes the part \
      from the engine, --of-whole divides rates, counts and connections, and --start-at lets all begin together: \
      connections are made before, and the schedule, with its warm-up, begins at that time of day. +30s counts from the \
      start of each process, so several machines need the same time, or next:30s. A run that is more than 100 ms late \
      sends nothing, or leaves out what was due before (--late skip). The result has the planned and the actual start, \
      and whether the system says that its clock is synchronised. A node's or pod's name becomes the label node or pod.

      A batch is written at once when no earlier bytes are unsent; otherwise it grows until it is full (--batch), has \
      waited (--linger), or the socket has drained. Every connection ends with a marker, an intentionally bad \
      notification whose rejection proves that everything before it was accepted (--markers off for gateways that do \
      not answer it).

      --replay sends the notifications of a decoded trace instead, at the recorded times, faster (--speed 10), or as fast \
      as possible (--speed max), until all are sent. They are renumbered from 1, because identifiers have to be unique. \
      Everything else is as recorded: command, token, payload, expiration, priority, missing, unknown or reordered items, \
      and bad notifications. White space that the record of a payload lacks is appended, so that its length stays. \
      Connections are merged by time, and each keeps its order; a notification without a time follows its predecessor at \
      once. Frames are kept in an unnamed file in TMPDIR or /tmp; memory takes 16 bytes a notification. --segment takes \
      its part of the recording; several connections and resends work as usual.

      With several identities each payload of --payload-file goes on connections with the certificate of its topic, in one \
      run. The weights of a topic's payloads decide how many of the notifications and connections are its. Which \
      notification is of which topic does not depend on --threads and --connections. The result has the counts of each.

      Without --rate, --stage or --replay it sends as fast as possible. Send lag is the time from when a notification was \
      due to when it was written (it avoids coordinated omission); late notifications are sent late, or skipped and \
      counted with --behind skip. A due notification that was never sent counts with the time until it was abandoned; a \
      threshold on a quantile that depends on it fails. The lag has two shares: the generator's, while this program did \
      not run, and the gateway's, while no connection took more.

      Rates, latencies, batches and loss windows cover the measured phase, by the time of writing; counts and times of \
      connecting cover the whole run, and the result has each of them for every phase. accepted_per_s counts notifications \
      written in the measured phase and proven accepted, over that phase; when the gateway needed longer than 2 % of the \
      phase after its end to settle them, it covers the phase and the drain (rates.basis), with a warning. Stalls of this \
      program of 10 ms and more are recorded; when they exceed 1 % of the measured phase, or one exceeds 50 ms, a warning \
      says that lags include them.

      --poll-feedback reads the list of the feedback service every so often, as a provider should. A token is listed when \
      a list that was read to its end has it with a time after its registration, which is the start of the run; a tuple \
      of the same second may be older, and does not count. Notifications to listed tokens are left out and counted as \
      pruned, also those that would be sent again: the schedule and all other notifications stay as they are. \
      --no-prune only counts. A poll that was cut off or is not possible lists nothing, and is a warning.

      Standard output is the summary (or the result, --format json); on a terminal, standard error shows one line a \
      second. The result (--output) also has every histogram with its counts, a series by second, each phase, and when \
      each connection was up (--timeline); the file is replaced atomically. During the run the books are saved every few \
      seconds to FILE.part beside it, which stays when the process is killed. Ctrl-C, or a closed terminal (except under \
      nohup), ends the run gracefully with a full report; a second one, half a second later or more, ends it at once. The run lasts 60 seconds unless \
      --for, --stage, --count or --replay is given. It sends only to this machine unless --allow-remote is given: the \
      gateway's name is resolved once, and every address has to be a loopback address.

      Times are written 250ms, 2s, 1m30s or 1h; rates 500, 200k/s (both a second) or 600/m; counts 1000, 20k or 10M; \
      bytes 4096, 64KiB or 1MB; shares 0.01, 1e-4 or 1%.

      Every option can be set in a TOML file (--plan), as with 'apnscope simulate --settings'. The command line overrides \
      the file. --print-plan prints the options in effect, with derived ones, e.g. the length of all stages, in comments.

      Examples:
        apnscope load --identity ids --rate 10k/s --for 30s --output run.json
        apnscope load --identity ids --connections 8 --count 1M --payload 100..2000
        apnscope load --identity ids --stage 10s:0..50k/s --stage 1m:50k/s \\
          --threshold 'send_lag_p99<5ms' 'rejected_rate<1%,abort'
        apnscope load --identity ids --rate 10k/s --payload-from records.jsonl
        apnscope load --identity ids --faults missing-token=1e-4,oversize=1e-5
        apnscope decode trace.pcap |
          apnscope load --identity ids --replay - --speed 10
        apnscope load --identity ids --rate 10k/s --print-plan > nightly.toml
        apnscope load --plan nightly.toml --history runs.sqlite
        apnscope load --identity ids --rate 5k/s --poll-feedback localhost
        apnscope load --identity ids --rate 1k/s --log log.jsonl
        apnscope load --identity ids --token-file t --payload-file p.jsonl
        apnscope load --plan nightly.toml --segment auto --of-whole
        apnscope load --plan nightly.toml --segment 2/4 --start-at next:30s
        apnscope load --identity ids --topic a --topic b --payload-file p.jsonl

      A run is proven when every due notification was sent or pruned and the fate of each is known: "markers leave nothing unknown" \
      has a ✓ then. Lines with ! are warnings, lines with ✗ are failures: nothing was accepted, the run was abandoned, or \
      not all connections came up. With --markers off nothing can be proven.

      A connection is up when the gateway has settled a notification on it, or held it for longer than a second, or until \
      it was closed here. One that the gateway closes before is refused: 1 % or more of refused connections are a warning.

      Permanent failures end the run at once: a refused certificate, an unknown host, answers that are not error \
      responses. A refused connection is retried, for 3 seconds when there never was one, otherwise for --give-up.

      Exit codes: 0 done; 64 usage; 65 a certificate, plan or file of records cannot be used; 66 cannot open a file; 69 \
      the gateway is unreachable, --start-at had passed, nothing was accepted (with --markers off: written), the run was abandoned, or fewer \
      connections came up than requested (not with --markers off); 70 the books do not balance, or markers left fates \
      unknown; 74 cannot write; 99 a threshold failed; 130 interrupted (the result is written).
      """)

  @OptionGroup(title: "Where to") var target: TargetOptions
  @OptionGroup(title: "Workload") var workload: WorkloadOptions
  @OptionGroup(title: "When") var pace: PaceOptions
  @OptionGroup(title: "Replay of a recorded trace") var replay: ReplayOptions
  @OptionGroup(title: "Connections") var connections: ConnectionOptions
  @OptionGroup(title: "Feedback") var feedback: FeedbackOptions
  @OptionGroup(title: "Result") var result: ResultOptions
  @OptionGroup(title: "Log") var log: LogOptions
  @OptionGroup(title: "Live page") var web: WebOptions

  @Option(
    help: ArgumentHelp("A TOML file that sets options; the command line wins.", valueName: "file"),
    completion: .file(extensions: ["toml"]))
  var plan: String?

  @Flag(help: "Print the effective plan as TOML and end.")
  var printPlan = false

  func validate() throws {
    if plan == nil { try requireCompanions() }
    if workload.segment?.isPart == true { try refuseAborting() }
    if replay.replay != nil, let other = (workload.given + pace.given).first {
      throw ValidationError("--replay and --\(other) exclude each other: a replay is sent as recorded.")
    }
    if replay.replay != nil, feedback.pollFeedback != nil {
      throw ValidationError("--replay and --poll-feedback exclude each other: a replay is sent as recorded.")
    }
    if replay.replay != nil {
      try target.requireOneIdentity(for: "--replay", "records name no topic, so one certificate is for all")
    }
    if feedback.pollFeedback != nil {
      try target.requireOneIdentity(for: "--poll-feedback", "each topic has a list of its own; run a load for each")
    }
  }

  /// A condition on the whole stream cannot end a segment.
  private func refuseAborting() throws {
    guard let one = result.threshold.first(where: { $0.threshold.aborts }) else { return }
    throw ValidationError(
      "--threshold \(one.threshold.argument) and --segment exclude each other: a segment knows only its part.")
  }

  /// Requirements of options that a plan file may meet instead of the command line.
  private func requireCompanions() throws {
    try target.requireIdentity()
    try pace.requireSchedule()
    try replay.requireReplay()
    try feedback.requirePolls()
    try web.requireWeb()
    try log.requireLog()
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
        ("replay", ReplayOptions.excluded), ("speed", ReplayOptions.excluded), ("poll-feedback", ["replay", "speed"]),
      ] + WorkloadOptions.alternatives)
    try merged.requireCompanions()
    try merged.checkFiles(plan: plan)
    try await LoadRun(merged).run()
  }

  private func checkFiles(plan: String?) throws {
    try refuseConflicts(
      reading: target.files + [plan, replay.replay].compactMap { $0 } + workload.files,
      writing: [
        ("--output", result.file), ("--output", result.file.map { $0 + PartialResult.suffix }),
        ("--history", result.history), ("--keylog", target.keylog), ("--junit", result.junit), ("--log", log.log),
        FilesInUse.standardOutput,
      ])
  }

  /// The plan. Reads the given files.
  func loadPlan() throws -> LoadPlan {
    var plan = LoadPlan()
    try target.apply(to: &plan)
    try workload.apply(to: &plan)
    try target.selectTopics(of: workload.payloadFile, in: &plan)
    try connections.apply(to: &plan)
    try pace.apply(to: &plan)
    try replay.apply(to: &plan, hasDuration: pace.duration != nil)
    try feedback.apply(to: &plan, target)
    plan.timelineLimit = result.timeline.value
    if plan.workload.segments > 1 { try refuseAborting() }
    if pace.ofWhole {
      do { try plan.takeSegment() } catch { throw ValidationError("--of-whole: \(error).") }
    }
    return plan
  }
}
