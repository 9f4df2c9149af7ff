import LoadTest
import Measurement

/// The effective options of a load, with all defaults, by their names in a plan file.
struct EffectivePlan {
  private struct Setting {
    var name: String
    var value: RunResult.PlanValue
    /// The value in a plan file; `nil` for values derived from other settings, a trace or the machine, which have to be
    /// derived again where the file is used.
    var given: RunResult.PlanValue?
    /// A remark for the reader of the plan file.
    var note: String?
  }

  private var settings: [Setting] = []

  /// - Parameter plan: the plan that results from the command.
  init(_ command: Load, _ plan: LoadPlan) {
    addTarget(command.target)
    if plan.replay == nil { addWorkload(plan.workload, command.workload) }
    addSegment(command.workload, plan)
    if plan.replay != nil { addReplay(command.replay) }
    addPace(command.pace, plan)
    addConnections(command.connections, plan)
    addProof(plan)
    if let poll = command.feedback.pollFeedback { addFeedback(command.feedback, poll) }
    if !command.result.threshold.isEmpty {
      add("threshold", .list(command.result.threshold.map(\.threshold.argument)))
    }
  }

  // MARK: settings by kind; one without a value is omitted

  private mutating func add(_ name: String, _ value: RunResult.PlanValue) {
    settings.append(Setting(name: name, value: value, given: value))
  }

  private mutating func add(_ name: String, _ value: RunResult.PlanValue, given: RunResult.PlanValue?) {
    settings.append(Setting(name: name, value: value, given: given))
  }

  /// A list only of several.
  private mutating func texts(_ name: String, _ values: [String]) {
    if values.count > 1 { add(name, .list(values)) } else { text(name, values.first) }
  }
  private mutating func text(_ name: String, _ value: String?) { if let value { add(name, .text(value)) } }
  private mutating func number(_ name: String, _ value: Int?) { if let value { add(name, .number(Double(value))) } }
  private mutating func number(_ name: String, _ value: Int?, given: Int?) {
    if let value { add(name, .number(Double(value)), given: given.map { .number(Double($0)) }) }
  }
  private mutating func flag(_ name: String, _ value: Bool) { add(name, .flag(value)) }
  private mutating func time(_ name: String, _ value: Duration?) {
    text(name, value.map { TimeSpan($0).defaultValueDescription })
  }

  // MARK: options by their groups

  private mutating func addTarget(_ target: TargetOptions) {
    text("gateway", "\(target.gateway.address)")
    texts("identity", target.identity)
    text("key", target.key)
    text("pass_phrase_file", target.passPhraseFile)
    texts("topic", target.topic)
    text("ca", target.ca)
    flag("no_verify", target.noVerify)
    flag("plain", target.plain)
    flag("allow_remote", target.allowRemote)
    text("tls", target.tls.defaultValueDescription)
    text("ciphers", target.ciphers)
    text("tls13_suites", target.tls13Suites)
    text("resume", target.resume.rawValue)
    text("keylog", target.keylog)
  }

  /// The workload.
  private mutating func addWorkload(_ workload: WorkloadPlan, _ options: WorkloadOptions) {
    // Numbers that a JSON reader may round are text.
    add("seed", workload.seed <= 1 << 53 ? .number(Double(workload.seed)) : .text("\(workload.seed)"))
    text("command", Self.mix(workload.commands) { "\($0)" })
    if let list = workload.tokenList {
      text("token_file", options.tokenFile)
      number("tokens", list.differentCount, given: nil)
      number("token_length", list.length, given: nil)
    } else {
      number("tokens", workload.tokens)
      number("token_length", workload.tokenLength)
    }
    switch workload.payload {
    case .sizes(let sizes): text("payload", Self.mix(sizes) { NumberRange($0).defaultValueDescription })
    case .template(let template): text("payload_template", template)
    case .listed: text("payload_file", options.payloadFile)
    case .kinds(let kinds): text("payload_kind", Self.mix(kinds) { $0.rawValue })
    }
    text("priority", Self.mix(workload.priorities) { $0.map { "\($0)" } ?? "none" })
    text("expiration", Self.mix(workload.expirations, Self.text))
    let faults = workload.faults.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue)=\($0.value)" }
    let payloads = workload.payloadFaults.sorted { $0.key < $1.key }.map { "payload=\($0.key):\($0.value)" }
    if !faults.isEmpty || !payloads.isEmpty { text("faults", (faults + payloads).joined(separator: ",")) }
  }

  /// A segment that an engine has told is told again where the file is used.
  private mutating func addSegment(_ options: WorkloadOptions, _ plan: LoadPlan) {
    let segment = "\(plan.workload.segment + 1)/\(plan.workload.segments)"
    let found = options.segment?.auto
    var setting = Setting(name: "segment", value: .text(segment), given: .text(found ?? segment))
    if found != nil { setting.note = "\(segment): \((try? options.foundSegment())?.source ?? "")" }
    settings.append(setting)
  }

  private mutating func addReplay(_ replay: ReplayOptions) {
    text("replay", replay.replay)
    text("speed", replay.effectiveSpeed.defaultValueDescription)
    number("replay_limit", replay.replayLimit.value)
  }

  private mutating func addPace(_ pace: PaceOptions, _ plan: LoadPlan) {
    if let rate = pace.rate { text("rate", "\(rate.perSecond)/s") }
    if let rate = pace.ratePerConnection { text("rate_per_connection", "\(rate.perSecond)/s") }
    if !pace.stage.isEmpty { add("stage", .list(pace.stage.map(\.text))) }
    if plan.replay == nil { flag("poisson", pace.poisson) }
    text("behind", plan.behind.rawValue)
    number("count", plan.whole?.count ?? plan.count, given: pace.count?.value)
    if pace.ofWhole { flag("of_whole", true) }
    if let start = pace.startAt {
      text("start_at", start.defaultValueDescription)
      text("late", pace.late.rawValue)
    }
    add(
      "for", .text(TimeSpan(plan.duration).defaultValueDescription),
      given: pace.duration.map { .text($0.defaultValueDescription) })
    time("warm_up", plan.warmUp)
    time("drain", plan.drain)
  }

  private mutating func addConnections(_ options: ConnectionOptions, _ plan: LoadPlan) {
    let connections = plan.connections
    number("connections", plan.whole?.connections ?? connections.count)
    number("threads", plan.loopCount, given: options.threads?.value)
    let batching = plan.batching
    text("batch", batching.notifications == .max ? "\(batching.bytes)B" : "\(batching.notifications)")
    time("linger", batching.linger)
    text("nagle", connections.socket.noDelay == false ? "on" : "off")
    text("buffers", options.buffers.rawValue)
    number("send_buffer", connections.socket.sendBuffer, given: options.sendBuffer?.bytes)
    number("not_sent_low_water", connections.socket.notSentLowWater, given: options.notSentLowWater?.bytes)
    time("stagger", connections.stagger)
    time("lifetime", connections.lifetime)
    number("connection_count", connections.notifications)
    time("connect_timeout", connections.connectTimeout)
    time("handshake_timeout", connections.handshakeTimeout)
    time("backoff", connections.backoff)
    time("max_backoff", connections.maximumBackoff)
    time("give_up", connections.giveUp)
  }

  /// Options that determine the fates of notifications.
  private mutating func addProof(_ plan: LoadPlan) {
    text("markers", plan.usesMarkers ? "on" : "off")
    time("marker_timeout", plan.markerTimeout)
    number("max_attempts", plan.maximumAttempts)
    number("unsettled_memory", plan.unsettledMemory)
    flag("leave_unknown", !plan.resendsUnknown)
    number("timeline", plan.timelineLimit)
  }

  private mutating func addFeedback(_ options: FeedbackOptions, _ poll: PollArgument) {
    text("poll_feedback", poll.defaultValueDescription)
    flag("no_prune", options.noPrune)
    number("max_pruned", options.maxPruned.value)
    time("poll_timeout", options.pollTimeout.duration)
    number("max_tuples", options.maxTuples.value)
  }

  // MARK: values as they are typed

  private static func text(_ expiration: WorkloadPlan.Expiration?) -> String {
    switch expiration {
    case .at(let time): "\(time)"
    case .after(let seconds): "+\(seconds)s"
    case nil: "none"
    }
  }

  private static func mix<Value>(_ mix: WorkloadPlan.Mix<Value>, _ text: (Value) -> String) -> String {
    mix.parts.map { mix.parts.count == 1 ? text($0.value) : "\(text($0.value))=\($0.weight)" }.joined(separator: ",")
  }

  var values: [String: RunResult.PlanValue] { Dictionary(settings.map { ($0.name, $0.value) }) { $1 } }

  /// The plan file of a trial of a search: of the whole stream, whoever sends it, with the trial's own pace.
  var trial: String {
    let kept = settings.filter { !["segment", "of_whole"].contains($0.name) }
    var trial = EffectivePlan(kept)
    trial.add("of_whole", .flag(true))
    return trial.toml + "\n"
  }

  private init(_ settings: [Setting]) { self.settings = settings }

  /// The plan as a plan file, with defaults and derived values as comments.
  var toml: String {
    settings.map { setting in
      let line =
        setting.given.map { Self.assignment(setting.name, $0) } ?? "# " + Self.assignment(setting.name, setting.value)
      return setting.note.map { "\(line)  # \($0)" } ?? line
    }.joined(separator: "\n")
  }

  private static func assignment(_ name: String, _ value: RunResult.PlanValue) -> String {
    switch value {
    case .text(let text): "\(name) = \(quoted(text))"
    case .number(let number):
      "\(name) = \(number == number.rounded() && abs(number) <= 0x1p53 ? "\(Int(number))" : "\(number)")"
    case .flag(let flag): "\(name) = \(flag)"
    case .list(let list): "\(name) = [\(list.map(quoted).joined(separator: ", "))]"
    }
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case "\t": quoted += "\\t"
      default:
        let digits = String(scalar.value, radix: 16)
        if scalar.value < 0x20 || scalar.value == 0x7f {
          quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        } else {
          quoted.unicodeScalars.append(scalar)
        }
      }
    }
    return quoted + "\""
  }
}
