import NIOCore
import TestSupport
import Testing

@testable import GatewaySimulator

/// A connection that is read at a rate, by a loop whose timers come late, from a peer who has always more to send.
@Suite("Reading at a rate")
struct ReadThrottleTests {
  /// What was read, and when.
  private struct Reader {
    private(set) var throttle: ReadThrottle
    private(set) var now = NIODeadline.uptimeNanoseconds(5_000_000_000)
    private(set) var taken = 0
    /// The most that was read in any time beyond the rate times it, in bytes.
    private(set) var mostAhead = 0.0
    private let start: NIODeadline
    private let rate: Double
    private let length: Int
    /// The least that was read, at the begin of a read, less what the rate gives until then.
    private var behind = Double.infinity

    init(rate: Int) throws {
      var rules = Behavior.Reading()
      rules.bytesPerSecond = rate
      self.rate = Double(rate)
      length = ReadThrottle.readLength(rules)
      start = now
      throttle = try #require(ReadThrottle(rules, at: now))
    }

    var elapsed: Double { Double((now - start).nanoseconds) / 1e9 }

    /// One read, and the time until the next.
    ///
    /// - Parameter lateness: of the timer that the throttle asks for.
    mutating func read(lateness: TimeAmount) {
      behind = min(behind, Double(taken) - rate * elapsed)
      taken += length
      mostAhead = max(mostAhead, Double(taken) - rate * elapsed - behind)
      if let delay = throttle.delay(after: length, at: now) {
        now = now + delay + lateness
      } else {
        now = now + .microseconds(1)
      }
    }
  }

  @Test(
    "Timers that are late by less than 7 ms do not make it slower than its rate, and it is never 10 ms ahead",
    arguments: [1_000_000, 20_000_000, 100_000_000], seeds(3, of: 100))
  func rate(rate: Int, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var reader = try Reader(rate: rate)
    while reader.elapsed < 10 {
      let most = random.happens(oneIn: 4) ? 7_000 : 300
      reader.read(lateness: .microseconds(Int64(random.number(0...most))))
    }
    let ratio = Double(reader.taken) / (Double(rate) * reader.elapsed)
    #expect(abs(ratio - 1) < 0.002, "\(ratio) of the rate")
    #expect(reader.mostAhead <= Double(rate) / 100 + 1)
  }

  @Test("A loop that was held up for longer does not catch up by more than 10 ms", arguments: seeds(3, of: 100))
  func stalls(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let rate = 20_000_000
    var reader = try Reader(rate: rate)
    while reader.elapsed < 10 {
      let isHeldUp = random.happens(oneIn: 100)
      reader.read(lateness: .milliseconds(isHeldUp ? Int64(random.number(100...1_000)) : 0))
    }
    #expect(reader.mostAhead <= Double(rate) / 100 + 1)
    #expect(Double(reader.taken) < 0.9 * Double(rate) * reader.elapsed)
  }

  @Test(
    "Slow rates are kept over many reads, with two reads of 256 bytes ahead at most",
    arguments: [1, 300, 5_000, 30_000, 51_200, 200_000])
  func slow(rate: Int) throws {
    var reader = try Reader(rate: rate)
    for _ in 0..<10_000 { reader.read(lateness: .microseconds(500)) }
    let ratio = Double(reader.taken) / (Double(rate) * reader.elapsed)
    #expect(abs(ratio - 1) < 0.002, "\(ratio) of the rate")
    #expect(reader.mostAhead <= max(512, Double(rate) / 100) + 1)
  }

  @Test("Reads are of lengths that a socket's reads have: powers of two", arguments: [1, 100_000, 1 << 40])
  func readLength(rate: Int) {
    var rules = Behavior.Reading()
    rules.bytesPerSecond = rate
    let length = ReadThrottle.readLength(rules)
    #expect(length.nonzeroBitCount == 1 && (256...65_536).contains(length))
  }

  @Test("A pause comes after its bytes, whatever the time is, and its wait is added to the rate's")
  func pauses() throws {
    var rules = Behavior.Reading()
    (rules.pauseEvery, rules.pause) = (1_000, .milliseconds(100))
    let now = NIODeadline.uptimeNanoseconds(1)
    var throttle = try #require(ReadThrottle(rules, at: now))
    #expect(throttle.delay(after: 999, at: now) == nil)
    #expect(throttle.delay(after: 1, at: now) == .milliseconds(100))
    #expect(throttle.delay(after: 500, at: now) == nil)
    rules.bytesPerSecond = 1_000
    throttle = try #require(ReadThrottle(rules, at: now))
    // 512 bytes are there at first, and 256 are to be there again.
    #expect(throttle.delay(after: 1_000, at: now) == .milliseconds(100 + 488 + 256))
  }
}
