import Bytes
import Measurement

/// The outcome of each notification, over all of its sendings.
extension TracePage {
  var stories: [Section] {
    guard let stories = report.stories, stories.count > 0 else { return [] }
    let blocks: [Block] = [
      .paragraph(
        .strong(grouped(stories.count))
          + " distinct \(stories.count == 1 ? "notification" : "notifications"): one token, payload and topic, however often it was sent."
      )
    ]
    return [Section("What became of the notifications", blocks + InspectionReport.Stories(stories).blocks)]
  }

  /// Each error response with what it refused and discarded, and the outcomes of that.
  var refusals: [Block] {
    guard let stories = report.stories, !inspection.errors.isEmpty else { return [] }
    let refused = Dictionary(
      stories.refusals.map { ([$0.connection, $0.notification], $0) }, uniquingKeysWith: { first, _ in first })
    let losses = Dictionary(
      stories.losses.map { ($0.connection, $0.outcomes) }, uniquingKeysWith: { first, _ in first })
    // Losses of a connection belong to the last response that names a notification.
    var last: [Int: Int] = [:]
    for (index, row) in inspection.errors.enumerated() where row.notification != nil { last[row.connection] = index }
    var table = Table([
      .init(atName, .right), .init("connection", .right), .init("status"), .init("refused token"),
      .init("what became of the discarded"),
    ])
    for (index, error) in report.listedErrors.enumerated().prefix(rows) {
      let row = error.row
      let notification = row.notification.flatMap { refused[[row.connection, $0]] }
      let outcomes = last[row.connection] == index ? losses[row.connection] ?? [] : []
      table.add(
        Prose(at(error.timeS)), Prose("\(row.connection)"), Prose("\(row.status) \(row.statusName)"),
        notification.map { $0.token.isEmpty ? "–" : .code(String($0.token.prefix(16))) } ?? "–",
        Prose(
          outcomes.isEmpty
            ? "–" : outcomes.map { "\(grouped($0.count)) \(Self.words($0.name))" }.joined(separator: ", ")),
        tone: Self.tone(ofDiscarded: outcomes))
      // The refused payload's beginning.
      if let payload = notification?.payload, !payload.isEmpty {
        table.rows[table.rows.count - 1].note = "refused: " + .code(ControlCharacters.escaped(payload))
      }
    }
    return [
      .heading("What each refused and threw away"), .table(table),
      .paragraph(
        "The outcomes are those of the discarded notifications over all of their sendings: recovered ones were accepted later, lost ones never, and of open ones the trace does not show enough."
      ),
    ]
  }

  /// The notifications that were thrown away and not seen again, by name: those that are proven lost first.
  var missing: Section? {
    guard let stories = report.stories, !stories.missing.isEmpty else { return nil }
    let all = stories.missing.sorted { $0.isLost && !$1.isLost }
    var table = Table([
      .init("token"), .init("written"), .init("connection", .right), .init("notification", .right), .init("outcome"),
    ])
    for row in all.prefix(rows) {
      table.add(
        row.token.isEmpty ? "–" : .code(Self.short(row.token, 64)), Prose(row.time ?? "–"), Prose("\(row.connection)"),
        Prose("#\(grouped(row.notification))"), row.isLost ? .strong("lost") : "open: may have been sent elsewhere",
        tone: row.isLost ? .bad : .neutral)
      if !row.payload.isEmpty {
        table.rows[table.rows.count - 1].note = .code(ControlCharacters.escaped(row.payload))
      }
    }
    let counts = InspectionReport.Stories(stories)
    let total = max(counts.lost + counts.notSeenAgain.sum, all.count)
    return Section(
      "Notifications that did not come back",
      [
        .paragraph(
          "Discarded after an error response and not seen again, each with its token, its last sending and the beginning of its payload."
        ), .table(table),
      ] + more(than: min(rows, all.count), of: total, "notifications"))
  }

  /// The tokens that cost most.
  var worstTokens: [Block] {
    guard let tokens = report.stories?.worstTokens, !tokens.isEmpty else { return [] }
    var table = Table([
      .init("token"), .init("topic"), .init("sent", .right), .init("rejected", .right), .init("status", .right),
      .init("sent after feedback", .right),
    ])
    for token in tokens.prefix(rows) {
      table.add(
        .code(Self.short(token.token, 64)), Prose(ControlCharacters.escaped(Self.short(token.topic ?? "–", 60))),
        Prose(grouped(token.sent)), Prose(grouped(token.rejected)), Prose(token.status.map(String.init) ?? "–"),
        Prose(grouped(token.sentInVain)))
    }
    return [
      .heading("Worst tokens"), .table(table),
      .paragraph(
        "Sent after feedback: after the feedback service listed it, or after the time at which its app was gone."),
    ]
  }

  private static func words(_ outcome: String) -> String { outcome.replacing("_", with: " ") }

  private static func tone(ofDiscarded outcomes: [TraceReport.Stories.Outcome]) -> Tone {
    let names = outcomes.map(\.name)
    return names.contains("lost") ? .bad : names.contains("open") ? .warning : .neutral
  }

  static func tone(_ outcome: String) -> Tone {
    switch outcome {
    case "lost": .bad
    case "accepted_twice", "expired", "rejected": .warning
    case "accepted", "recovered": .good
    default: .neutral
    }
  }
}

extension InspectionReport.Stories {
  /// All outcomes, the reasons for what is open, and the times of recoveries.
  var blocks: [Block] {
    var table = Table([.init("outcome"), .init("meaning"), .init("notifications", .right), .init("share", .right)])
    for outcome in StoryOutcome.allCases where self[outcome] > 0 {
      table.add(
        Prose(outcome.words), Prose(outcome.explanation), Prose(grouped(self[outcome])),
        Prose(Unit.share.text(Double(self[outcome]) / Double(max(1, total)))),
        tone: TracePage.tone(outcome.rawValue))
    }
    var blocks: [Block] = [.table(table)]
    if !openReasons.isEmpty { blocks.append(.paragraph(Prose("Open: \(whereOpen)."))) }
    if let recovery {
      func seconds(_ value: Double) -> String { Unit.seconds.text(value) }
      blocks.append(
        .paragraph(
          "Recovered after a median of \(seconds(recovery.p50S)), 99 % within \(seconds(recovery.p99S)), the last after \(seconds(recovery.maxS)), from the first sending to the accepted one."
        ))
    }
    return blocks
  }
}
