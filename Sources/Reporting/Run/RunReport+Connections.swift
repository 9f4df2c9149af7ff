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
    var causes = Table([.init("closed by"), .init("connections", .right), .init("what that is")])
    for (cause, count) in counts.closed.filter({ $0.value > 0 }).sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) })
    {
      causes.add(.code(cause), Prose(grouped(count)), Prose(Self.meaning(ofCause: cause)))
    }
    blocks.append(causes.rows.isEmpty ? .paragraph("No connection was closed.") : .table(causes))
    blocks += causesOverTime + [strip] + churnCharts
    let latency = result.latency
    blocks.append(
      .table(
        .numbers(
          ["times"] + LatencyHistogram.columns,
          [
            ["TCP connect"] + latency.tcpConnectMs.cells, ["full TLS handshake"] + latency.tlsHandshakeMs.cells,
            ["resumed TLS handshake"] + latency.tlsResumedMs.cells, ["time to recover"] + latency.recoverMs.cells,
            ["drain (marker to its rejection)"] + latency.drainMs.cells,
          ])))
    let handshakes = [("full", latency.tlsHandshakeMs), ("resumed", latency.tlsResumedMs)]
    if handshakes.contains(where: { $0.1.count > 1 }) {
      blocks.append(
        .chart(.percentiles("TLS handshakes, full and resumed", y: "time for a handshake", handshakes)))
    }
    if latency.recoverMs.count > 1 {
      blocks.append(
        .chart(
          latency.recoverMs.percentileChart("Time to recover", y: "time without a connection"),
          caption: "From an error response to the first notification that was sent again on the new connection."))
    }
    return Section("Connections", blocks)
  }

  /// When connections were closed by which cause; nothing for documents from before seconds told it.
  private var causesOverTime: [Block] {
    guard result.series.contains(where: { !$0.closedByCause.isEmpty }) else { return [] }
    let total = result.connections.closed.filter { $0.value > 0 }
    var width = 1.0
    var told = 0.0
    let marks = total.keys.sorted().map { cause in
      let bins = bins { $0.closedByCause[cause] ?? 0 }
      width = bins.width
      told += bins.points.reduce(0) { $0 + $1.y }
      return Mark.bars(cause, bins.points, width: bins.width, color: Self.color(ofCause: cause))
    }
    let late = Int(nearest: total.values.reduce(0) { $0 + Double($1) } - told)
    let per = width == 1 ? "second" : Unit.seconds.text(width)
    return [
      .chart(
        Chart(
          title: "Connections closed, by cause", x: time, y: Axis("connections per \(per)", unit: .count), marks: marks,
          regions: regions, height: 130),
        caption: late > 0
          ? "\(grouped(late)) more \(late == 1 ? "was" : "were") closed after the last whole second, as the run ended."
          : "")
    ]
  }

  /// The same in every report.
  private static func color(ofCause cause: String) -> Color {
    switch cause {
    case "rejected": .vermillion
    case "shutdown": .orange
    case "peer_fin": .purple
    case "peer_rst": .yellow
    case "idle": .sky
    case "lifetime": .blue
    case "local": .grey
    default: .green
    }
  }

  /// One row for each connection of the plan, through all its lives.
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
    var caption = "What each connection did. Handshakes and waiting are drawn over the rest, at least a pixel wide."
    if timeline.omitted > 0 {
      caption += " \(grouped(timeline.omitted)) more spans were not recorded, for lack of room."
    }
    return .chart(Chart(title: "Lives of the connections", x: time, strip: strip), caption: Prose(caption))
  }

  private var churnCharts: [Block] {
    guard !result.series.isEmpty else { return [.paragraph(noSeries)] }
    let (opened, closed) = (bins(\.opened), bins(\.closed))
    let per = opened.width == 1 ? "second" : Unit.seconds.text(opened.width)
    return [
      .chart(
        Chart(
          title: "Connections up", x: time, y: Axis("connections", unit: .count),
          marks: [.steps("", zip(result.series, seconds).map { Point($0.tS + $1, Double($0.up)) }, color: .blue)],
          regions: regions, height: 110)),
      .chart(
        Chart(
          title: "Connections opened and closed", x: time, y: Axis("connections per \(per)", unit: .count),
          marks: [
            .steps("opened", edges(opened), color: .blue), .steps("closed", edges(closed), color: .vermillion),
          ], regions: regions, height: 130)),
    ]
  }

  /// Bins as steps, each from its beginning to its end.
  private func edges(_ bins: (width: Double, points: [Point])) -> [Point] {
    let points = bins.points.map { Point($0.x - bins.width / 2, $0.y) }
    return points + (points.last.map { [Point(min(length, $0.x + bins.width), $0.y)] } ?? [])
  }

  private static func meaning(ofCause cause: String) -> String {
    switch cause {
    case "rejected": "an error response named a notification"
    case "shutdown": "an error response of status 10"
    case "peer_fin": "the gateway, without an error response"
    case "peer_rst": "the gateway, by a reset"
    case "idle": "nothing to send for too long"
    case "lifetime": "its time, or its number of notifications, was over"
    case "local": "this side, at the end of the run or for a failure of its own"
    default: ""
    }
  }
}
