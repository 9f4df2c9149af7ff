import Measurement

extension RunReport {
  /// The run's figures for planning, with how well they are known.
  var capacity: Section {
    guard isMeasured else {
      let reason = reasonForNoRates
      return Section(
        "What this says about capacity", [.paragraph(Prose("\(reason.prefix(1).uppercased())\(reason.dropFirst())."))])
    }
    var table = Table([
      .init("question"), .init("answer", .right), .init("95 % interval within this run", .right),
      .init("how it is known"),
    ])
    let rates = result.rates
    // A document written by apnscope has all of these rates here.
    let (written, accepted, bytes) = (
      rates.writtenPerS ?? .nan, rates.acceptedPerS ?? .nan, rates.writtenBytesPerS ?? .nan
    )
    let interval = WrittenInterval(self)
    /// The half width of a value that is proportional to the rate.
    func around(_ value: Double, _ unit: Unit, by share: Double?) -> Prose {
      share.map { Prose("± \(unit.text(value * $0))") } ?? "–"
    }
    table.add(
      "Written per second", .strong(Unit.perSecond.text(written)),
      around(written, .perSecond, by: interval.share), interval.words)
    let ofAccepted = interval.shareOfAccepted(rates)
    table.add(
      "Accepted per second", .strong(Unit.perSecond.text(accepted)),
      around(accepted, .perSecond, by: ofAccepted),
      rates.basis == .measuredAndDrain
        ? "over the measured phase and the drain"
        : ofAccepted == nil && interval.share != nil
          ? "the accepted part of that; losses exceed the interval above"
          : result.measuredBy == nil
            ? "written per second, times the share of the whole run that was accepted" : "the accepted part of that")
    if let count = plannedConnections {
      table.add(
        "Written per second and connection", Prose(Unit.perSecond.text(written / count)),
        around(written / count, .perSecond, by: interval.share),
        "\(grouped(count)) \(count == 1 ? "connection" : "connections")")
    }
    if accepted > 0 {
      table.add(
        "A campaign of a million takes", Prose(Unit.seconds.text(1e6 / accepted)),
        Prose(
          ofAccepted.flatMap { share in
            share < 1
              ? Self.between(
                1e6 / accepted / (1 + share)...1e6 / accepted / (1 - share), .seconds) : nil
          } ?? "–"), "1,000,000 / accepted per second")
    }
    table.add(
      "Plaintext to the gateway", Prose(Unit.bytesPerSecond.text(bytes)), "–",
      Prose(written > 0 ? "\(significant(bytes / written, 3)) B each" : ""))
    lagRows(&table)
    errorRows(&table)
    pruningRows(&table)
    var blocks: [Block] = [.table(table)]
    blocks += remarks(interval).map { .paragraph($0) }
    return Section("What this says about capacity", blocks)
  }

  private func lagRows(_ table: inout Table) {
    let lag = result.latency.sendLagUs
    guard lag.count > 0 else { return }
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
      table.add(
        "Send lag \(name)", Prose(lag.text(lag.quantile(share))), "–",
        "of \(grouped(lag.count)) values, which come in bursts: no interval")
    }
    let ofSeconds = WholeSeconds(result.series, in: measured).sendLagP99
    guard let middle = median(ofSeconds) else { return }
    // A rate that the plan changes has no interval.
    guard reasonToVary == nil else { return }
    let known = MedianInterval(ofSeconds)
    table.add(
      "Send lag p99 of a second, median", Prose(Unit.microseconds.text(middle)),
      Prose(known.map { Self.between($0.bounds, .microseconds) } ?? "–"),
      Prose(
        "of \(grouped(ofSeconds.count)) \(ofSeconds.count == 1 ? "second" : "seconds")"
          + (known != nil
            ? ""
            : ofSeconds.count < MedianInterval.fewest
              ? ": too short for an interval" : ": no interval, neighbouring seconds are too much alike")))
  }

  private func errorRows(_ table: inout Table) {
    let sendings = result.sendings
    switch EventShare(events: sendings.rejected, of: sendings.written) {
    case .measured(let share):
      table.add(
        "Rejected", Prose(Unit.share.text(share)),
        Prose(
          EventShare.interval(
            events: sendings.rejected, of: sendings.written,
            seconds: result.series.map { (Double($0.errors), Double($0.written)) }
          ).map { Self.between($0, .share) } ?? "–"),
        "one in \(grouped(Double(sendings.written) / Double(max(1, sendings.rejected)))), whole run")
    case .lessThan(let share):
      table.add(
        "Rejected", "none", "below \(Unit.share.text(share))", "none in \(grouped(sendings.written)), whole run")
    case .unknown: table.add("Rejected", "–", "–", "nothing was written")
    }
    if result.binary.lossWindow.count > 0 {
      table.add(
        "An error discards", Prose(significant(result.binary.lossWindow.mean, 3)), "–",
        "mean of \(grouped(result.binary.lossWindow.count)); the most were \(grouped(result.binary.lossWindow.maximum))"
      )
    }
    if result.latency.recoverUs.count > 0 {
      table.add(
        "An error stops a connection for", Prose(Unit.microseconds.text(result.latency.recoverUs.mean)), "–",
        "mean of \(grouped(result.latency.recoverUs.count)), from the error to the replacement connection")
    }
    if sendings.accepted > 0, sendings.written > 0 {
      table.add(
        "Written for each one accepted", Prose(decimal(Double(sendings.written) / Double(sendings.accepted), 4)), "–",
        "1 without resends; whole run")
    }
  }

  private static func between(_ range: ClosedRange<Double>, _ unit: Unit) -> String {
    "\(unit.text(range.lowerBound)) to \(unit.text(range.upperBound))"
  }

  private func remarks(_ interval: WrittenInterval) -> [Prose] {
    var remarks: [Prose] = []
    switch result.verdict.limitedBy {
    case .schedule:
      remarks.append(
        "The schedule was the limit: this is the requested rate; the maximum is unknown."
          + (moreWith.map { " Request more with " + $0 + "." } ?? ""))
    case .generator:
      remarks.append(
        "The generator was the limit: the gateway may take more. Divide the load among machines with "
          + .code("--segment") + ", and merge the results with " + .code("apnscope merge") + ".")
    case .gateway: break
    }
    // A rate that the plan changes does not settle.
    guard reasonToVary == nil else { return remarks }
    switch interval.warmUp {
    case .settled(let at) where at > 0:
      let seconds = Double(at) * interval.secondsEach
      remarks.append(
        "The rate settled \(Unit.seconds.text(seconds)) into the measured phase (MSER-5); the numbers include the time before. Give "
          + .code("--warm-up \(Int(nearest: (warmUpOfPlan + seconds).rounded(.up)))s") + " to exclude it.")
    case .neverSettles:
      remarks.append("The rate never settled (MSER-5): the mean describes a run that was still changing.")
    case .settled, .tooShort: break
    }
    return remarks
  }
}
