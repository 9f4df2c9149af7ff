extension TracePage {
  var connections: Section {
    guard summary.connectionCount > 0 else { return Section("Connections", [.paragraph("There is no connection.")]) }
    var blocks: [Block] = []
    if let strip { blocks += strip }
    var table = Table([
      .init("", .right), .init("client"), .init("server"), .init("from", .right), .init("length", .right),
      .init("sent", .right), .init("acc. / rej. / disc. / unk.", .right), .init("first error"), .init("ended by"),
    ])
    for row in summary.connections.sorted(by: { $0.number < $1.number }).prefix(rows) {
      let sent =
        !row.isDecrypted
        ? "not decrypted"
        : row.service == "feedback" ? "\(grouped(row.feedbackTuples)) tuples" : grouped(row.notifications)
      let fates = row.fates
      table.add(
        Prose("\(row.number)"), Prose(row.client.isEmpty ? "–" : row.client),
        Prose(row.server.isEmpty ? "–" : row.server),
        Prose(seconds(row.opened)), Prose(seconds(length(row))), Prose(sent),
        Prose(
          row.notifications == 0
            ? "–"
            : [fates.accepted, fates.rejected, fates.discarded, fates.unknown].map(grouped).joined(separator: " / ")),
        Prose(row.firstError.isEmpty ? "–" : row.firstError), Prose(Self.meaning(ofEnd: row.end)),
        tone: fates.discarded > 0 || !row.isDecrypted ? .warning : .neutral)
    }
    blocks.append(.table(table))
    blocks += more(than: min(rows, summary.connections.count), of: summary.connectionCount, "connections")
    return Section("Connections", blocks + encryption)
  }

  private func length(_ row: TraceSummary.Connection) -> Double? {
    row.opened.flatMap { opened in row.closed.map { $0 - opened } }
  }

  private var strip: [Block]? {
    let known = summary.connections.filter { $0.opened != nil }.sorted { $0.number < $1.number }
    guard !known.isEmpty, summary.length > 0 else { return nil }
    let isSealed = known.contains { !$0.isDecrypted }
    var states: [Strip.State] = [
      .init("up", color: .sky, isQuiet: true), .init("before the first record", color: .orange),
      .init("error response", color: .vermillion),
    ]
    if isSealed { states.append(.init("not decrypted", color: .grey, isQuiet: true)) }
    let errors = Dictionary(grouping: summary.errors, by: \.connection)
    let shown = known.prefix(Self.stripRows)
    let rows = shown.map { row in
      let opened = row.opened ?? 0
      let end = max(opened, row.closed ?? row.lastRecord.map { max($0, summary.length) } ?? summary.length)
      var spans: [Strip.Span] = []
      if !row.isDecrypted {
        spans.append(
          .init(from: opened, to: end, state: 3, note: row.problem.isEmpty ? nil : Self.short(row.problem, 120)))
      } else {
        let first = min(end, max(opened, row.firstRecord ?? end))
        if first > opened { spans.append(.init(from: opened, to: first, state: 1)) }
        if end > first || spans.isEmpty {
          let what =
            row.service == "feedback"
            ? "\(grouped(row.feedbackTuples)) tuples" : "\(grouped(row.notifications)) notifications"
          spans.append(.init(from: first, to: end, state: 0, note: what))
        }
      }
      // As wide as can be seen, whatever the length of the trace.
      let tick = summary.length / 300
      for error in errors[row.number] ?? [] {
        guard let time = error.time else { continue }
        spans.append(
          .init(from: max(opened, time - tick), to: time, state: 2, note: "status \(error.status) \(error.name)"))
      }
      return Strip.Row(label: "\(row.number)", spans: spans)
    }
    let caption: Prose =
      "One row for each connection. Before the first record are the handshakes of TCP and TLS, and waiting; an error response is at the right end of its mark."
    return [
      .chart(
        Chart(
          title: "Lives of the connections", x: time,
          strip: Strip(states: states, rows: Array(rows), rowName: "connection")),
        caption: caption)
    ]
      + (summary.connectionCount > shown.count
        ? [.paragraph("\(grouped(summary.connectionCount - shown.count)) more connections are not drawn.")] : [])
  }

  /// TLS versions, suites and resumption; nothing when there is no TLS.
  private var encryption: [Block] {
    let sealed = summary.connections.filter { !$0.tls.isEmpty }
    guard !sealed.isEmpty else { return [] }
    struct Kind: Hashable {
      var tls, topic: String
      var isDecrypted, isWhole: Bool
    }
    let kinds = Dictionary(grouping: sealed) {
      Kind(tls: $0.tls, topic: $0.topic, isDecrypted: $0.isDecrypted, isWhole: $0.problem.isEmpty)
    }
    var table = Table([
      .init("TLS"), .init("client's certificate"), .init("connections", .right), .init("resumed", .right),
      .init("decrypted"), .init("remarks"),
    ])
    for rows in kinds.values.sorted(by: { ($1.count, $0[0].number) < ($0.count, $1[0].number) }).prefix(rows) {
      // Each may have a reason of its own; that of the first stands for them.
      let others = Set(rows.map(\.problem)).count - 1
      let remark = rows[0].problem + (others > 0 ? " (\(grouped(others)) more like it)" : "")
      table.add(
        Prose(rows[0].tls), Prose(rows[0].topic.isEmpty ? "–" : Self.short(rows[0].topic, 80)),
        Prose(grouped(rows.count)), Prose(grouped(rows.count { $0.isResumed == true })),
        Prose(!rows[0].isDecrypted ? "no" : rows[0].problem.isEmpty ? "yes" : "in part"), Prose(remark),
        tone: rows[0].problem.isEmpty ? .neutral : .warning)
    }
    return [.heading("TLS"), .table(table)]
  }

  static func meaning(ofEnd end: String) -> String {
    switch end {
    case "client_fin": "client"
    case "server_fin": "server"
    case "client_rst": "client, by a reset"
    case "server_rst": "server, by a reset"
    case "capture_end": "end of the trace"
    default: end
    }
  }

  // MARK: reconnects

  /// One connection's end and the same client's next beginning with the same server.
  private struct Reconnect {
    var cause: String
    /// Seconds; `nil` when the next one was there before this one ended.
    var gap: Double?
    var at: Double
  }

  private var reconnections: [Reconnect] {
    let known = summary.connections.filter { $0.opened != nil && $0.service != "feedback" && !$0.client.isEmpty }
    // From an error response on nothing more is taken, however long the connection stays up.
    let refusals = Dictionary(
      summary.errors.compactMap { row in row.status == 0 ? nil : row.time.map { (row.connection, $0) } }
    ) {
      min($0, $1)
    }
    func end(_ row: TraceSummary.Connection) -> Double? { refusals[row.number] ?? row.closed }
    return Dictionary(grouping: known) { "\(Self.host($0.client)) \($0.server)" }.values.flatMap { rows in
      let sorted = rows.sorted { ($0.opened ?? 0, $0.number) < ($1.opened ?? 0, $1.number) }
      // Ends that no later beginning has followed yet, in the order in which they came.
      var ends = sorted.filter { end($0) != nil }.sorted { (end($0) ?? 0, $0.number) < (end($1) ?? 0, $1.number) }[...]
      var waiting: [TraceSummary.Connection] = []
      return sorted.compactMap { row -> Reconnect? in
        guard let opened = row.opened else { return nil }
        while let next = ends.first, let closed = end(next), closed <= opened {
          waiting.append(next)
          ends.removeFirst()
        }
        guard let last = waiting.popLast(), let closed = end(last) else { return nil }
        let cause =
          last.firstError.isEmpty
          ? "ended by the \(Self.meaning(ofEnd: last.end)), without an error" : "error response: \(last.firstError)"
        return Reconnect(cause: cause, gap: opened - closed, at: opened)
      }
    }.sorted { ($0.at, $0.cause) < ($1.at, $1.cause) }
  }

  var reconnects: Section {
    let all = reconnections
    guard !all.isEmpty else {
      return Section("Reconnects", [.paragraph("No client came back after a connection of its had ended.")])
    }
    var table = Table([
      .init("what had ended the connection before"), .init("reconnects", .right), .init("gap p50", .right),
      .init("p90", .right), .init("shortest", .right), .init("longest", .right),
    ])
    for (cause, rows) in Dictionary(grouping: all, by: \.cause).sorted(by: {
      ($1.value.count, $0.key) < ($0.value.count, $1.key)
    }) {
      let gaps = rows.compactMap(\.gap).sorted()
      table.add(
        Prose(cause), Prose(grouped(rows.count)), Prose(seconds(Self.quantile(0.5, of: gaps))),
        Prose(seconds(Self.quantile(0.9, of: gaps))), Prose(seconds(gaps.first)), Prose(seconds(gaps.last)))
    }
    var blocks: [Block] = [
      .paragraph(
        "A gap is the time from a connection's first error response, or else its end, to the next connection that the same client opens to the same server."
      ), .table(table),
    ]
    if all.count > 2 {
      blocks.append(
        .chart(
          Chart(
            title: "Gaps between connections", x: time, y: Axis("gap", unit: .seconds),
            marks: [.points("", all.compactMap { item in item.gap.map { Point(item.at, $0, note: item.cause) } })],
            height: 130)))
    }
    return Section("Reconnects", blocks)
  }
}
