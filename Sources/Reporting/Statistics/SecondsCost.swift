import Measurement

/// The cost of a notification in each second of a run, with the mean batch of that second.
///
/// A run whose rate changes writes batches of different sizes, so its seconds reveal the costs of a write and of a
/// notification.
struct SecondsCost {
  struct Second {
    /// Since the run's start.
    var begin: Double
    var written: Int
    /// Notifications of a write, on average.
    var batch: Double
    /// Processor time in microseconds: of the whole second (`processor`), and per notification (`cost`).
    var processor: Double
    var cost: Double { processor / Double(max(1, written)) }
  }

  /// The seconds in which enough notifications were written.
  let seconds: [Second]
  /// Seconds excluded because fewer than `least` notifications were written: constant costs would dominate.
  let omitted: Int
  let least: Int

  /// - Parameter range: the seconds that count, by their times since the run's start.
  init(_ series: [RunResult.Sample], in range: ClosedRange<Double>) {
    var all: [Second] = []
    for (sample, length) in WholeSeconds(series, in: range).samples {
      guard let count = sample.writes else { continue }
      let (written, writes) = (Double(sample.written), Double(count))
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

  /// The means over all seconds: notifications per write, and microseconds per notification.
  var mean: (batch: Double, cost: Double)? {
    let written = seconds.reduce(0) { $0 + Double($1.written) }
    let writes = seconds.reduce(0) { $0 + Double($1.written) / $1.batch }
    guard writes > 0 else { return nil }
    return (written / writes, seconds.reduce(0) { $0 + $1.processor } / written)
  }

  /// The fit: processor time of a second = `perSecond` + F · writes + V · notifications, in microseconds.
  struct Fit {
    /// The constant cost of each second: clocks, timers, counting. Never negative.
    var perSecond = 0.0
    var batch: BatchCost

    /// Whether it explains enough, and neither part might as well be 0, to draw conclusions from.
    var isConclusive: Bool {
      guard batch.isConclusive, let write = batch.perWriteHalfWidth, let each = batch.perNotificationHalfWidth else {
        return false
      }
      return batch.perWrite > write && batch.perNotification > each
    }
  }

  /// `nil` if batch sizes are too similar to distinguish F from V: the largest has to be at least twice the smallest,
  /// and at least three seconds have to be nearer to each of them.
  ///
  /// Least squares of the relative errors; a second is weighted by its processor time. The constant cost of a second is
  /// fitted, too, but left out if any of the three costs would be negative. F's error is computed with the constant as
  /// a free parameter, because seconds often have similar numbers of writes, and then the constant looks like F.
  var fit: Fit? {
    guard let least = seconds.map(\.batch).min(), let most = seconds.map(\.batch).max(), most >= 2 * least else {
      return nil
    }
    let middle = (least * most).squareRoot()
    let small = seconds.count { $0.batch < middle }
    guard small >= 3, seconds.count - small >= 3, let (perSecond, perWrite, perNotification) = parts else { return nil }
    let rows = seconds.map { second in
      let terms = Self.terms(second)
      let fitted = perSecond * terms[0] + perWrite * terms[1] + perNotification * terms[2]
      return FitErrors.Row(
        coefficients: terms, weight: 1 / second.processor, fitted: fitted, residual: second.processor - fitted)
    }
    let rSquared = explained(
      seconds.map { ($0.processor - perSecond) / Double($0.written) }, weights: seconds.map(\.processor),
      squaredError: zip(seconds, rows).reduce(0) {
        let each = $1.1.residual / Double($1.0.written)
        return $0 + $1.0.processor * each * each
      })
    return Fit(
      perSecond: perSecond,
      batch: BatchCost(
        perWrite: perWrite, perNotification: perNotification,
        halfWidths: FitErrors(rows).map { ($0.halfWidths[1], $0.halfWidths[2]) }, rSquared: rSquared))
  }

  private static func terms(_ second: Second) -> [Double] {
    [1, Double(second.written) / second.batch, Double(second.written)]
  }

  /// The costs of a second, a write and a notification; none is negative.
  private var parts: (second: Double, write: Double, notification: Double)? {
    var system = LinearSystem(size: 3)
    for second in seconds { system.add(Self.terms(second), second.processor, weight: 1 / second.processor) }
    if let solved = system.solved(), solved.allSatisfy({ $0 >= 0 }) { return (solved[0], solved[1], solved[2]) }
    let points = seconds.map { BatchCost.Point(batch: $0.batch, cost: $0.cost, weight: $0.processor) }
    return (try? BatchCost(points)).map { (0, $0.perWrite, $0.perNotification) }
  }
}
