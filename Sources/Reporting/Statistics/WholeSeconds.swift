import Measurement

/// The samples of a phase that are whole seconds of it, each with how long it is.
struct WholeSeconds {
  let samples: [(sample: RunResult.Sample, length: Double)]

  /// - Parameter range: the phase, by its times since the run's start.
  init(_ series: [RunResult.Sample], in range: ClosedRange<Double>) {
    samples = zip(series, Self.lengths(of: series)).compactMap { sample, length in
      // The first sample may begin some hundredths of a second before the phase. A short sample follows a late one.
      guard let length, length > 0.5, sample.tS >= range.lowerBound - 0.05,
        sample.tS + length <= range.upperBound + 0.05
      else { return nil }
      return (sample, length)
    }
  }

  /// The length of each sample of a series: until the next one; the last is a second. `nil` before missing samples,
  /// which merged results may have, because the length is unknown.
  static func lengths(of series: [RunResult.Sample]) -> [Double?] {
    series.indices.map { index in
      guard index + 1 < series.count else { return 1 }
      let length = series[index + 1].tS - series[index].tS
      return length > 0 && length < 1.5 ? length : nil
    }
  }

  var writtenPerSecond: [Double] { samples.map { Double($0.sample.written) / $0.length } }

  /// Microseconds, of the seconds in which any was written.
  var sendLagP99: [Double] { samples.filter { $0.sample.written > 0 }.map { Double($0.sample.sendLagP99Us) } }
}
