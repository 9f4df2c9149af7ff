import Measurement

extension RunReport {
  var setup: Section {
    let environment = result.environment
    var values: [Value] = []
    func add(_ name: String, _ text: String) { if !text.isEmpty { values.append(Value(name, Prose(text))) } }
    add("host", (environment.hosts ?? [environment.host]).joined(separator: ", "))
    add("kernel", environment.kernel)
    add(
      "processor",
      [environment.cpu, environment.cores > 0 ? "\(environment.cores) cores" : ""].filter { !$0.isEmpty }
        .joined(separator: ", "))
    add("memory", environment.memoryBytes > 0 ? Unit.bytes.text(Double(environment.memoryBytes)) : "")
    add("OpenSSL", environment.openssl)
    add("apnscope", environment.build)
    func add(_ name: String, plan key: String) { add(name, result.plan[key]?.text ?? "") }
    add("gateway", plan: "gateway")
    add("TLS", plan: "tls")
    add("cipher suites", plan: "ciphers")
    add("TLS 1.3 suites", plan: "tls13_suites")
    add("agreed on", suites)
    add("socket buffers", buffers)
    add("batch", plan: "batch")
    add("payload", plan: "payload")
    add("seed", plan: "seed")
    var blocks: [Block] = [values.isEmpty ? .paragraph("The result does not say where it was made.") : .values(values)]
    if !environment.command.isEmpty {
      blocks += [.heading("Command"), .preformatted(commandLine(environment.command))]
    }
    if !result.plan.isEmpty {
      let lines = result.plan.sorted { $0.key < $1.key }.map { "\($0.key) = \($0.value.text)" }
      blocks += [.heading("Plan, with every default"), .preformatted(lines.joined(separator: "\n"))]
    }
    return Section("Set-up", blocks)
  }

  /// The parameters of the handshakes, most often first.
  private var suites: String {
    let suites = (result.connections.suites ?? [:]).sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    if suites.count == 1 { return suites[0].key }
    return suites.map { "\($0.key) (\(grouped($0.value)))" }.joined(separator: ", ")
  }

  private var buffers: String {
    let sizes = [("SO_SNDBUF", "send_buffer"), ("TCP_NOTSENT_LOWAT", "not_sent_low_water")].compactMap { name, key in
      result.plan[key].map { "\(name) \($0.text)" }
    }
    let kind = result.plan["buffers"]?.text ?? ""
    return sizes.isEmpty || kind == "system" ? kind : "\(kind) (\(sizes.joined(separator: ", ")) bytes)"
  }

  var phases: Section {
    guard !result.phases.isEmpty else { return Section("Phases", [.paragraph("The result has no phases.")]) }
    var table = Table.numbers(
      [
        "phase", "length", "written", "per second", "resent", "accepted", "rejected", "discarded", "opened",
        "send lag p99",
      ],
      [])
    for phase in result.phases {
      let sendings = phase.sendings
      table.add(
        phase.name == .measured ? .strong(phase.name.rawValue) : Prose(phase.name.rawValue),
        Prose(Unit.seconds.text(phase.seconds)), Prose(grouped(sendings.written)),
        Prose(
          phase.seconds > 0 && result.merged?.together != false
            ? Unit.perSecond.text(Double(sendings.written) / phase.seconds) : "–"),
        Prose(grouped(sendings.resent)), Prose(grouped(sendings.accepted)), Prose(grouped(sendings.rejected)),
        Prose(grouped(sendings.discarded)), Prose(grouped(phase.connections.opened)),
        Prose(phase.sendLagUs.count == 0 ? "–" : phase.sendLagUs.text(phase.sendLagUs.quantile(0.99))))
    }
    return Section(
      "Phases",
      [
        .paragraph(
          result.measuredBy == nil
            ? "Rates and send lag are of the measured phase alone, other latencies of the whole run. Accepted is counted in the phase in which it was proven, which may be a later one."
            : "Rates and latencies, except those of connecting, cover only the measured phase. A sending and its fate are counted in the phase in which it was written."
        ), .table(table),
      ])
  }
}

extension RunResult.PlanValue {
  /// About as a plan file has it.
  var text: String {
    switch self {
    case .text(let text): text
    case .number(let number): decimal(number, 6).replacing(",", with: "")
    case .flag(let flag): "\(flag)"
    case .list(let list): list.joined(separator: " ")
    }
  }
}
