import Measurement

extension RunReport {
  /// The confidence interval of the write rate, from this run alone, or the reason why there is none.
  struct WrittenInterval {
    /// The half width of the 95 % interval, relative to the rate; `nil` without an interval.
    var share: Double?
    /// How the interval was computed, or why it is missing.
    var words: Prose
    var warmUp: WarmUp
    /// The length in seconds of the values that `warmUp` counts.
    var secondsEach: Double

    init(_ report: RunReport) {
      let bins = report.result.bins.flatMap { WholeBins($0, in: report.measured) }
      if let bins {
        (warmUp, secondsEach) = (WarmUp(rates: bins.rates, secondsEach: bins.length), bins.length)
      } else {
        (warmUp, secondsEach) = (WarmUp(WholeSeconds(report.result.series, in: report.measured).writtenPerSecond), 1)
      }
      // A rate that the plan changes has no interval.
      if let reason = report.reasonToVary {
        words = "\(reason), so it has no interval"
      } else if let bins {
        words = ""
        measure(bins)
      } else {
        words =
          report.result.merged == nil
          ? "no interval: the result is of a version that kept no times shorter than a second"
          : "no interval: the clocks of several runs are not near enough to each other"
      }
    }

    private mutating func measure(_ bins: WholeBins) {
      do {
        let means = try BatchMeans(bins.rates, secondsEach: bins.length)
        share = means.mean > 0 ? means.halfWidth / means.mean : nil
        words = "batch means of \(grouped(bins.rates.count)) times of \(Unit.seconds.text(bins.length))"
      } catch {
        words =
          switch error {
          case .tooShort:
            "\(Unit.seconds.text(Double(bins.rates.count) * bins.length)) are too short for an interval, which takes \(Unit.seconds.text(BatchMeans.shortestS))"
          case .drifts: "no interval: the rate drifts through the phase"
          case .notANumber: "no interval"
          }
      }
    }

    /// The interval of the accepted rate: widened by the losses if they are below the interval of the written rate;
    /// otherwise `nil`, because errors come in bursts, whose cost these bins do not show.
    func shareOfAccepted(_ rates: RunResult.Rates) -> Double? {
      guard let share, rates.basis != .measuredAndDrain, let written = rates.writtenPerS, written > 0,
        let accepted = rates.acceptedPerS
      else { return nil }
      let lost = 1 - accepted / written
      return lost >= 0 && lost <= share ? share + lost : nil
    }
  }
}
