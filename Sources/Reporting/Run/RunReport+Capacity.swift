import Measurement

extension RunReport {
  /// What the run says for planning, with how well it is known.
  var capacity: Section {
    guard isMeasured else {
      let reason = reasonForNoRates
      return Section(
        "What this says about capacity", [.paragraph(Prose("\(reason.prefix(1).uppercased())\(reason.dropFirst())."))])
    }
    var table = Table([
      .init("question"), .init("answer", .right), .init("95 % interval", .right), .init("how it is known"),
    ])
    let rates = result.rates
    let written = WholeSeconds(result.series, in: measured).writtenPerSecond
    // What the plan changes is no chance, and has no interval.
    let interval = reasonToVary == nil ? try? BatchMeans(written) : nil
    let relative = interval.flatMap { $0.mean > 0 ? $0.halfWidth / $0.mean : nil }
    func around(_ value: Double, _ unit: Unit) -> Prose {
      relative.map { Prose("± \(unit.text(value * $0))") } ?? "–"
    }
    let how: Prose =
      switch (interval, reasonToVary) {
      case (let known?, _):
        "\(grouped(written.count)) seconds, as good as \(significant(known.effectiveCount, 2)) independent ones (batch means)"
      case (nil, let reason?): "\(reason), so it has no interval"
      case (nil, nil): "too few whole seconds in the measured phase for an interval"
      }
    table.add(
      "Written per second", .strong(Unit.perSecond.text(rates.writtenPerS)), around(rates.writtenPerS, .perSecond), how)
    table.add(
      "Accepted per second", .strong(Unit.perSecond.text(rates.acceptedPerS)), around(rates.acceptedPerS, .perSecond),
      "written, times the share that was accepted")
    if let count = plannedConnections {
      table.add(
        "Written per second and connection", Prose(Unit.perSecond.text(rates.writtenPerS / count)),
        around(rates.writtenPerS / count, .perSecond), "\(grouped(count)) \(count == 1 ? "connection" : "connections")")
    }
    if rates.acceptedPerS > 0 {
      table.add(
        "A campaign of a million takes", Prose(Unit.seconds.text(1e6 / rates.acceptedPerS)),
        around(1e6 / rates.acceptedPerS, .seconds), "1,000,000 / accepted per second")
    }
    table.add(
      "Plaintext to the gateway", Prose(Unit.bytesPerSecond.text(rates.writtenBytesPerS)),
      around(rates.writtenBytesPerS, .bytesPerSecond),
      Prose(rates.writtenPerS > 0 ? "\(significant(rates.writtenBytesPerS / rates.writtenPerS, 3)) B each" : ""))
    lagRows(&table)
    errorRows(&table)
    var blocks: [Block] = [.table(table)]
    blocks += remarks(interval, written).map { .paragraph($0) }
    return Section("What this says about capacity", blocks)
  }

  private func lagRows(_ table: inout Table) {
    let lag = result.latency.sendLagUs
    guard lag.count > 0 else { return }
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
      let ends = lag.interval(of: share)
      let low = ends.lower.map { lag.text($0) } ?? "?"
      let high = ends.upper.map { lag.text($0) } ?? "?"
      table.add(
        "Send lag \(name)", Prose(lag.text(lag.quantile(share))),
        low == high ? "finer than recorded" : "\(low) to \(high)",
        "ranks of \(grouped(lag.count)) values")
    }
  }

  private func errorRows(_ table: inout Table) {
    let sendings = result.sendings
    switch EventShare(events: sendings.rejected, of: sendings.written) {
    case .measured(let share):
      table.add(
        "Rejected", Prose(Unit.share.text(share)),
        Prose(EventShare.interval(events: sendings.rejected, of: sendings.written).map(Self.between) ?? "–"),
        "one in \(grouped(Double(sendings.written) / Double(max(1, sendings.rejected))))")
    case .lessThan(let share):
      table.add("Rejected", "none", "below \(Unit.share.text(share))", "none in \(grouped(sendings.written))")
    case .unknown: table.add("Rejected", "–", "–", "nothing was written")
    }
    if result.lossWindow.count > 0 {
      table.add(
        "An error discards", Prose(significant(result.lossWindow.mean, 3)), Self.around(result.lossWindow),
        "mean of \(grouped(result.lossWindow.count)); the most were \(grouped(result.lossWindow.maximum))")
    }
    if result.latency.recoverMs.count > 0 {
      table.add(
        "An error stops a connection for", Prose(Unit.microseconds.text(result.latency.recoverMs.mean)),
        Self.around(result.latency.recoverMs),
        "mean of \(grouped(result.latency.recoverMs.count)), from the error to the connection made in its place")
    }
    if sendings.accepted > 0, sendings.written > 0 {
      table.add(
        "Written for each one accepted", Prose(decimal(Double(sendings.written) / Double(sendings.accepted), 4)), "–",
        "1 when nothing is sent again")
    }
  }

  private static func between(_ shares: ClosedRange<Double>) -> String {
    "\(Unit.share.text(shares.lowerBound)) to \(Unit.share.text(shares.upperBound))"
  }

  private static func around(_ histogram: LatencyHistogram) -> Prose {
    guard let half = histogram.halfWidthOfMean else { return "–" }
    return Prose("± " + (histogram.unit == .count ? significant(half, 2) : histogram.valueUnit.text(half)))
  }

  private func remarks(_ interval: BatchMeans?, _ written: [Double]) -> [Prose] {
    var remarks: [Prose] = []
    switch result.verdict.limitedBy {
    case .schedule:
      remarks.append(
        "The schedule was the limit: this is the rate that was asked for, and the most is not known."
          + (moreWith.map { " Ask for more with " + $0 + "." } ?? ""))
    case .generator:
      remarks.append(
        "The generator was the limit: the gateway may take more than this. Share the load among machines with "
          + .code("--segment") + ", and join the results with " + .code("apnscope merge") + ".")
    case .gateway: break
    }
    if let interval, !interval.isIndependent {
      remarks.append(
        "The interval is too narrow: neighbouring seconds are still correlated in the longest batches. Run longer.")
    }
    // What is meant to change is not meant to settle.
    guard reasonToVary == nil else { return remarks }
    switch WarmUp(written) {
    case .settled(let at) where at > 0:
      remarks.append(
        "The rate settled after \(grouped(at)) seconds of the measured phase (MSER-5); the seconds before are in the numbers. Give "
          + .code("--warm-up \(at)s") + " to leave them out.")
    case .neverSettles:
      remarks.append("The rate never settled (MSER-5): the mean describes a run that was still changing.")
    case .settled, .tooShort: break
    }
    return remarks
  }
}
