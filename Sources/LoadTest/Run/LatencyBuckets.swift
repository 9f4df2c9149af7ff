import Measurement

/// Latencies of a run so far by fixed bounds, which are the same in every process: their sums are those of the whole.
package struct LatencyBuckets: Sendable {
  /// One latency: how many values were not above each bound, their number and their sum in microseconds.
  package struct Latency: Sendable {
    /// By bound; those up to lower bounds are not included.
    fileprivate var counts = [Int](repeating: 0, count: LatencyBuckets.bounds.count)
    package fileprivate(set) var count = 0
    package fileprivate(set) var sum = 0.0

    /// The number of values up to each bound, those up to lower bounds included.
    package var upToBounds: [Int] {
      var total = 0
      return counts.map {
        total += $0
        return total
      }
    }

    /// Values are counted with the histogram's precision: one just above a bound may count as up to it.
    fileprivate mutating func add(_ histogram: LatencyHistogram) {
      guard histogram.count > 0 else { return }
      count += histogram.count
      sum += histogram.mean * Double(histogram.count)
      for (value, times) in histogram.counts {
        if let place = LatencyBuckets.bounds.firstIndex(where: { value <= $0 }) { counts[place] += times }
      }
    }
  }

  /// Microseconds, a decade in three steps: from a write on the same host to the time after which clients give up.
  package static let bounds = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 25_000_000, 60_000_000,
  ]

  package private(set) var sendLag = Latency()
  package private(set) var error = Latency()
  package private(set) var drain = Latency()
  package private(set) var recover = Latency()
  package private(set) var tcpConnect = Latency()
  package private(set) var tlsHandshake = Latency()
  package private(set) var tlsResumed = Latency()

  package init() {}

  /// Adds the latencies of some time.
  package mutating func add(_ latency: RunResult.Latency) {
    sendLag.add(latency.sendLagUs)
    error.add(latency.errorUs)
    drain.add(latency.drainUs)
    recover.add(latency.recoverUs)
    tcpConnect.add(latency.tcpConnectUs)
    tlsHandshake.add(latency.tlsHandshakeUs)
    tlsResumed.add(latency.tlsResumedUs)
  }
}
