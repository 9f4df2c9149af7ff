import Measurement

/// The report of a provider under test: a gateway's books, its verdict, and what happened over time if records were kept.
public struct ProviderPage: Sendable {
  public var ledger: Ledger
  /// The trace of the gateway's records; `nil`: there are none.
  public var trace: TraceReport?
  /// The arguments of the command line that makes this report, for the footer; empty: unknown.
  public var command: [String]
  /// The maximum number of rows of a table.
  public var rows: Int

  public init(_ ledger: Ledger, trace: TraceReport? = nil, command: [String] = [], rows: Int = 50) {
    (self.ledger, self.trace, self.command, self.rows) = (ledger, trace, command, rows)
  }

  private var verdict: ProviderVerdict? { ledger.verdict }

  /// Sentences, without a full stop, about records that are not those of the ledger's run, or not all; empty: they are, or
  /// there are none.
  package var recordsObstacles: [String] {
    guard let trace else { return [] }
    var obstacles: [String] = []
    let count = trace.inspection.summary.notifications
    // A selection is a part on purpose, and a reader may not see all records beside a gap.
    if let records = ledger.records, records.lost == 0, trace.inspection.selection == nil,
      count != records.notifications
    {
      obstacles.append(
        "the records have \(counted(count, "notification")), and the ledger counts \(grouped(records.notifications)): the records are of another run, or not all of this one"
      )
    }
    if let started = trace.started, let first = unixSeconds(started), let from = unixSeconds(ledger.started),
      let to = unixSeconds(ledger.ended), first < from - 1 || first + trace.lengthS > to + 1
    {
      obstacles.append(
        "the records are of \(started) and \(span(trace.lengthS)) from then, which is not within the run from \(ledger.started) to \(ledger.ended): the records are of another run, or a clock was set"
      )
    }
    return obstacles
  }

  /// Warnings about the records, for the first lines of the page.
  private var recordsWarnings: [Block] {
    let obstacles = recordsObstacles.map { "\($0.prefix(1).uppercased())\($0.dropFirst())." }
    return (obstacles + (trace?.warnings ?? [])).map { .callout(.warning, Prose($0)) }
  }

  /// The report as a page.
  public var page: Page {
    var sections = [glance]
    if let verdict {
      sections.append(Section("Outcomes", verdict.stories.blocks))
      if !verdict.errors.isEmpty { sections.append(answers(verdict)) }
      sections += requests(verdict)
      sections.append(sending(verdict))
    }
    // Over time, and everything else that only records have.
    if let trace {
      let page = TracePage(trace, rows: rows)
      // The records prove less than the gateway knew.
      if verdict == nil { sections += page.stories + page.answers + (page.hasBinary ? [page.errors] : []) }
      if let missing = page.missing { sections.append(missing) }
      sections += page.providerSections
    }
    let books = [devices, feedback, payloads, connections].compactMap { $0 }
    // The glossary is the last.
    if sections.last?.isFolded == true {
      sections.insert(contentsOf: books, at: sections.count - 1)
    } else {
      sections += books
    }
    return Page(
      title:
        "Provider: \(ledger.gateway.received == 0 ? "nothing arrived" : "\(grouped(ledger.gateway.received)) notifications")",
      subtitle: Prose("from \(ledger.started) · to \(ledger.ended) · a simulated gateway"), sections: sections,
      footer: command.isEmpty ? "Made by apnscope." : "Made by " + .code(commandLine(command)))
  }

  // MARK: at a glance

  private var glance: Section {
    let gateway = ledger.gateway
    let rejected = gateway.allRejected
    var figures = [
      Figure(
        "received", grouped(gateway.received),
        note:
          "\(grouped(gateway.accepted)) accepted, \(grouped(rejected)) rejected, \(grouped(gateway.discarded)) discarded"
      ),
      Figure("connections", grouped(gateway.connections), note: "\(grouped(gateway.resumed)) resumed"),
    ]
    guard let verdict else {
      let why = "There is no verdict: the run was without --verdict, or several gateways shared the load."
      return Section(
        "At a glance", recordsWarnings + [.callout(.neutral, Prose(why))] + picture + [.figures(figures)])
    }
    let stories = verdict.stories
    figures += [
      Figure("distinct", grouped(stories.total), note: "\(grouped(verdict.sendings)) sendings"),
      Figure(
        "lost",
        verdict.mayBeLost == stories.lost
          ? grouped(stories.lost) : "\(grouped(stories.lost)) to \(grouped(verdict.mayBeLost))",
        note:
          "\(grouped(verdict.notSentAgain)) of \(grouped(verdict.discarded)) discarded sendings were not sent again",
        tone: stories.lost > 0 ? .bad : verdict.mayBeLost > 0 ? .warning : .good),
      Figure(
        "accepted twice", grouped(stories.acceptedTwice), tone: stories.acceptedTwice > 0 ? .warning : .neutral),
    ]
    if let resend = verdict.resend {
      figures.append(Figure("sent again after", span(resend.p50S), note: "median; the last after \(span(resend.maxS))"))
    }
    var blocks = recordsWarnings
    blocks += [.callout(tone(verdict), Prose(sentence(verdict)))] + picture + [.figures(figures)]
    if let expectations = ledger.expectations { blocks += self.expectations(expectations) }
    if !verdict.findings.isEmpty {
      var table = Table([.init("finding")])
      for finding in verdict.findings { table.add(Prose(finding.text), tone: finding.kind.tone) }
      blocks += [.heading("Findings"), .table(table)]
    }
    return Section("At a glance", blocks)
  }

  /// The records over time; without them what each error threw away; without errors, what became of all.
  private var picture: [Block] {
    if let trace {
      let picture = TracePage(trace, rows: rows).picture
      if !picture.isEmpty { return picture }
    }
    if let chart = losses?.chart { return [.chart(chart, caption: Prose(LossPicture.caption))] }
    let gateway = ledger.gateway
    guard gateway.received > 0 else { return [] }
    let fates: [(name: String, count: Double, color: Color)]
    if let stories = verdict?.stories, stories.total > 0 {
      fates = StoryOutcome.allCases.filter { stories[$0] > 0 }.map { outcome in
        let color: Color =
          switch TracePage.tone(outcome.rawValue) {
          case .good: .blue
          case .bad: .vermillion
          default: .orange
          }
        return (outcome.words, Double(stories[outcome]), color)
      }
    } else {
      let rejected = gateway.rejected.values.reduce(0) { $0 + Double($1) }
      fates = [
        ("accepted", Double(gateway.accepted), Color.blue), ("rejected", rejected, .orange),
        ("discarded", Double(gateway.discarded), .vermillion),
      ].filter { $0.1 > 0 }
    }
    let marks = fates.enumerated().map { index, fate in
      Mark.bars("", [Point(Double(index), fate.count)], color: fate.color)
    }
    let chart = Chart(
      title: "What became of the notifications", x: .categories(fates.map { "\($0.name) \(grouped($0.count))" }),
      y: Axis(verdict == nil ? "sendings" : "distinct notifications", unit: .count), marks: marks, height: 110)
    return [.chart(chart)]
  }

  /// The verdict's error responses over the time of the run.
  private var losses: LossPicture? {
    guard let verdict, let start = unixSeconds(ledger.started), let end = unixSeconds(ledger.ended), end > start,
      abs(start) < 9e9
    else { return nil }
    var time = Axis.time("time of day, UTC", bounds: 0...(end - start))
    time.clock = start - (start / 86_400).rounded(.down) * 86_400
    let losses = verdict.errors.compactMap { row -> LossPicture.Loss? in
      guard let at = row.time.flatMap(unixSeconds) else { return nil }
      return LossPicture.Loss(
        at: at - start, discarded: row.discarded ?? 0, sentAgain: row.sentAgain, backAfter: row.lastResentS,
        words: "connection \(row.connection), status \(row.status) \(row.statusName)")
    }
    return LossPicture(losses: losses, time: time)
  }

  private func tone(_ verdict: ProviderVerdict) -> Tone {
    if verdict.stories.lost > 0 { return .bad }
    return verdict.mayBeLost > 0 || verdict.notObserved > 0 || verdict.stories.acceptedTwice > 0 ? .warning : .good
  }

  /// The verdict in a sentence.
  private func sentence(_ verdict: ProviderVerdict) -> String {
    let stories = verdict.stories
    var parts: [String] = []
    if stories.total == 0 { return "Nothing was sent." }
    if stories.lost > 0 {
      parts.append("\(grouped(stories.lost)) of \(grouped(stories.total)) notifications are lost for good")
    }
    let hidden = stories.notSeenAgain.sum
    if hidden > 0 {
      let who =
        stories.lost > 0
        ? "\(grouped(hidden)) may be" : "\(grouped(hidden)) of \(grouped(stories.total)) notifications may be lost"
      parts.append("\(who), unless they were sent again where the gateway does not see it: \(stories.whereNotSeen)")
    }
    let unanswered = verdict.mayBeLost - stories.lost - hidden
    if unanswered > 0 {
      parts.append(
        "\(grouped(unanswered)) of \(grouped(stories.total)) notifications may be lost: no answer shows whether they were accepted"
      )
    }
    if stories.acceptedTwice > 0 { parts.append("\(grouped(stories.acceptedTwice)) were accepted twice") }
    // Of those that were left out nothing is known.
    if parts.isEmpty, verdict.notObserved == 0 {
      parts.append(
        verdict.discarded == 0
          ? "Nothing was discarded, so nothing had to be sent again"
          : "All that was discarded was sent again, or decided on another connection")
    }
    if verdict.notObserved > 0 {
      parts.append("\(grouped(verdict.notObserved)) notifications were left out (--max-unrecorded)")
    }
    return parts.joined(separator: "; ") + "."
  }

  private func expectations(_ conditions: [RunResult.Verdict.Threshold]) -> [Block] {
    var table = Table([.init("expected"), .init("value", .right)])
    for condition in conditions {
      table.add(
        .code(condition.expression), Prose(condition.reason ?? RunReport.value(of: condition)),
        tone: condition.passed ? .good : .bad)
    }
    return [.heading("Expectations"), .table(table)]
  }

  // MARK: the verdict

  /// The provider's answers to each error response.
  private func answers(_ verdict: ProviderVerdict) -> Section {
    var table = Table([
      .init("time"), .init("connection", .right), .init("status"), .init("discarded", .right),
      .init("sent again", .right),
      .init("first after", .right), .init("last after", .right), .init("next connection after", .right),
      .init("what became of the discarded"),
    ])
    for row in verdict.errors.prefix(rows) {
      let outcomes = (row.outcomes ?? [:]).byName.sorted { $0.key < $1.key }
        .map { "\(grouped($0.value)) \($0.key.replacing("_", with: " "))" }
      let isComplete = row.outcomes?[.lost] == nil && row.outcomes?[.open] == nil
      table.add(
        Prose(row.time ?? "–"), Prose("\(row.connection)"), Prose("\(row.status) \(row.statusName)"),
        Prose(row.discarded.map { grouped($0) } ?? "–"), Prose(row.sentAgain.map { grouped($0) } ?? "–"),
        Prose(row.firstResentS.map(span) ?? "–"), Prose(row.lastResentS.map(span) ?? "–"),
        Prose(row.reconnectedS.map(span) ?? "–"), Prose(outcomes.isEmpty ? "–" : outcomes.joined(separator: ", ")),
        tone: isComplete ? .neutral : .warning)
    }
    var blocks: [Block] = [.table(table)]
    let more = verdict.errors.count + verdict.errorsOmitted - min(rows, verdict.errors.count)
    if more > 0 { blocks.append(.paragraph(Prose("\(grouped(more)) more error responses are not listed."))) }
    if let reconnect = verdict.reconnect {
      blocks.append(
        .paragraph(
          Prose(
            "The next connection from the same address came after a median of \(span(reconnect.p50S)), the last after \(span(reconnect.maxS))."
          )))
    }
    return Section("After each error", blocks)
  }

  /// Answers and streams over HTTP/2; with records, those of the trace, which are over time.
  private func requests(_ verdict: ProviderVerdict) -> [Section] {
    if let trace, trace.inspection.http2 != nil { return TracePage(trace, rows: rows).answers }
    guard verdict.http2 != nil else { return [] }
    var report = TraceReport()
    report.inspection.http2 = verdict.http2
    return TracePage(report, rows: rows).answers
  }

  private func sending(_ verdict: ProviderVerdict) -> Section {
    var table = Table([.init(""), .init("", .right)])
    func add(_ name: String, _ value: String) { table.add(Prose(name), Prose(value)) }
    add("connections with notifications", grouped(verdict.connections.sending))
    add("of these with a single one", grouped(verdict.connections.ofOneNotification))
    add("most connections opened within a second", grouped(verdict.connections.mostPerSecond))
    if let reads = verdict.notificationsPerRead {
      add("notifications that arrived at once, on average", significant(reads.mean, 3))
      add("at most", grouped(Int(reads.max)))
    }
    // Senders over HTTP/2 have none.
    if verdict.http2 == nil || verdict.feedback.connections > 0 {
      add("connections to the feedback service", grouped(verdict.feedback.connections))
      add("notifications to tokens that it had listed", grouped(verdict.feedback.sentToListed))
    }
    return Section("How it sends", [.table(table)])
  }

  // MARK: the books

  private var devices: Section? {
    guard ledger.gateway.accepted > 0 else { return nil }
    return Section("Devices", DeviceOutcomes(ledger).blocks)
  }

  private var feedback: Section? {
    let feedback = ledger.feedback
    guard feedback.connections + feedback.waiting + feedback.tuplesSent > 0 else { return nil }
    var table = Table([.init("feedback service"), .init("", .right)])
    table.add("connections", Prose(grouped(feedback.connections)))
    table.add("lists that were read to their end", Prose(grouped(feedback.completed)))
    table.add("tuples sent", Prose(grouped(feedback.tuplesSent)))
    table.add(
      "tokens that wait to be read", Prose(grouped(feedback.waiting)), tone: feedback.waiting > 0 ? .warning : .neutral)
    return Section("Feedback", [.table(table)])
  }

  private var payloads: Section? {
    guard let payloads = ledger.payloads, !payloads.kinds.isEmpty, trace == nil else { return nil }
    var kinds = Table([.init("kind"), .init("notifications", .right)])
    for (kind, count) in payloads.kinds.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
      kinds.add(Prose(kind), Prose(grouped(count)))
    }
    var blocks: [Block] = [.table(kinds)]
    if !payloads.lint.isEmpty {
      var rules = Table([.init("broken rule"), .init("notifications", .right)])
      for (rule, count) in payloads.lint.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
        rules.add(.code(rule), Prose(grouped(count)), tone: .warning)
      }
      blocks.append(.table(rules))
    }
    return Section("Payloads", blocks)
  }

  private var connections: Section? {
    guard !ledger.connections.isEmpty, trace == nil else { return nil }
    var table = Table([
      .init("client"), .init("topic"), .init("received", .right), .init("accepted", .right),
      .init(ledger.http2 == nil ? "rejected with" : "rejected"),
      .init("discarded", .right), .init("end"),
    ])
    for connection in ledger.connections.prefix(rows) {
      table.add(
        Prose(connection.client), Prose(connection.topic ?? "–"), Prose(grouped(connection.received)),
        Prose(grouped(connection.accepted)),
        Prose(connection.rejected.map { "\($0.status)" } ?? connection.rejections.map { grouped($0) } ?? "–"),
        Prose(grouped(connection.discarded)), Prose(connection.end.rawValue.replacing("_", with: " ")))
    }
    var blocks: [Block] = [.table(table)]
    let more = ledger.connections.count + ledger.connectionsOmitted - min(rows, ledger.connections.count)
    if more > 0 { blocks.append(.paragraph(Prose("\(grouped(more)) more connections are not listed."))) }
    return Section("Connections", blocks)
  }
}

/// Accepted notifications by their delivery to devices.
struct DeviceOutcomes {
  private let devices: Ledger.Devices
  private let accepted: Int

  init(_ ledger: Ledger) { (devices, accepted) = (ledger.devices, ledger.gateway.accepted) }

  var blocks: [Block] {
    var table = Table([.init("accepted notifications"), .init("meaning"), .init("", .right), .init("share", .right)])
    let rows: [(String, String, Int, Tone)] = [
      ("delivered", "reached a device that is online", devices.delivered, .neutral),
      ("stored", "wait for a device that is offline", devices.stored, .neutral),
      ("coalesced", "replaced by a later one before the device came online", devices.coalesced, .neutral),
      ("expired", "their expiration passed, or they were not to be stored", devices.expired, .warning),
      ("dropped", "the store was full", devices.dropped, .warning),
      ("uninstalled", "the app is gone: the token is on the feedback list", devices.uninstalled, .warning),
    ]
    for (name, meaning, count, tone) in rows where count > 0 {
      table.add(
        Prose(name), Prose(meaning), Prose(grouped(count)),
        Prose(Unit.share.text(Double(count) / Double(max(1, accepted)))), tone: tone)
    }
    return [.table(table)]
  }
}
