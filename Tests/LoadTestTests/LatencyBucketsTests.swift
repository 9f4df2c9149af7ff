import LoadTest
import Measurement
import TestSupport
import Testing

@Suite("Latencies by bounds")
struct LatencyBucketsTests {
  @Test("Each value counts up to the first bound that it does not exceed, and beyond all only in the count")
  func bounds() {
    var latency = RunResult.Latency()
    for value in [0, 100, 101, 1_000, 2_400, 90_000_000] { latency.errorUs.record(value) }
    var buckets = LatencyBuckets()
    buckets.add(latency)
    let upTo = Dictionary(uniqueKeysWithValues: zip(LatencyBuckets.bounds, buckets.error.upToBounds))
    #expect(upTo[100] == 2 && upTo[250] == 3 && upTo[500] == 3 && upTo[1_000] == 4 && upTo[2_500] == 5)
    #expect(upTo[60_000_000] == 5 && buckets.error.count == 6)
    #expect(buckets.error.sum == 90_003_601)
    #expect(buckets.sendLag.count == 0 && buckets.sendLag.upToBounds.allSatisfy { $0 == 0 })
    #expect(LatencyBuckets.bounds == LatencyBuckets.bounds.sorted())
  }

  @Test("In whatever parts values are added, the counts are the same", arguments: seeds(3, of: 30))
  func parts(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (whole, inParts) = (RunResult.Latency(), LatencyBuckets())
    for _ in 0..<Int.random(in: 1...9, using: &random) {
      var part = RunResult.Latency()
      for _ in 0..<Int.random(in: 0...50, using: &random) {
        let value = 1 << Int.random(in: 0...27, using: &random)
        for path in paths {
          part[keyPath: path].record(value)
          whole[keyPath: path].record(value)
        }
      }
      inParts.add(part)
    }
    var once = LatencyBuckets()
    once.add(whole)
    for path in sums {
      let (a, b) = (once[keyPath: path], inParts[keyPath: path])
      #expect(a.upToBounds == b.upToBounds && a.count == b.count && abs(a.sum - b.sum) <= 1e-9 * a.sum)
      #expect(a.count == whole.drainUs.count)
    }
  }

  private let paths: [WritableKeyPath<RunResult.Latency, LatencyHistogram>] = [
    \.sendLagUs, \.errorUs, \.drainUs, \.recoverUs, \.tcpConnectUs, \.tlsHandshakeUs, \.tlsResumedUs,
  ]
  private let sums: [KeyPath<LatencyBuckets, LatencyBuckets.Latency>] = [
    \.sendLag, \.error, \.drain, \.recover, \.tcpConnect, \.tlsHandshake, \.tlsResumed,
  ]
}
