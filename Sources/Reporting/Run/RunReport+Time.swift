import BinaryProtocol
import Measurement

extension RunReport {
  var throughput: Section {
    guard !result.series.isEmpty else { return Section("Throughput", [.paragraph(noSeries)]) }
    var (sumWritten, sumAccepted) = (0.0, 0.0)
    var totals: (written: [Point], accepted: [Point]) = ([Point(0, 0)], [Point(0, 0)])
    for (sample, length) in zip(result.series, seconds) {
      sumWritten += Double(sample.written)
      sumAccepted += Double(sample.accepted)
      totals.written.append(Point(sample.tS + length, sumWritten))
      totals.accepted.append(Point(sample.tS + length, sumAccepted))
    }
    // The rest after the last whole second.
    if let last = totals.written.last, length > last.x {
      totals.written.append(Point(length, max(sumWritten, Double(result.sendings.written))))
      totals.accepted.append(Point(length, max(sumAccepted, Double(result.sendings.accepted))))
    }
    let proven = Chart(
      title: "Written and proven accepted, in total", x: time, y: Axis("notifications", unit: .count),
      marks: [.line("written", totals.written, color: .blue), .line("accepted", totals.accepted, color: .green)],
      regions: regions, height: 180)
    var blocks: [Block] = [
      .chart(
        proven,
        caption:
          "The protocol has no acknowledgement: a notification is known to be accepted only when an error response or a marker names a later one. The gap between the lines is the number of unproven notifications at that time."
      )
    ]
    if result.series.contains(where: { $0.backlog > 0 }) {
      blocks.append(
        .chart(
          Chart(
            title: "Backlog", x: time, y: Axis("notifications due and not written", unit: .count),
            marks: [.area("", line { Double($0.backlog) }, color: .orange)], regions: regions, height: 120),
          caption: "A backlog that grows means that the pace is more than is taken."))
    } else if hasSchedule {
      blocks.append(.paragraph("There was never a backlog at the end of a second."))
    }
    if result.schedule.skipped > 0 {
      blocks.append(
        .callout(
          .warning, "\(grouped(result.schedule.skipped)) notifications were skipped, because they would have been late."
        ))
    }
    return Section("Throughput", blocks)
  }

  var noSeries: Prose {
    "The result has no series: the run was shorter than a second, or its document is from before there was one."
  }

  var lag: Section {
    let lag = result.latency.sendLagUs
    guard lag.count > 0 else {
      return Section(
        "Send lag", [.paragraph("No send lag: nothing had a due time, because the run went as fast as possible.")])
    }
    var blocks: [Block] = [
      .paragraph(
        "Send lag is the time from when a notification was due to when it was written. It grows on this side: for lack of processor time here, or because the gateway does not read."
      ),
      .table(.numbers(["measured phase"] + LatencyHistogram.columns, lagRows)),
    ]
    if result.schedule.neverSent > 0, result.measuredBy != nil {
      blocks.append(
        .callout(
          .warning,
          "\(grouped(result.schedule.neverSent)) due notifications were never sent. Send lag counts each with the time until it was abandoned, which is less than the lag it would have had."
        ))
    }
    if result.series.isEmpty {
      blocks.append(.paragraph(noSeries))
    } else {
      blocks.append(lagOverTime)
    }
    blocks.append(
      .chart(
        .percentiles(
          "Percentiles of the measured phase", y: "time",
          [("send lag", lag), ("loop lag", result.resources.loopLagUs)]),
        caption: result.resources.loopLagUs.count > 0
          ? "Loop lag is how late the generator's own clock came; where it is as high as the send lag, the lag is the generator's."
          : ""))
    return Section("Send lag", blocks)
  }

  private var lagRows: [[String]] {
    let latency = result.latency
    guard let own = latency.sendLagOwnUs, let gateway = latency.sendLagGatewayUs else {
      return [["send lag"] + latency.sendLagUs.cells]
    }
    return [
      ["send lag"] + latency.sendLagUs.cells, ["of it the generator's own"] + own.cells,
      ["of it waiting for the gateway"] + gateway.cells,
    ]
  }

  /// The send lag by second, with the seconds marked in which the generator stalled.
  private var lagOverTime: Block {
    var marks: [Mark] = [.line("send lag p99", line { Double($0.sendLagP99Us) }, color: .blue)]
    let isStalled = result.series.contains { ($0.stalledMs ?? 0) > 0 }
    if isStalled {
      marks.append(.line("the generator stalled", line { ($0.stalledMs ?? 0) * 1e3 }, color: .orange))
    }
    return .chart(
      Chart(
        title: "Send lag p99 of each second", x: time, y: Axis("time", unit: .microseconds), marks: marks,
        regions: regions, events: errorTicks, height: 160),
      caption: isStalled
        ? "In seconds in which the generator stalled, the lag includes the stall." : "")
  }

  var errors: Section {
    let total = result.binary.errorResponses.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    guard total > 0 || result.binary.lossWindow.count > 0 else {
      return Section("Errors and loss", [.paragraph("No error responses.")])
    }
    var blocks: [Block] = []
    let statuses = result.binary.errorResponses.filter { $0.value > 0 }.sorted {
      (Int($0.key) ?? .max, $0.key) < (Int($1.key) ?? .max, $1.key)
    }
    var table = Table([
      .init("status"), .init("meaning"), .init("responses, whole run", .right), .init("share", .right),
    ])
    for (status, count) in statuses {
      table.add(
        Prose(status), Prose(Self.meaning(ofStatus: status)), Prose(grouped(count)),
        Prose(Unit.share.text(Double(count) / Double(max(1, total)))))
    }
    blocks.append(.table(table))
    blocks.append(errorsOverTime(statuses.map(\.key)))
    blocks.append(
      .table(
        .numbers(
          ["per error response, \(latencyWindow)"] + LatencyHistogram.columns,
          [
            ["error latency"] + result.latency.errorUs.cells, ["loss window"] + result.binary.lossWindow.cells,
            ["time to recover"] + result.latency.recoverUs.cells,
          ])))
    if result.latency.errorUs.count > 1 {
      blocks.append(
        .chart(
          result.latency.errorUs.percentileChart("Error latency", y: "from written to error read"),
          caption:
            "Of those notifications only that were refused; a sample of the gateway's time, and no response time of the others."
        ))
    }
    if result.binary.lossWindow.count > 1 {
      blocks.append(
        .chart(
          result.binary.lossWindow.percentileChart("Loss window", y: "notifications discarded per error"),
          caption: "Notifications written after a rejected one before its error was read, which had to be resent."
        ))
    }
    return Section("Errors and loss", blocks)
  }

  private func errorsOverTime(_ statuses: [String]) -> Block {
    guard !result.series.isEmpty else { return .paragraph(noSeries) }
    let knowsStatus = result.series.contains { !$0.errorsByStatus.isEmpty }
    let names = knowsStatus ? statuses : [""]
    var width = 1.0
    let marks = names.enumerated().map { index, status in
      let bins = bins { knowsStatus ? $0.errorsByStatus[status] ?? 0 : $0.errors }
      width = bins.width
      return Mark.bars(
        status.isEmpty ? "" : "status \(status)", bins.points, width: bins.width, color: .number(index))
    }
    return .chart(
      Chart(
        title: "Error responses over time", x: time,
        y: Axis("error responses per \(width == 1 ? "second" : Unit.seconds.text(width))", unit: .count), marks: marks,
        regions: regions, height: 150))
  }

  private static func meaning(ofStatus status: String) -> String {
    UInt8(status).map { ErrorResponse.Status(rawValue: $0).description } ?? "no status of the protocol"
  }
}
