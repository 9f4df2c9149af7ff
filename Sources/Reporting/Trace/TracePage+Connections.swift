import Measurement

extension TracePage {
  var connections: Section {
    guard summary.connections > 0 else { return Section("Connections", [.paragraph("No connections.")]) }
    var blocks: [Block] = []
    if let strip { blocks += strip }
    var table = Table([
      .init("#", .right), .init("client"), .init("server"),
      .init(atName == "at" ? "from" : "from (UTC)", .right), .init("length", .right),
      .init("sent", .right), .init("acc. / rej. / disc. / unk.", .right),
      .init(isOfRequests ? "rejected with" : "first error"), .init("ended by"),
    ])
    let all = byNumber
    for connection in all.prefix(rows) {
      let (row, course) = (connection.row, connection.course)
      let sent =
        !row.isDecrypted
        ? "not decrypted" : row.isFeedback ? "\(grouped(row.feedbackTuples)) tuples" : grouped(row.notifications)
      table.add(
        Prose("\(row.connection)"), Prose(row.client ?? "–"), Prose(row.server ?? "–"),
        Prose(at(course.openedS)), Prose(seconds(course.lengthS)), Prose(sent),
        Prose(
          row.notifications == 0
            ? "–" : [row.accepted, row.rejected, row.discarded, row.unknown].map(grouped).joined(separator: " / ")),
        Prose(row.firstError ?? row.http2?.mostRejected ?? "–"), Prose(row.end.meaning),
        tone: row.discarded > 0 || !row.isDecrypted ? .warning : .neutral)
    }
    blocks.append(.table(table))
    blocks += more(than: min(rows, all.count), of: summary.connections, "connections")
    return Section("Connections", blocks + encryption)
  }

  /// The listed connections, in the order in which they began.
  var byNumber: [TraceReport.ListedConnection] {
    report.listedConnections.sorted { $0.row.connection < $1.row.connection }
  }

  private var strip: [Block]? {
    let known = byNumber.filter { $0.course.openedS != nil }
    guard !known.isEmpty, report.lengthS > 0 else { return nil }
    let isSealed = known.contains { !$0.row.isDecrypted }
    var states: [Strip.State] = [
      .init("up", color: .sky, isQuiet: true), .init("before the first record", color: .orange),
      .init("error response", color: .vermillion),
    ]
    if isSealed { states.append(.init("not decrypted", color: .grey, isQuiet: true)) }
    let errors = Dictionary(grouping: report.listedErrors, by: \.row.connection)
    let shown = known.prefix(Self.stripRows)
    let rows = shown.map { connection in
      let (row, course) = (connection.row, connection.course)
      let opened = course.openedS ?? 0
      let end = max(opened, course.closedS ?? course.lastRecordS.map { max($0, report.lengthS) } ?? report.lengthS)
      var spans: [Strip.Span] = []
      if !row.isDecrypted {
        spans.append(
          .init(from: opened, to: end, state: 3, note: row.problem.isEmpty ? nil : Self.short(row.problem, 120)))
      } else {
        let first = min(end, max(opened, course.firstRecordS ?? end))
        if first > opened { spans.append(.init(from: opened, to: first, state: 1)) }
        if end > first || spans.isEmpty {
          let what =
            row.isFeedback
            ? "\(grouped(row.feedbackTuples)) tuples" : "\(grouped(row.notifications)) notifications"
          spans.append(.init(from: first, to: end, state: 0, note: what))
        }
      }
      // Wide enough to be visible for a trace of any length.
      let tick = report.lengthS / 300
      for error in errors[row.connection] ?? [] {
        guard let time = error.timeS else { continue }
        let note = "status \(error.row.status) \(error.row.statusName)"
        spans.append(.init(from: max(opened, time - tick), to: time, state: 2, note: note))
      }
      return Strip.Row(label: "\(row.connection)", spans: spans)
    }
    let caption: Prose =
      "One row for each connection. Before the first record are the handshakes of TCP and TLS, and waiting; an error response is at the right end of its mark."
    return [
      .chart(
        Chart(
          title: "Connections over time", x: time,
          strip: Strip(states: states, rows: Array(rows), rowName: "connection")),
        caption: caption)
    ]
      + (summary.connections > shown.count
        ? [.paragraph("\(grouped(summary.connections - shown.count)) more connections are not drawn.")] : [])
  }

  /// TLS versions, suites and resumption; empty without TLS.
  private var encryption: [Block] {
    let sealed = report.inspection.connections.filter { $0.tls != nil }
    guard !sealed.isEmpty else { return [] }
    struct Kind: Hashable {
      var encryption: String?
      var topic: String
      var isDecrypted, isWhole: Bool
    }
    let kinds = Dictionary(grouping: sealed) {
      Kind(encryption: $0.encryption, topic: $0.topic, isDecrypted: $0.isDecrypted, isWhole: $0.problem.isEmpty)
    }
    var table = Table([
      .init("TLS"), .init("client's certificate"), .init("connections", .right), .init("resumed", .right),
      .init("decrypted"), .init("remarks"),
    ])
    for rows in kinds.values.sorted(by: { ($1.count, $0[0].connection) < ($0.count, $1[0].connection) }).prefix(rows) {
      // Each connection may have a different reason; the first one is shown.
      let others = Set(rows.map(\.problem)).count - 1
      let remark = rows[0].problem + (others > 0 ? " (\(grouped(others)) more like it)" : "")
      table.add(
        Prose(rows[0].encryption ?? ""), Prose(rows[0].topic.isEmpty ? "–" : Self.short(rows[0].topic, 80)),
        Prose(grouped(rows.count)), Prose(grouped(rows.count { $0.tls?.resumed == true })),
        Prose(!rows[0].isDecrypted ? "no" : rows[0].problem.isEmpty ? "yes" : "in part"), Prose(remark),
        tone: rows[0].problem.isEmpty ? .neutral : .warning)
    }
    return [.heading("TLS"), .table(table)]
  }

  // MARK: reconnects

  /// A connection's end, and the beginning of the same client's next connection to the same server.
  private struct Reconnect {
    var cause: String
    /// Seconds between the two; `nil` if the next connection began before this one ended.
    var gap: Double?
    var at: Double
  }

  private var reconnections: [Reconnect] {
    let known = report.listedConnections.filter {
      $0.course.openedS != nil && !$0.row.isFeedback && $0.row.client != nil
    }
    // After an error response nothing more is accepted, however long the connection stays open.
    let refusals = Dictionary(
      report.listedErrors.compactMap { error in
        error.row.status == 0 ? nil : error.timeS.map { (error.row.connection, $0) }
      }
    ) {
      min($0, $1)
    }
    func end(_ each: TraceReport.ListedConnection) -> Double? { refusals[each.row.connection] ?? each.course.closedS }
    func isBefore(_ a: (Double?, TraceReport.ListedConnection), _ b: (Double?, TraceReport.ListedConnection)) -> Bool {
      (a.0 ?? 0, a.1.row.connection) < (b.0 ?? 0, b.1.row.connection)
    }
    return Dictionary(grouping: known) { "\(Self.host($0.row)) \($0.row.server ?? "")" }.values.flatMap { group in
      let sorted = group.sorted { isBefore(($0.course.openedS, $0), ($1.course.openedS, $1)) }
      // Ends that no later beginning has followed yet, in the order in which they came.
      var ends = sorted.filter { end($0) != nil }.sorted { isBefore((end($0), $0), (end($1), $1)) }[...]
      var waiting: [TraceReport.ListedConnection] = []
      return sorted.compactMap { each -> Reconnect? in
        guard let opened = each.course.openedS else { return nil }
        while let next = ends.first, let closed = end(next), closed <= opened {
          waiting.append(next)
          ends.removeFirst()
        }
        guard let last = waiting.popLast(), let closed = end(last) else { return nil }
        let cause =
          last.row.firstError.map { "error response: \($0)" }
          ?? "ended by the \(last.row.end.meaning), without an error"
        return Reconnect(cause: cause, gap: opened - closed, at: opened)
      }
    }.sorted { ($0.at, $0.cause) < ($1.at, $1.cause) }
  }

  var reconnects: Section {
    let all = reconnections
    guard !all.isEmpty else {
      return Section("Reconnects", [.paragraph("No client came back after one of its connections had ended.")])
    }
    var table = Table([
      .init("end of the previous connection"), .init("reconnects", .right), .init("gap p50", .right),
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
