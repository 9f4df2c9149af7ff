import Measurement

extension TracePage {
  /// The senders: connections grouped by topic or client, or individually.
  struct Group {
    var name: String
    var connections: [TraceReport.ListedConnection]
    var notifications: Int { connections.reduce(0) { $0 + $1.row.notifications } }
  }

  /// Groups by topic if the trace has any, otherwise by client if there are several, otherwise by connection; the
  /// largest first.
  var groups: (of: String, groups: [Group]) {
    let senders = report.listedConnections.filter { $0.row.notifications > 0 }
    func grouped(by name: (InspectionReport.ConnectionRow) -> String) -> [Group] {
      Dictionary(grouping: senders) { name($0.row) }.map { Group(name: $0.key, connections: $0.value) }
        .sorted { ($1.notifications, $0.name) < ($0.notifications, $1.name) }
    }
    if senders.contains(where: { !$0.row.topic.isEmpty }) {
      return ("topic", grouped { $0.topic.isEmpty ? "no topic" : $0.topic })
    }
    let clients = grouped(by: Self.host)
    if clients.count > 1 { return ("client", clients) }
    return ("connection", grouped { "connection \($0.connection)" })
  }

  /// The client without its port.
  static func host(_ row: InspectionReport.ConnectionRow) -> String {
    row.client.map { String($0[..<($0.lastIndex(of: ":") ?? $0.endIndex)]) } ?? "unknown"
  }

  var sending: Section {
    guard summary.notifications > 0 else {
      return Section("Notifications", [.paragraph(nothingSent)])
    }
    let (kind, groups) = groups
    var blocks: [Block] = []
    if report.sent.counts.isEmpty {
      blocks.append(.paragraph("The trace has no times."))
    } else {
      // The first screen has the notifications.
      blocks.append(bytesChart)
    }
    // Connections have a separate table.
    if kind == "connection" { return Section("Notifications", blocks) }
    var table = Table([
      .init(kind), .init("connections", .right), .init("notifications", .right), .init("share", .right),
      .init("bytes", .right), .init("errors", .right), .init("rejected", .right), .init("discarded", .right),
    ])
    // Further groups are only in the chart.
    let listed = min(rows, 20)
    for group in groups.prefix(listed) {
      let all = group.connections
      func sum(_ value: (TraceReport.ListedConnection) -> Int) -> Int { all.reduce(0) { $0 + value($1) } }
      table.add(
        Prose(Self.short(group.name, 80)), Prose(grouped(all.count)), Prose(grouped(group.notifications)),
        Prose(Unit.share.text(Double(group.notifications) / Double(max(1, summary.notifications)))),
        Prose(Unit.bytes.text(Double(sum(\.course.frameBytes)))), Prose(grouped(sum(\.course.errorResponses))),
        Prose(grouped(sum(\.row.rejected))), Prose(grouped(sum(\.row.discarded))))
    }
    blocks.append(.table(table))
    if groups.count > listed {
      blocks.append(.paragraph("And \(grouped(groups.count - listed)) more \(kind)s with less."))
    }
    return Section("Notifications", blocks)
  }

  /// The number of the series' bins in a bar: bars of three pixels or more, when all is sent in a small part of the
  /// trace too.
  private var binsOfBar: Int {
    let series = report.sent
    let shortest = (report.lengthS / 180 / series.widthS).rounded(.up)
    return max(
      1, (series.counts.count + 159) / 160,
      shortest.isFinite ? Int(min(max(shortest, 1), Double(max(1, series.counts.count)))) : 1)
  }

  /// Notifications over time, by sender.
  func rateChart(_ kind: String, _ groups: [Group]) -> (Chart, caption: Prose) {
    let series = report.sent
    let step = binsOfBar
    let width = series.widthS * Double(step)
    func points(_ counts: [Int]) -> [Point] {
      stride(from: 0, to: counts.count, by: step).compactMap { start in
        let sum = counts[start..<min(start + step, counts.count)].reduce(0, +)
        let from = series.fromS + Double(start) * series.widthS
        return sum == 0
          ? nil
          : Point(from + width / 2, Double(sum) / width, note: "\(grouped(sum)) in \(Unit.seconds.text(width))")
      }
    }
    let largest = groups.prefix(groups.count > 7 ? 6 : 7).filter { $0.connections.allSatisfy { $0.course.sent != nil } }
    // A few of many similar senders are not representative.
    let isMostOfAll = Double(largest.reduce(0) { $0 + $1.notifications }) >= 0.4 * Double(summary.notifications)
    let named = isMostOfAll ? largest : []
    var rest = series.counts
    var marks: [Mark] = []
    for (index, group) in named.enumerated() {
      var counts = [Int](repeating: 0, count: rest.count)
      for connection in group.connections {
        for (bin, count) in (connection.course.sent ?? []).enumerated() where bin < counts.count {
          counts[bin] += count
          rest[bin] -= count
        }
      }
      marks.append(.bars(Self.short(group.name), points(counts), width: width, color: .number(index)))
    }
    if rest.contains(where: { $0 > 0 }) {
      marks.append(
        .bars(named.isEmpty ? "" : "others", points(rest), width: width, color: named.isEmpty ? .blue : .grey))
    }
    let caption =
      (named.isEmpty ? "Of all \(kind)s together." : "By \(kind).")
      + " Each bar is \(Unit.seconds.text(width)) long."
      + (inspection.errorCount > 0 ? " Ticks on the upper edge are error responses." : "")
    return (
      Chart(
        title: "Notifications per second", x: time, y: Axis("notifications per second", unit: .perSecond),
        marks: marks, events: errorTicks, height: 120), Prose(caption)
    )
  }

  private var bytesChart: Block {
    let (series, step) = (report.sent, binsOfBar)
    let width = series.widthS * Double(step)
    return .chart(
      Chart(
        title: "Bytes per second", x: time, y: Axis("bytes of frames per second", unit: .bytesPerSecond),
        marks: [
          .bars(
            "",
            stride(from: 0, to: series.bytes.count, by: step).map { start in
              Point(
                series.fromS + Double(start) * series.widthS + width / 2,
                Double(series.bytes[start..<min(start + step, series.bytes.count)].reduce(0, +)) / width)
            }.filter { $0.y > 0 }, width: width, color: .blue)
        ], height: 110))
  }

  /// The times of error responses, for the upper edge of a chart.
  var errorTicks: [Chart.Event] {
    report.errorResponses.enumerated().filter { $0.element > 0 }.map { bin, count in
      .init(
        x: min(report.lengthS, max(0, report.sent.fromS + (Double(bin) + 0.5) * report.sent.widthS)), count: count,
        label: count == 1 ? "error response" : "error responses")
    }
  }
}
