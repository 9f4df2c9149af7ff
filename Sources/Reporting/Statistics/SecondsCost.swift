import Measurement

/// What a notification cost in each second of a run, beside how many were written at once then.
///
/// A run whose rate changes writes batches of different sizes, so its seconds tell what a write costs and what each
/// notification in it does.
struct SecondsCost {
  struct Second {
    /// Since the run's start.
    var begin: Double
    var written: Int
    /// Notifications of a write, on average.
    var batch: Double
    /// Processor time in microseconds: of the whole second, and of one notification.
    var processor: Double
    var cost: Double { processor / Double(max(1, written)) }
  }

  /// Those in which enough was written.
  let seconds: [Second]
  /// Seconds that are left out, because fewer than `least` were written: what goes on without them would be their cost.
  let omitted: Int
  let least: Int

  /// - Parameter range: the seconds that count, by their times since the run's start.
  init(_ series: [RunResult.Sample], in range: ClosedRange<Double>) {
    var all: [Second] = []
    for (index, sample) in series.enumerated() {
      // Where samples are missing nobody knows of how long a time this one is.
      let length = index + 1 < series.count ? series[index + 1].tS - sample.tS : 1
      guard length > 0.5, length < 1.5, sample.tS >= range.lowerBound - 0.05,
        sample.tS + length <= range.upperBound + 0.05
      else { continue }
      let (written, writes) = (Double(sample.written), Double(sample.writes))
      guard writes >= 1, written >= writes, sample.cpu > 0, sample.cpu.isFinite else { continue }
      all.append(
        Second(
          begin: sample.tS, written: sample.written, batch: written / writes, processor: sample.cpu * length * 1e6))
    }
    let least = max(100, (all.map(\.written).max() ?? 0) / 100)
    self.least = least
    seconds = all.filter { $0.written >= least }
    omitted = all.count - seconds.count
  }

  /// Of all of them: notifications of a write, and microseconds of a notification.
  var mean: (batch: Double, cost: Double)? {
    let written = seconds.reduce(0) { $0 + Double($1.written) }
    let writes = seconds.reduce(0) { $0 + Double($1.written) / $1.batch }
    guard writes > 0 else { return nil }
    return (written / writes, seconds.reduce(0) { $0 + $1.processor } / written)
  }

  /// F/b + V of them; `nil` when sizes are too much alike to tell the one from the other.
  ///
  /// A second counts as much as the processor time that it is a measurement of. Sizes differ enough when the largest is
  /// twice the smallest, and three seconds at least are nearer to either.
  var fit: BatchCost? {
    guard let least = seconds.map(\.batch).min(), let most = seconds.map(\.batch).max(), most >= 2 * least else {
      return nil
    }
    let middle = (least * most).squareRoot()
    let small = seconds.count { $0.batch < middle }
    guard small >= 3, seconds.count - small >= 3 else { return nil }
    return try? BatchCost(seconds.map { BatchCost.Point(batch: $0.batch, cost: $0.cost, weight: $0.processor) })
  }
}
