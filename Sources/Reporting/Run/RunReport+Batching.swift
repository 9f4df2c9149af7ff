import Measurement

extension RunReport {
  var batches: Section {
    let batches = result.batches
    guard batches.notifications.count > 0 else { return Section("Batching", [.paragraph("Nothing was written.")]) }
    var blocks: [Block] = [
      .table(
        .numbers(
          ["per write, measured phase"] + LatencyHistogram.columns,
          [["notifications"] + batches.notifications.cells, ["bytes"] + batches.bytes.cells])),
      .chart(
        Chart(
          title: "Notifications per write", x: Axis("notifications in one write", unit: .count, includesZero: false),
          y: Axis("writes", unit: .count), marks: [Self.bars(of: batches.notifications)], height: 150)),
    ]
    let reasons = batches.flushReasons
    let total = reasons.byName.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    if total > 0 {
      var table = Table([
        .init("a batch was written because"), .init("writes, \(latencyWindow)", .right), .init("share", .right),
      ])
      let known = [FlushReason.full, .linger, .drain, .idle].compactMap { reason in
        reasons[reason].map { (Self.meaning(of: reason), $0) }
      }
      let others = reasons.sorted.filter { FlushReason(rawValue: $0.name) == nil }.map { ($0.name, $0.count) }
      for (words, count) in known + others {
        table.add(Prose(words), Prose(grouped(count)), Prose(Unit.share.text(Double(count) / Double(total))))
      }
      blocks.append(.table(table))
    }
    return Section("Batching", blocks + costBlocks)
  }

  private static func meaning(of reason: FlushReason) -> String {
    switch reason {
    case .full: "it was full"
    case .linger: "it had waited long enough"
    case .drain: "the socket had drained"
    case .idle: "no earlier bytes were unsent"
    }
  }

  /// The cost of a notification, and the savings of larger batches.
  private var costBlocks: [Block] {
    let processor = result.resources.cpuUserS + result.resources.cpuSystemS
    guard result.sendings.written > 0, processor > 0 else { return [] }
    let whole =
      "Processor time for each notification: "
      + .strong(Unit.seconds.text(processor / Double(result.sendings.written)))
      + " of the generator, over the whole run with its handshakes" as Prose
    let costs = SecondsCost(result.series, in: measured)
    guard let mean = costs.mean else {
      return [
        .paragraph(whole + "; a mean of \(significant(result.batches.notifications.mean, 3)) notifications per write.")
      ]
    }
    let fit = costs.fit
    let perSecond = fit?.perSecond ?? 0
    let points = costs.seconds.compactMap { second -> Point? in
      guard second.processor > perSecond else { return nil }
      return Point(
        second.batch, (second.processor - perSecond) / Double(second.written),
        note: "\(grouped(second.written)) written at \(time.text(second.begin))")
    }
    var caption = "One point for each second of the measured phase."
    if costs.omitted > 0 {
      caption +=
        " \(grouped(costs.omitted)) with fewer than \(grouped(costs.least)) notifications \(costs.omitted == 1 ? "is" : "are") left out: what goes on without them would be all their cost."
    }
    if perSecond > 0 {
      caption +=
        " The constant cost of each second (clocks, timers) is subtracted: \(Unit.microseconds.text(perSecond)) a second."
    }
    if points.count < costs.seconds.count {
      let count = costs.seconds.count - points.count
      caption +=
        " \(count == 1 ? "1 second" : "\(grouped(count)) seconds") took no more than that, and \(count == 1 ? "has" : "have") no point."
    }
    var blocks: [Block] = [
      .heading("Savings of batches"),
      .paragraph(
        whole
          + "; \(Unit.microseconds.text(mean.cost)) in the measured phase, with a mean of \(significant(mean.batch, 3)) notifications per write."
      ),
      .chart(.batchCost(points, fit: fit.flatMap { $0.batch.isConclusive ? $0.batch : nil }), caption: Prose(caption)),
    ]
    if let fit {
      let cost = fit.batch.cost(batch: mean.batch) ?? 0
      if let reason = fit.batch.reasonToHide {
        blocks.append(
          .paragraph(
            Prose("\(reason). A longer run, or ") + .code("apnscope capacity") + ", gives better estimates."))
      } else {
        blocks.append(.values(fit.batch.values))
        let meaning =
          "A write costs F regardless of its size, plus V for each notification; so with b notifications per write each costs F/b + V (± are 95 % intervals within this run)."
        if fit.isConclusive, cost > 0 {
          let share = Unit.share.text(fit.batch.perWrite / mean.batch / cost)
          blocks.append(
            .paragraph(
              Prose(
                "\(meaning) With \(significant(mean.batch, 3)) in a write that is \(Unit.microseconds.text(cost)), of which \(share) is the cost of the write: the most that larger batches can save."
              )))
        } else {
          blocks.append(.paragraph(Prose(meaning)))
        }
      }
    } else {
      let sizes = costs.seconds.map(\.batch)
      let (least, most) = (significant(sizes.min() ?? 0, 3), significant(sizes.max() ?? 0, 3))
      blocks.append(
        .paragraph(
          "\(least == most ? "Every second had \(least) per write" : "Seconds had from \(least) to \(most) per write"): too much alike to tell what a write costs from what each notification in it does. The points show how much the cost changes from second to second. Stages of different rates vary the size; "
            + .code("apnscope capacity") + " does so on purpose."))
    }
    return blocks
  }

  /// The counts of measured values, in bins of whole numbers.
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
}
