import DeviceFleet
import GatewaySimulator
import Measurement

/// The effective options of a fleet, with all defaults, by their names with `_` for `-`.
struct FleetSettings {
  private(set) var values: [String: RunResult.PlanValue] = [:]
  private var names: [String] = []

  /// - Parameter plan: the plan that results from the command.
  init(_ command: Devices, _ plan: FleetPlan) {
    let (target, fleet, presence, connections) = (command.target, command.fleet, command.presence, command.connections)
    if let localPush = plan.localPush {
      set("local_push", command.localPush.localPush.map { .text("\($0.address)") })
      if !localPush.networks.isEmpty {
        set(
          "network",
          .list(
            localPush.networks.map { network in
              let server = network.server.map { ",at=\(SimulatorOptions.Address(host: $0.host, port: $0.port))" } ?? ""
              return "\(network.name),share=\(network.share)\(server)"
            }))
      }
      set("silence", time(localPush.silence))
      set("request_timeout", time(localPush.requestTimeout))
      set("call_time", time(localPush.callTime))
    } else {
      set("gateway", .text("\(target.gateway.address)"))
    }
    set("ca", target.ca.map { .text($0) })
    set("no_verify", .flag(target.noVerify))
    set("pin", target.pin.map { .text($0.text) })
    set("plain", .flag(target.plain))
    set("allow_remote", .flag(target.allowRemote))
    if !target.plain { set("tls", .text(target.tls.defaultValueDescription)) }
    set("count", .number(Double(plan.count)))
    // Numbers that a JSON reader may round are text.
    set("first", plan.first <= 1 << 53 ? .number(Double(plan.first)) : .text("\(plan.first)"))
    set("segment", .text("\(plan.segment + 1)/\(plan.segments)"))
    set("seed", plan.tokenSeed.map { $0 <= 1 << 53 ? .number(Double($0)) : .text("\($0)") })
    set("topic", plan.topics.count == 1 ? .text(plan.topics[0]) : .list(plan.topics))
    set("environment", .text(fleet.environment.rawValue))
    set("language", fleet.language.map { .text($0) })
    set("acknowledge_delay", time(plan.acknowledging.delay))
    set("never_acknowledge", .number(plan.acknowledging.neverShare))
    set("low_power", .number(plan.presence.lowPowerShare))
    set("for", plan.duration.map(time))
    set("until_idle", plan.untilIdle.map(time))
    set("online_for", plan.presence.online.map(length))
    if plan.presence.online != nil { set("offline_for", length(plan.presence.offline)) }
    let absences = plan.presence.absences.map {
      "\(text($0.span.lowerBound))-\(text($0.span.upperBound)):\($0.share)"
    }
    if !absences.isEmpty { set("offline", .list(absences)) }
    let storms = plan.presence.storms.map { storm in
      "\(text(storm.time)):\(text(storm.within))\(storm.network.map { ",network=\($0)" } ?? "")"
    }
    if !storms.isEmpty { set("storm", .list(storms)) }
    set("schedule", presence.schedule.map { .text($0) })
    switch plan.presence.restoring {
    case .rate(let rate)?: set("restore", .text("\(rate)/s"))
    case .share(let share)?: set("restore", .text("\(share)"))
    case nil: break
    }
    set("reset_on_leave", .number(plan.presence.resetShare))
    set("connect_rate", .number(plan.connections.rate))
    set("max_connecting", .number(Double(plan.connections.maximumConnecting)))
    set("connect_timeout", time(plan.connections.connectTimeout))
    set("handshake_timeout", time(plan.connections.handshakeTimeout))
    set("backoff", time(plan.connections.backoff))
    set("max_backoff", time(plan.connections.maximumBackoff))
    set("give_up", time(plan.giveUp))
    set("threads", .number(Double(plan.threads)))
    set("max_message", .number(Double(connections.maxMessage.bytes)))
    set("max_buffered", .number(Double(connections.maxBuffered.bytes)))
    set("timeline", .number(Double(plan.limits.samples)))
    set("received", command.result.received.map { .text($0) })
    set("devices", .number(Double(plan.devices)))
  }

  /// A line for each option.
  var text: String {
    names.compactMap { name in values[name].map { "\(name) = \(Self.text($0))" } }.joined(separator: "\n")
  }

  private static func text(_ value: RunResult.PlanValue) -> String {
    switch value {
    case .text(let text): quoted(text)
    case .number(let number): number == number.rounded() && abs(number) < 1e15 ? "\(Int(number))" : "\(number)"
    case .flag(let flag): "\(flag)"
    case .list(let texts): "[\(texts.map(quoted).joined(separator: ", "))]"
    }
  }

  private static func quoted(_ text: String) -> String {
    "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
  }

  private mutating func set(_ name: String, _ value: RunResult.PlanValue?) {
    guard let value else { return }
    values[name] = value
    names.append(name)
  }

  private func text(_ time: Duration) -> String { TimeSpan(time).defaultValueDescription }

  private func time(_ time: Duration) -> RunResult.PlanValue { .text(text(time)) }

  private func length(_ length: PresencePlan.Length) -> RunResult.PlanValue {
    switch length {
    case .mean(let mean): time(mean)
    case .range(let range): .text("\(text(range.lowerBound))..\(text(range.upperBound))")
    }
  }
}
