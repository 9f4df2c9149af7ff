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
    add("apnscope", environment.apnscope)
    for (name, key) in [
      ("gateway", "gateway"), ("TLS", "tls"), ("cipher suites", "ciphers"), ("TLS 1.3 suites", "tls13_suites"),
      ("socket buffers", "buffers"), ("batch", "batch"), ("payload", "payload"), ("seed", "seed"),
    ] {
      if let value = result.plan[key] { add(name, value.text) }
    }
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
        phase.name == "measured" ? .strong(phase.name) : Prose(phase.name), Prose(Unit.seconds.text(phase.seconds)),
        Prose(grouped(sendings.written)),
        Prose(phase.seconds > 0 ? Unit.perSecond.text(Double(sendings.written) / phase.seconds) : "–"),
        Prose(grouped(sendings.resent)), Prose(grouped(sendings.accepted)), Prose(grouped(sendings.rejected)),
        Prose(grouped(sendings.discarded)), Prose(grouped(phase.connections.opened)),
        Prose(phase.sendLagUs.count == 0 ? "–" : phase.sendLagUs.text(phase.sendLagUs.quantile(0.99))))
    }
    return Section(
      "Phases",
      [
        .paragraph(
          "Rates and latencies are of the measured phase alone. Accepted is counted in the phase in which it was proven, which may be a later one."
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
