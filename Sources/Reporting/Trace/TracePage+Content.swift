import Bytes
import Measurement

extension TracePage {
  var batching: Section {
    let segments = report.perSegment.reduce(0) { $0 + $1.count }
    guard segments > 0 else {
      return Section("Batching", [.paragraph("The trace does not say which packets the notifications came in.")])
    }
    let alone = report.perSegment.filter { $0.value == 1 }.reduce(0) { $0 + $1.count }
    let sent = report.perSegment.reduce(0) { $0 + $1.count * $1.value }
    var blocks: [Block] = [
      .paragraph(
        .strong(Unit.share.text(Double(alone) / Double(max(1, sent))))
          + " of the notifications were alone in a TCP segment; \(grouped(sent)) came in \(grouped(segments)) segments. Every write costs packets, a TLS record and system calls, whether it holds one notification or a hundred."
      ),
      .table(
        .numbers(
          ["per segment that ends a notification"] + Self.columns,
          [
            ["notifications"] + Self.cells(report.perSegment, .count),
            ["bytes of frames"] + Self.cells(report.bytesPerSegment, .bytes),
          ])),
    ]
    if report.perSegment.count > 1 {
      blocks.append(
        .chart(
          Chart(
            title: "Notifications per segment",
            x: Axis("notifications that end in one segment", unit: .count, includesZero: false),
            y: Axis("segments", unit: .count), marks: [Self.histogram(report.perSegment)], height: 140)))
    }
    return Section("Batching", blocks)
  }

  var payloads: Section {
    let total = report.payloads.reduce(0) { $0 + $1.count }
    guard total > 0 else {
      return Section("Payloads", [.paragraph(summary.hasRead ? "No payloads." : nothingSent)])
    }
    func over(_ limit: Int) -> Int { report.payloads.filter { $0.value > limit }.reduce(0) { $0 + $1.count } }
    let limits =
      isOfRequests
      ? [(4_096, "longest of most push types"), (5_120, "longest at all: VoIP and broadcasts")]
      : [(2_048, "longest for most certificates"), (4_096, "longest at all, and for VoIP")]
    let largest = report.payloads.last?.value ?? 0
    var table = Table([
      .init("limit", .right), .init("meaning"), .init("payloads over it", .right), .init("share", .right),
    ])
    for (limit, meaning) in limits {
      let count = over(limit)
      table.add(
        Prose("\(grouped(limit)) B"), Prose(meaning), Prose(grouped(count)),
        Prose(Unit.share.text(Double(count) / Double(total))),
        tone: count == 0 ? .neutral : limit == limits[1].0 ? .bad : .warning)
    }
    var blocks: [Block] = [
      .table(.numbers(["per notification"] + Self.columns, [["payload"] + Self.cells(report.payloads, .bytes)]))
    ]
    if report.payloads.count > 1 {
      blocks.append(
        .chart(
          Chart(
            title: "Payload sizes", x: Axis("bytes of a payload", unit: .count, includesZero: false),
            y: Axis("notifications", unit: .count), marks: [Self.histogram(report.payloads)],
            rules: limits.filter { largest > $0.0 }.map { .vertical(Double($0.0), grouped($0.0)) }, height: 150)))
    }
    return Section("Payloads", blocks + [.table(table)] + kinds + lint)
  }

  /// The kinds of payloads.
  private var kinds: [Block] {
    guard let kinds = inspection.payloads?.kinds, !kinds.isEmpty else { return [] }
    let total = kinds.reduce(0) { $0 + $1.count }
    var table = Table([.init("kind"), .init("notifications", .right), .init("share", .right)])
    for row in kinds {
      table.add(
        .code(row.kind), Prose(grouped(row.count)), Prose(Unit.share.text(Double(row.count) / Double(max(1, total)))))
    }
    return [.heading("Kinds"), .table(table)]
  }

  /// The faults of payloads, by rule.
  private var lint: [Block] {
    guard let findings = inspection.payloads?.findings, !findings.isEmpty else { return [] }
    var table = Table([
      .init("rule"), .init("severity"), .init("notifications", .right), .init("first packet", .right), .init("what"),
      .init("example"),
    ])
    for row in findings {
      let place = row.example.flatMap { example in
        example.line.flatMap { line in example.column.map { " (line \(line), column \($0))" } }
      }
      table.add(
        .code(row.code), Prose(row.severity), Prose(grouped(row.count)),
        Prose(Self.packet(row.firstPacket, of: row.firstFile)),
        Prose(row.text),
        row.example.map { Prose(ControlCharacters.escaped(Self.short($0.text, 80)) + (place ?? "")) } ?? "–",
        tone: row.severity == "error" ? .bad : row.severity == "warning" ? .warning : .neutral)
    }
    return [.heading("Rules that payloads break"), .table(table)]
  }

  var tokens: Section {
    let tokens = report.tokens
    guard tokens.distinct > 0 else {
      return Section("Device tokens", [.paragraph(summary.hasRead ? "No device tokens." : nothingSent)])
    }
    let about = tokens.isEstimate ? "about " : ""
    var blocks: [Block] = [
      .paragraph(
        .strong("\(about)\(grouped(tokens.distinct))")
          + " distinct device \(tokens.distinct == 1 ? "token" : "tokens"), \(about)\(grouped(tokens.repeated)) of them written to more than once."
          + (tokens.isEstimate
            ? "  There are too many to count one by one: both numbers are of a sample, and the table knows its tokens only."
            : ""))
    ]
    func add(_ title: String, _ column: String, _ rows: [(prefix: String, count: Int)]) {
      guard !rows.isEmpty else { return }
      var table = Table([.init("token begins with"), .init(column, .right)])
      for row in rows.prefix(self.rows) { table.add(.code(row.prefix), Prose(grouped(row.count))) }
      blocks += [.heading(title), .table(table)]
    }
    add("Most often written to", "notifications", tokens.most.map { ($0.prefix, $0.count) })
    add(
      "Rejected more than once", "rejections",
      inspection.repeatedlyRejectedTokens.map { ($0.tokenPrefix, $0.rejections) })
    return Section("Device tokens", blocks + worstTokens)
  }

  var mix: Section {
    guard summary.notifications > 0 else {
      return Section("Commands, priorities, expirations", [.paragraph(nothingSent)])
    }
    var table = Table([.init("field"), .init("value"), .init("notifications", .right), .init("share", .right)])
    func add(_ field: String, _ values: [(meaning: String, count: Int)]) {
      for (index, value) in values.filter({ $0.count > 0 }).enumerated() {
        table.add(
          index == 0 ? .strong(field) : "", Prose(value.meaning), Prose(grouped(value.count)),
          Prose(Unit.share.text(Double(value.count) / Double(summary.notifications))))
      }
    }
    let names = ["0, simple", "1, enhanced", "2, items"]
    add("command", zip(names, inspection.notificationsByCommand).map { ($0, $1) })
    add(
      "priority",
      report.priorities.sorted { $1.key < $0.key }.map { priority, count in
        let meaning =
          switch priority {
          case 10: "10, at once"
          case 5: "5, when it saves power"
          default: "\(priority), not of the protocol"
          }
        return (meaning, count)
      } + [("none", report.withoutPriority)])
    add("expiration", report.expirations.inWords)
    return Section("Commands, priorities, expirations", [.table(table)])
  }

  var feedback: Section {
    let feedback = report.feedback
    let (tuples, connections) = (inspection.feedbackTuples, inspection.feedbackConnections)
    guard tuples > 0 || connections > 0 else {
      return Section(
        "Feedback",
        [
          .paragraph(
            summary.hasRead ? "The trace has no connection to the feedback service." : nothingSent)
        ])
    }
    var blocks: [Block] = [
      .paragraph(
        .strong(grouped(tuples))
          + " tuples on \(grouped(connections)) \(connections == 1 ? "connection" : "connections"), for \(feedback.isCut ? "more than " : "")\(grouped(feedback.tokens)) distinct tokens."
      )
    ]
    if feedback.sentToLater > 0 {
      blocks.append(
        .callout(
          .warning,
          "\(grouped(feedback.sentToLater)) notifications were sent to \(grouped(feedback.sentToLaterTokens)) tokens after the feedback service had listed them: a provider should stop that."
        ))
    } else if tuples > 0, summary.notifications > 0 {
      blocks.append(.callout(.good, "No notification was sent to a token after it had been listed."))
    }
    var values: [Value] = []
    if let first = feedback.firstTimestamp, let last = feedback.lastTimestamp {
      values.append(Value("uninstalled apps were found", Prose("from \(first) to \(last)")))
    }
    if let age = feedback.ageS {
      values.append(
        Value("read after", Prose("\(Unit.seconds.text(age.p50)) (median), \(Unit.seconds.text(age.max)) (longest)")))
    }
    if !values.isEmpty { blocks.append(.values(values)) }
    if report.feedbackTuples.count(where: { $0 > 0 }) > 1 {
      let series = report.sent
      blocks.append(
        .chart(
          Chart(
            title: "Feedback tuples over time", x: time, y: Axis("tuples", unit: .count),
            marks: [
              .bars(
                "",
                report.feedbackTuples.enumerated().filter { $0.element > 0 }.map {
                  Point(series.fromS + (Double($0.offset) + 0.5) * series.widthS, Double($0.element))
                }, width: series.widthS, color: .purple)
            ], height: 110)))
    }
    let readers = byNumber.filter(\.row.isFeedback)
    var table = Table([
      .init("connection", .right), .init("client"), .init(atName == "at" ? "from" : "from (UTC)", .right),
      .init("tuples", .right), .init("ended by"),
    ])
    for reader in readers.prefix(rows) {
      let row = reader.row
      table.add(
        Prose("\(row.connection)"), Prose(row.client ?? "–"), Prose(at(reader.course.openedS)),
        Prose(row.isDecrypted ? grouped(row.feedbackTuples) : "not decrypted"), Prose(row.end.meaning))
    }
    if !table.rows.isEmpty { blocks.append(.table(table)) }
    blocks += more(than: rows, of: readers.count, "of the listed connections")
    return Section("Feedback", blocks)
  }

  var nothingSent: Prose {
    summary.hasRead ? "No notification is in the trace." : "Nothing was read, so this is unknown."
  }

  var damage: Section {
    var table = Table([.init("missing"), .init("how often", .right)])
    for gap in inspection.gapsByReason.positive.sorted {
      table.add(Prose(CapturedGap(rawValue: gap.name)?.meaning ?? gap.name), Prose(grouped(gap.count)), tone: .warning)
    }
    if inspection.malformed > 0 {
      table.add("bytes that are not a record", Prose(grouped(inspection.malformed)), tone: .warning)
    }
    if summary.undecryptedConnections > 0 {
      table.add("connections that were not decrypted", Prose(grouped(summary.undecryptedConnections)), tone: .warning)
    }
    guard !table.rows.isEmpty else {
      return Section(
        "Missing from the trace",
        [.paragraph(summary.hasRead ? "Nothing is missing, as far as known." : nothingSent)])
    }
    var blocks: [Block] = [.table(table)]
    if inspection.missingBytes > 0 {
      blocks.append(.paragraph("\(grouped(inspection.missingBytes)) bytes were sent that the trace does not hold."))
    }
    return Section("Missing from the trace", blocks)
  }
}
