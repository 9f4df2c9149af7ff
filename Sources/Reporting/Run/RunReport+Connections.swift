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
    blocks += [strip] + churnCharts
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

  var batches: Section {
    let batches = result.batches
    guard batches.notifications.count > 0 else { return Section("Batching", [.paragraph("Nothing was written.")]) }
    var blocks: [Block] = [
      .table(
        .numbers(
          ["per write"] + LatencyHistogram.columns,
          [["notifications"] + batches.notifications.cells, ["bytes"] + batches.bytes.cells])),
      .chart(
        Chart(
          title: "Notifications per write", x: Axis("notifications in one write", unit: .count, includesZero: false),
          y: Axis("writes", unit: .count), marks: [Self.bars(of: batches.notifications)], height: 150)),
    ]
    let reasons = ["full", "linger", "drain", "idle"].filter { batches.flushReasons[$0] != nil }
    let total = batches.flushReasons.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    if total > 0 {
      var table = Table([.init("a batch was written because"), .init("writes", .right), .init("share", .right)])
      for reason in reasons + batches.flushReasons.keys.filter({ !reasons.contains($0) }).sorted() {
        let count = batches.flushReasons[reason] ?? 0
        let words =
          switch reason {
          case "full": "it was full"
          case "linger": "it had waited long enough"
          case "drain": "the socket had drained"
          case "idle": "nothing of ours was unsent"
          default: reason
          }
        table.add(Prose(words), Prose(grouped(count)), Prose(Unit.share.text(Double(count) / Double(total))))
      }
      blocks.append(.table(table))
    }
    let processor = result.resources.cpuUserS + result.resources.cpuSystemS
    if result.sendings.written > 0, processor > 0 {
      blocks.append(
        .paragraph(
          "Processor time for each notification: "
            + .strong(Unit.seconds.text(processor / Double(result.sendings.written)))
            + " of the generator, with a mean of \(significant(batches.notifications.mean, 3)) notifications per write."
        ))
    }
    return Section("Batching", blocks)
  }

  /// How often which value was measured, in bins of whole numbers.
  private static func bars(of histogram: LatencyHistogram) -> Mark {
    let width = max(1, (histogram.maximum - min(histogram.minimum, histogram.maximum)) / 60 + 1)
    var bins: [Int: Int] = [:]
    for (value, count) in histogram.counts { bins[value / width, default: 0] += count }
    let points = bins.sorted { $0.key < $1.key }.map { bin, count in
      let (first, last) = (bin * width, bin * width + width - 1)
      return Point(
        Double(first) + Double(width - 1) / 2, Double(count),
        note: width == 1 ? nil : "\(grouped(first)) to \(grouped(last))")
    }
    return .bars("", points, width: Double(width), color: .blue)
  }

  var resources: Section {
    let resources = result.resources
    var blocks: [Block] = [
      .table(
        .numbers(
          ["of the generator", ""],
          [
            ["processor time, user", Unit.seconds.text(resources.cpuUserS)],
            ["processor time, system", Unit.seconds.text(resources.cpuSystemS)],
            ["most memory", Unit.bytes.text(Double(resources.maxRssBytes))],
            [
              "loop lag p99",
              resources.loopLagUs.count == 0 ? "–" : resources.loopLagUs.text(resources.loopLagUs.quantile(0.99)),
            ],
          ]))
    ]
    guard !result.series.isEmpty else { return Section("Resources", blocks + [.paragraph(noSeries)]) }
    let cores = Double(result.environment.cores)
    blocks.append(
      .chart(
        Chart(
          title: "Processor", x: time, y: Axis("cores in use"), marks: [.area("", line(\.cpu), color: .blue)],
          regions: regions,
          rules: cores > 0 && (result.series.map(\.cpu).max() ?? 0) > cores * 0.4
            ? [.horizontal(cores, "all \(result.environment.cores) cores")] : [],
          height: 130)))
    if result.series.contains(where: { $0.rssBytes > 0 }) {
      blocks.append(
        .chart(
          Chart(
            title: "Memory", x: time, y: Axis("resident memory", unit: .bytes),
            marks: [.line("", line { Double($0.rssBytes) }, color: .purple)], regions: regions, height: 110)))
    } else {
      blocks.append(.paragraph("The result does not say how much memory was in use over time."))
    }
    if result.series.contains(where: { $0.loopLagP99Us > 0 }) {
      blocks.append(
        .chart(
          Chart(
            title: "Loop lag p99 of each second", x: time, y: Axis("loop lag p99", unit: .microseconds),
            marks: [.line("", line { Double($0.loopLagP99Us) }, color: .orange)], regions: regions, height: 110),
          caption: "How late the generator's clock came: its own share in every latency."))
    } else {
      blocks.append(.paragraph("The result does not say how late the event loops came over time."))
    }
    return Section("Resources", blocks)
  }
}
