import Measurement

extension RunReport {
  var connections: Section {
    let counts = result.connections
    guard counts.attempted > 0 else { return Section("Connections", [.paragraph("No connection was attempted.")]) }
    var blocks: [Block] = [
      .paragraph(
        "\(grouped(counts.attempted)) attempted, \(grouped(counts.opened)) opened, \(grouped(counts.resumed)) of them with a resumed TLS session, \(grouped(counts.failed)) failed."
      )
    ]
    if let refused = counts.refused, refused > 0 {
      let share = Unit.share.text(Double(refused) / Double(max(1, counts.opened)))
      blocks.append(
        .paragraph(
          "The gateway closed \(grouped(refused)) of the opened ones (\(share)) before it had settled anything on them, within a second: they were never up."
        ))
    }
    if let asked = counts.asked, let everUp = counts.everUp, everUp < asked {
      blocks.append(
        .callout(.bad, "\(grouped(everUp)) of \(grouped(asked)) connections that were asked for were ever up."))
    }
    var causes = Table([.init("closed by"), .init("connections", .right), .init("what that is")])
    for (cause, count) in counts.closed.positive.byCount {
      let meaning = ConnectionEnd(rawValue: cause).map(Self.meaning) ?? ""
      causes.add(.code(cause), Prose(grouped(count)), Prose(meaning))
    }
    blocks.append(causes.rows.isEmpty ? .paragraph("No connection was closed.") : .table(causes))
    blocks += churnCharts(strip)
    let latency = result.latency
    let (full, resumed) = (result.ofWholeRun(\.tlsHandshakeUs), result.ofWholeRun(\.tlsResumedUs))
    blocks.append(
      .table(
        .numbers(
          ["whole run"] + LatencyHistogram.columns,
          [
            ["TCP connect"] + result.ofWholeRun(\.tcpConnectUs).cells, ["full TLS handshake"] + full.cells,
            ["resumed TLS handshake"] + resumed.cells,
          ])))
    blocks.append(
      .table(
        .numbers(
          [latencyWindow] + LatencyHistogram.columns,
          [
            ["time to recover"] + latency.recoverUs.cells,
            ["drain (marker to its rejection)"] + latency.drainUs.cells,
          ])))
    let handshakes = [("full", full), ("resumed", resumed)]
    if handshakes.contains(where: { $0.1.count > 1 }) {
      blocks.append(
        .chart(.percentiles("TLS handshakes, full and resumed", y: "time for a handshake", handshakes)))
    }
    if latency.recoverUs.count > 1 {
      blocks.append(
        .chart(
          latency.recoverUs.percentileChart("Time to recover", y: "from error to sending again"),
          caption:
            "From reading an error response until the replacement connection is up and resends the lost notifications."
        ))
    }
    return Section("Connections", blocks)
  }

  /// The colour of a cause, equal in every report.
  private static func color(of cause: ConnectionEnd?) -> Color {
    switch cause {
    case .rejected: .vermillion
    case .shutdown: .orange
    case .peerFin: .purple
    case .peerRst: .yellow
    case .idle: .sky
    case .lifetime: .blue
    case .local: .grey
    default: .green
    }
  }

  /// One row for each of the plan's connections, with its states over time.
  private var strip: Block {
    let timeline = result.timeline
    guard !timeline.spans.isEmpty else {
      return .paragraph("The result has no timeline of its connections.")
    }
    let states: [(state: RunResult.Timeline.State, shown: Strip.State)] = [
      (.up, .init("up", color: .sky, isQuiet: true)), (.handshake, .init("handshake", color: .orange)),
      (.backOff, .init("back-off", color: .vermillion)),
    ]
    var rows: [Int: [Strip.Span]] = [:]
    for span in timeline.spans {
      let state = states.firstIndex { $0.state == span.state } ?? 0
      rows[span.connection, default: []].append(.init(from: span.fromS, to: span.toS, state: state))
    }
    let strip = Strip(
      states: states.map(\.shown),
      rows: rows.sorted { $0.key < $1.key }.map { .init(label: "\($0.key)", spans: $0.value) },
      rowName: "connection")
    var caption = "Connections over time. Handshakes and waiting are drawn on top, at least a pixel wide."
    if timeline.omitted > 0 {
      caption += " \(grouped(timeline.omitted)) more spans were not recorded; see --timeline."
    }
    return .chart(Chart(title: "Connections over time", x: time, strip: strip), caption: Prose(caption))
  }

  /// - Parameter strip: comes after the chart of opened and closed connections.
  private func churnCharts(_ strip: Block) -> [Block] {
    guard !result.series.isEmpty else { return [strip, .paragraph(noSeries)] }
    return [
      churn, strip,
      .chart(
        Chart(
          title: "Connections up", x: time, y: Axis("connections", unit: .count),
          marks: [.steps("", zip(result.series, seconds).map { Point($0.tS + $1, Double($0.up)) }, color: .blue)],
          regions: regions, height: 110)),
    ]
  }

  /// Connections opened, and closed by cause; the sum of all causes for older documents.
  private var churn: Block {
    let opened = bins(\.opened)
    var chart = Chart(
      title: "Connections opened and closed", x: time,
      y: Axis("connections per \(opened.width == 1 ? "second" : Unit.seconds.text(opened.width))", unit: .count),
      marks: [], regions: regions, height: 140)
    let openedLine = Mark.steps("opened", edges(opened), color: .green)
    let hasCauses = result.series.allSatisfy { $0.closed == 0 || $0.closedByCause != nil }
    guard hasCauses, result.series.contains(where: { $0.closedByCause?.isEmpty == false }) else {
      chart.marks = [openedLine, .steps("closed", edges(bins(\.closed)), color: .vermillion)]
      return .chart(chart)
    }
    chart.title = "Connections opened, and closed by cause"
    let total = result.connections.closed.positive
    var shown = 0.0
    for cause in total.sorted.map(\.name) {
      let closed = bins { $0.closedByCause?.byName[cause] ?? 0 }
      shown += closed.points.reduce(0) { $0 + $1.y }
      guard closed.points.contains(where: { $0.y > 0 }) else { continue }
      let color = Self.color(of: ConnectionEnd(rawValue: cause))
      chart.marks.append(.bars(cause, closed.points, width: opened.width, color: color))
    }
    chart.marks.append(openedLine)
    let late = Int(nearest: total.byName.values.reduce(0) { $0 + Double($1) } - shown)
    return .chart(
      chart,
      caption: late > 0
        ? "Bars are closed connections. \(grouped(late)) more \(late == 1 ? "was" : "were") closed after the last whole second, as the run ended."
        : "Bars are closed connections.")
  }

  /// Bins as steps, each from its beginning to its end.
  private func edges(_ bins: (width: Double, points: [Point])) -> [Point] {
    let points = bins.points.map { Point($0.x - bins.width / 2, $0.y) }
    return points + (points.last.map { [Point(min(length, $0.x + bins.width), $0.y)] } ?? [])
  }

  private static func meaning(of cause: ConnectionEnd) -> String {
    switch cause {
    case .rejected: "an error response named a notification"
    case .shutdown: "an error response of status 10"
    case .peerFin: "the gateway, without an error response"
    case .peerRst: "the gateway, by a reset"
    case .idle: "idle for too long"
    case .lifetime: "its limit of time, notifications or memory was reached"
    case .local: "this side: at the end of the run, to isolate a bad notification, or after a failure here"
    // A load counts no other causes.
    case .handshakeFailed, .refused, .frameTimeout, .tlsError, .feedbackLost, .memory, .protocolError: ""
    }
  }
}
