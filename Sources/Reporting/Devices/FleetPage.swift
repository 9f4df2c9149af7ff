import Measurement

/// The report of a fleet of simulated devices: when they had their notifications, and what became of their connections.
public struct FleetPage: Sendable {
  public var result: FleetResult
  /// The books of the gateway that the fleet was connected to; `nil`: they are not known.
  public var ledger: Ledger?
  /// The arguments of the command line that makes this report, for the footer; empty: unknown.
  public var command: [String]

  public init(_ result: FleetResult, ledger: Ledger? = nil, command: [String] = []) {
    (self.result, self.ledger, self.command) = (result, ledger, command)
  }

  private var books: FleetBooks? { ledger.map { FleetBooks(result, $0) } }

  /// Whether the gateway's books and those of the devices agree; `nil` without the gateway's, or if they cannot be
  /// compared.
  public var booksAgree: Bool? { books?.agree }

  /// Why the gateway's books and those of the devices cannot be compared; `nil`: they can, or the gateway's are not known.
  public var booksObstacle: String? { books?.obstacle }

  /// The report as a page.
  public var page: Page {
    let sections = [glance, latency, campaigns, localPush, storms, connections, books?.section, run].compactMap { $0 }
    let (devices, received) = (result.devices.asked, result.notifications.received)
    return Page(
      title: "Devices: \(counted(devices, "device")), \(counted(received, "notification"))",
      subtitle: Prose(
        "from \(result.started) · to \(result.ended)\(result.segment == "1/1" ? "" : " · segment \(result.segment)")"),
      sections: sections,
      footer: command.isEmpty ? "Made by apnscope." : "Made by " + .code(commandLine(command)))
  }

  // MARK: at a glance

  private var glance: Section {
    let (devices, notifications, connections) = (result.devices, result.notifications, result.connections)
    let latency = result.latency
    let (since, online) =
      latency.fromDue.onlineUs.count > 0
      ? ("it was due", latency.fromDue.onlineUs) : ("the gateway read it", latency.onlineUs)
    var figures = [
      Figure(
        "devices online", grouped(devices.everOnline),
        note: "of \(grouped(devices.asked)); \(grouped(devices.onlineAtEnd)) at the end",
        tone: devices.everOnline < devices.asked ? .warning : .neutral),
      Figure(
        "received", grouped(notifications.received),
        note:
          "\(grouped(notifications.online)) online, \(grouped(notifications.stored)) stored, \(grouped(notifications.repeated)) repeated"
      ),
    ]
    if online.count > 0 {
      figures.append(
        Figure(
          "connected devices have it after", online.text(online.quantile(0.5)),
          note: "median, since \(since); p99 \(online.text(online.quantile(0.99)))"))
    }
    if result.campaigns.count == 1, let last = result.campaigns[0].lastOnlineS {
      figures.append(
        Figure(
          "the last of them after", span(last), note: "since the first \(beginning(result.campaigns[0]))"))
    }
    figures += [
      Figure(
        "connections", grouped(connections.opened), note: "\(grouped(connections.failures)) failed",
        tone: connections.failures > 0 ? .warning : .neutral),
      Figure(
        "errors of the gateway", grouped(result.faults.values.reduce(0, +)),
        tone: result.faults.isEmpty ? .neutral : .bad),
    ]
    return Section("At a glance", [.callout(verdict.tone, Prose(verdict.text))] + picture + [.figures(figures)])
  }

  /// The result in a sentence.
  private var verdict: (tone: Tone, text: String) {
    let broken = result.invariants.filter { !$0.holds }
    if !broken.isEmpty {
      return (.bad, "The counts do not add up: \(broken.map { "\($0.name) (\($0.detail))" }.joined(separator: "; ")).")
    }
    if result.devices.everOnline == 0 { return (.bad, "No device was ever online: nothing was measured.") }
    if books?.agree == false { return (.bad, "The books of both sides disagree.") }
    if !result.faults.isEmpty {
      return (.bad, "The gateway made errors: \(listed(result.faults)).")
    }
    if result.notifications.received == 0 { return (.warning, "No notification came.") }
    var sentences = ["\(counted(result.notifications.received, "notification")) came, each once."]
    if let books, books.agree == true { sentences.append("The books of both sides agree.") }
    if let booksObstacle { sentences.append("The books of both sides were not compared: \(booksObstacle).") }
    if ledger == nil {
      sentences.append("Notifications that were not delivered are in the simulator's ledger only (--ledger).")
    }
    let isGood = result.warnings.isEmpty && !result.interrupted && booksObstacle == nil
    return (isGood ? .good : .warning, sentences.joined(separator: " "))
  }

  private var picture: [Block] {
    let samples = result.timeline.samples
    guard let first = samples.first?.time, let last = samples.last?.time else { return [] }
    let period = Double(max(1, result.timeline.periodS))
    var time = Axis.time("time of day, UTC", bounds: 0...(Double(last - first) + period))
    time.clock = Double(first % 86_400)
    func points(_ value: (FleetResult.Sample) -> Int) -> [Point] {
      samples.map { Point(Double($0.time - first) + period / 2, Double(value($0)) / period) }
    }
    let regions = result.storms.compactMap { storm -> Chart.Region? in
      guard let began = unixSeconds(result.started), abs(began) < 9e9 else { return nil }
      let start = began - Double(first) + storm.atS
      return Chart.Region(from: start, to: start + max(storm.lastBackS ?? storm.withinS, period), label: "storm")
    }
    return [
      .stack([
        Chart(
          title: "Notifications received per second", x: time, y: Axis("notifications per second", unit: .perSecond),
          marks: [.area("", points(\.received), color: .blue)], regions: regions, height: 128),
        Chart(
          title: "Devices online", x: time, y: Axis("devices online", unit: .count),
          marks: [.line("", points(\.onlineS), color: .green)], regions: regions, height: 70),
        Chart(
          title: "Connections opened per second", x: time, y: Axis("connections per second", unit: .perSecond),
          marks: [.area("", points(\.opened), color: .orange)], regions: regions, height: 56),
      ])
    ]
  }

  // MARK: times

  private var latency: Section? {
    let latency = result.latency
    let rows: [(name: String, of: LatencyHistogram)] = [
      ("from due, online", latency.fromDue.onlineUs), ("from due, stored", latency.fromDue.storedUs),
      ("from due, repeated", latency.fromDue.repeatedUs), ("from write, online", latency.fromWritten.onlineUs),
      ("from write, stored", latency.fromWritten.storedUs), ("from write, repeated", latency.fromWritten.repeatedUs),
      ("from the gateway's read, online", latency.onlineUs), ("from the gateway's read, stored", latency.storedUs),
      ("from the gateway's read, repeated", latency.repeatedUs),
    ].filter { $0.1.count > 0 }
    guard !rows.isEmpty else { return nil }
    var blocks: [Block] = [
      .paragraph(
        "From when a notification was due, was written by its sender (both as its payload tells), and was read by the gateway, to when the device had it. Online: the gateway sent it as it came. Stored: it waited at the gateway. Repeated: it had been sent on an earlier connection."
      ),
      .table(.numbers(["to the device"] + LatencyHistogram.columns, rows.map { [$0.name] + $0.of.cells })),
      .chart(
        .percentiles("Percentiles of the time to the device", y: "time", rows.filter { $0.name.hasSuffix("online") })),
    ]
    if result.notifications.early > 0 {
      blocks.append(
        .callout(
          .warning,
          "\(grouped(result.notifications.early)) notifications tell a time after the one at which they came: clocks differ, and these times are wrong."
        ))
    }
    return Section("Time to the device", blocks)
  }

  private func beginning(_ campaign: FleetResult.Campaign) -> String {
    campaign.dated == campaign.received ? "was due" : "was read by the gateway"
  }

  private static let mostRows = 100

  private var campaigns: Section? {
    guard !result.campaigns.isEmpty else { return nil }
    var table = Table([
      .init("campaign"), .init("received", .right), .init("online", .right), .init("last connected device", .right),
      .init("last device", .right), .init("since the first"),
    ])
    for campaign in result.campaigns.prefix(Self.mostRows) {
      table.add(
        Prose(campaign.name ?? "without a name"), Prose(grouped(campaign.received)), Prose(grouped(campaign.online)),
        Prose(campaign.lastOnlineS.map(span) ?? "–"), Prose(campaign.lastS.map(span) ?? "–"), Prose(beginning(campaign))
      )
    }
    var blocks: [Block] = [
      .table(table),
      .paragraph(
        "The last device is the last of those that received one. A device that was away to the end is in the gateway's ledger."
      ),
    ]
    if result.campaigns.count > Self.mostRows {
      blocks.append(.paragraph(Prose("\(grouped(result.campaigns.count - Self.mostRows)) more are in the result.")))
    }
    return Section("Campaigns", blocks)
  }

  private var localPush: Section? {
    guard let push = result.localPush else { return nil }
    var table = Table([.init("local push"), .init("", .right)])
    for (name, count) in push.joins.sorted(by: { $0.key < $1.key }).prefix(Self.mostRows) {
      table.add(Prose("joinings of \(name)"), Prose(grouped(count)))
    }
    table.add("joinings of other networks", Prose(grouped(push.joinsElsewhere)))
    table.add("registrations", Prose(grouped(push.registrations)))
    table.add("of these acknowledged", Prose(grouped(push.registered)))
    table.add(
      "of these not acknowledged in time", Prose(grouped(push.timedOut)), tone: push.timedOut > 0 ? .warning : .neutral)
    table.add("texts", Prose(grouped(push.texts)))
    table.add("invitations to calls", Prose(grouped(push.invitations)))
    table.add(
      "of these too late to be answered", Prose(grouped(push.missedCalls)),
      tone: push.missedCalls > 0 ? .warning : .neutral)
    table.add("heartbeats", Prose(grouped(push.heartbeats)))
    var blocks: [Block] = [.table(table)]
    let networks = push.networks.sorted { $0.key < $1.key }.prefix(Self.mostRows)
    if !networks.isEmpty {
      blocks.append(
        .table(
          .numbers(
            ["network", "registered", "texts", "invitations", "heartbeats"],
            networks.map { name, network in
              [
                name, grouped(network.registered), grouped(network.texts), grouped(network.invitations),
                grouped(network.heartbeats),
              ]
            })))
    }
    if push.invitationUs.count > 0 {
      blocks.append(
        .table(
          .numbers(
            ["from the server's sending"] + LatencyHistogram.columns, [["invitations"] + push.invitationUs.cells])))
    }
    if push.untimed > 0 {
      blocks.append(
        .paragraph(
          Prose("\(grouped(push.untimed)) texts and invitations do not say when they were sent: no time has them.")))
    }
    return Section("Local push", blocks)
  }

  private var storms: Section? {
    guard !result.storms.isEmpty else { return nil }
    var table = Table([
      .init("storm"), .init("lost", .right), .init("back", .right), .init("last back", .right),
      .init("most connections", .right), .init("last that had waited", .right),
    ])
    for storm in result.storms.prefix(Self.mostRows) {
      table.add(
        Prose(
          "after \(span(storm.atS)), within \(span(storm.withinS))\(storm.network.map { ", on \($0)" } ?? "")"),
        Prose(grouped(storm.lost)),
        Prose(grouped(storm.back)),
        Prose(storm.lastBackS.map(span) ?? "–"), Prose("\(grouped(storm.peakOpenedPerS))/s"),
        Prose(storm.lastStoredS.map(span) ?? "–"), tone: storm.back < storm.lost ? .warning : .neutral)
    }
    return Section("Storms", [.table(table)])
  }

  private var connections: Section {
    let (connections, latency) = (result.connections, result.latency)
    var ends = Table([.init("connections"), .init("", .right)])
    ends.add("attempted", Prose(grouped(connections.attempted)))
    ends.add("opened", Prose(grouped(connections.opened)))
    for (reason, count) in connections.failed.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
      ends.add(Prose("failed: \(reason)"), Prose(grouped(count)), tone: .warning)
    }
    if connections.abandoned > 0 { ends.add("abandoned at the end", Prose(grouped(connections.abandoned))) }
    for (cause, count) in connections.closed.byName.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) })
    where count > 0 {
      ends.add("closed: " + .code(cause), Prose(grouped(count)))
    }
    return Section(
      "Connections",
      [
        .table(ends),
        .table(
          .numbers(
            ["from the attempt"] + LatencyHistogram.columns,
            [["to a connection"] + latency.connectUs.cells, ["to being online"] + latency.readyUs.cells])),
      ])
  }

  private var run: Section {
    let resources = result.resources
    let values = [
      Value("host", Prose(result.environment.host)), Value("apnscope", Prose(result.environment.apnscope)),
      Value("processor time", Prose(span(resources.cpuUserS + resources.cpuSystemS))),
      Value("memory", Prose("\(grouped(resources.maxRssBytes >> 20)) MiB")),
      Value(
        "registrations", Prose("\(grouped(result.registrations.tokens)) of \(grouped(result.registrations.asked))")),
    ]
    var blocks: [Block] = [.values(values)]
    if !result.warnings.isEmpty { blocks.insert(.list(result.warnings.map { Prose($0) }), at: 0) }
    return Section("The run", blocks)
  }
}
