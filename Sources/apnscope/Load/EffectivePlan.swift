import LoadTest
import Measurement

/// What a load's options come to, every default filled in, by the names they have in a plan file.
struct EffectivePlan {
  private struct Setting {
    var name: String
    var value: RunResult.PlanValue
    /// What a plan file says; `nil` for what follows from other settings, from a trace or from the machine: it has to
    /// follow anew where the file is used, from what is typed over it.
    var given: RunResult.PlanValue?
  }

  private var settings: [Setting] = []

  private mutating func add(_ name: String, _ value: RunResult.PlanValue) {
    settings.append(Setting(name: name, value: value, given: value))
  }

  private mutating func add(_ name: String, _ value: RunResult.PlanValue, given: RunResult.PlanValue?) {
    settings.append(Setting(name: name, value: value, given: given))
  }

  /// - Parameter plan: what the command comes to.
  init(_ command: Load, _ plan: LoadPlan) {
    let (target, pace) = (command.target, command.pace)
    func text(_ name: String, _ value: String?) { if let value { add(name, .text(value)) } }
    func number(_ name: String, _ value: Double?) { if let value { add(name, .number(value)) } }
    func number(_ name: String, _ value: Int?, given: Int?) {
      if let value { add(name, .number(Double(value)), given: given.map { .number(Double($0)) }) }
    }
    func flag(_ name: String, _ value: Bool) { add(name, .flag(value)) }
    func time(_ name: String, _ value: Duration) { text(name, TimeSpan(value).defaultValueDescription) }

    text("gateway", "\(target.gateway.address)")
    text("identity", target.identity)
    text("key", target.key)
    text("pass_phrase_file", target.passPhraseFile)
    text("topic", target.topic)
    text("ca", target.ca)
    flag("no_verify", target.noVerify)
    flag("plain", target.plain)
    flag("allow_remote", target.allowRemote)
    text("tls", target.tls.defaultValueDescription)
    text("ciphers", target.ciphers)
    text("tls13_suites", target.tls13Suites)
    text("resume", target.resume.rawValue)
    text("keylog", target.keylog)

    if plan.replay == nil { addWorkload(plan.workload) }
    text("segment", "\(plan.workload.segment + 1)/\(plan.workload.segments)")

    if plan.replay != nil {
      text("replay", command.replay.replay)
      text("speed", command.replay.effectiveSpeed.defaultValueDescription)
      number("replay_limit", Double(command.replay.replayLimit.value))
    }

    if let rate = pace.rate { text("rate", "\(rate.perSecond)/s") }
    if let rate = pace.ratePerConnection { text("rate_per_connection", "\(rate.perSecond)/s") }
    if !pace.stage.isEmpty {
      add("stage", .list(pace.stage.map(\.text)))
    }
    if plan.replay == nil { flag("poisson", pace.poisson) }
    text("behind", plan.behind.rawValue)
    number("count", plan.count, given: pace.count?.value)
    add(
      "for", .text(TimeSpan(plan.duration).defaultValueDescription),
      given: pace.duration.map { .text($0.defaultValueDescription) })
    time("warm_up", plan.warmUp)
    time("drain", plan.drain)

    number("connections", Double(plan.connections.count))
    // More have nothing to do.
    number("threads", min(plan.threads, plan.connections.count), given: command.connections.threads?.value)
    if plan.batching.notifications != .max {
      text("batch", "\(plan.batching.notifications)")
    } else {
      text("batch", "\(plan.batching.bytes)B")
    }
    time("linger", plan.batching.linger)
    text("nagle", plan.connections.socket.noDelay == false ? "on" : "off")
    text("buffers", command.connections.buffers.rawValue)
    let (socket, buffers) = (plan.connections.socket, command.connections)
    number("send_buffer", socket.sendBuffer, given: buffers.sendBuffer?.bytes)
    number("not_sent_low_water", socket.notSentLowWater, given: buffers.notSentLowWater?.bytes)
    time("stagger", plan.connections.stagger)
    if let lifetime = plan.connections.lifetime { time("lifetime", lifetime) }
    number("connection_count", plan.connections.notifications.map(Double.init))
    time("connect_timeout", plan.connections.connectTimeout)
    time("handshake_timeout", plan.connections.handshakeTimeout)
    time("backoff", plan.connections.backoff)
    time("max_backoff", plan.connections.maximumBackoff)
    time("give_up", plan.connections.giveUp)
    text("markers", plan.usesMarkers ? "on" : "off")
    time("marker_timeout", plan.markerTimeout)
    number("max_attempts", Double(plan.maximumAttempts))
    number("unsettled_memory", Double(plan.unsettledMemory))
    flag("leave_unknown", !plan.resendsUnknown)
    number("timeline", Double(plan.timelineLimit))
    if !command.result.threshold.isEmpty {
      add("threshold", .list(command.result.threshold.map(\.threshold.expression)))
    }
  }

  /// What is made.
  private mutating func addWorkload(_ workload: WorkloadPlan) {
    func text(_ name: String, _ value: String) { add(name, .text(value)) }
    // What a JSON reader may round is a text.
    add("seed", workload.seed <= 1 << 53 ? .number(Double(workload.seed)) : .text("\(workload.seed)"))
    text("command", Self.mix(workload.commands) { "\($0)" })
    add("tokens", .number(Double(workload.tokens)))
    add("token_length", .number(Double(workload.tokenLength)))
    switch workload.payload {
    case .sizes(let sizes): text("payload", Self.mix(sizes) { NumberRange($0).defaultValueDescription })
    case .template(let template): text("payload_template", template)
    }
    text("priority", Self.mix(workload.priorities) { $0.map { "\($0)" } ?? "none" })
    text("expiration", Self.mix(workload.expirations, Self.text))
    if !workload.faults.isEmpty {
      text(
        "faults",
        workload.faults.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue)=\($0.value)" }
          .joined(separator: ","))
    }
  }

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

  /// As a plan file, which has in comments what nobody gave and what follows from the rest.
  var toml: String {
    settings.map { setting in
      setting.given.map { Self.assignment(setting.name, $0) } ?? "# " + Self.assignment(setting.name, setting.value)
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
