import Measurement
import PacketCapture

/// The content of a bin of time.
protocol TimeBin: Sendable {
  init()
  /// Adds the content of a neighbour.
  mutating func join(_ other: Self)
}

/// A count, and the bytes of what is counted.
struct CountBin: TimeBin, Equatable {
  var count = 0
  var bytes = 0

  mutating func join(_ other: CountBin) {
    count &+= other.count
    bytes &+= other.bytes
  }
}

/// Times to answers.
struct LatencyBin: TimeBin {
  /// `nil`: none.
  private(set) var histogram: LatencyHistogram?

  mutating func add(nanoseconds: Int64) {
    var known = histogram.take() ?? LatencyHistogram(.milliseconds)
    known.record(Int(nanoseconds / 1_000))
    histogram = known
  }

  mutating func join(_ other: LatencyBin) {
    guard let more = other.histogram else { return }
    if histogram == nil { histogram = more } else { histogram?.merge(more) }
  }
}

/// Contents of equal bins of time, for a trace of any length: when there are too many bins, each two become one.
///
/// A bin is 2ⁿ nanoseconds long and begins at a multiple of that, so bins of two series can be added once the finer ones
/// are joined.
struct TimeBins<Bin: TimeBin>: Sendable {
  /// The most bins; when they are exceeded, bins are joined.
  private let limit: Int
  /// A bin's length is 2 to this.
  private(set) var exponent = 16
  /// The first bin's time divided by a bin's length.
  private(set) var first: Int64 = 0
  private(set) var bins: [Bin] = []
  /// The bin that was last added to, and its times.
  private var current = 0
  private var start = Int64.max
  private var last = Int64.min

  init(limit: Int = 512) { self.limit = limit }

  /// Changes the bin of a time.
  @inline(__always)
  mutating func change(at time: Timestamp, _ change: (inout Bin) -> Void) {
    if time.nanoseconds < start || time.nanoseconds > last { move(to: time.nanoseconds) }
    change(&bins[current])
  }

  @inline(never)
  private mutating func move(to time: Int64) {
    if bins.isEmpty {
      first = time >> Int64(exponent)
      bins = [Bin()]
    }
    while true {
      let number = time >> Int64(exponent)
      let end = first + Int64(bins.count)
      if number >= first && number < end { break }
      // Representable times differ by less than 2⁶³ ns, and their bins' numbers by less than 2⁴⁸.
      let span = number < first ? end - number : number - first + 1
      if span <= Int64(limit) {
        if number < first {
          bins.insert(contentsOf: repeatElement(Bin(), count: Int(first - number)), at: 0)
          first = number
        } else {
          bins.append(contentsOf: repeatElement(Bin(), count: Int(number - end) + 1))
        }
        break
      }
      join()
    }
    let number = time >> Int64(exponent)
    current = Int(number - first)
    start = number << Int64(exponent)
    last = start | (Int64(1) << Int64(exponent) - 1)
  }

  /// Makes bins longer, until they are 2 to this.
  mutating func join(to exponent: Int) { while self.exponent < exponent { join() } }

  /// Joins every two bins into one.
  private mutating func join() {
    var joined: [Bin] = []
    joined.reserveCapacity(bins.count / 2 + 1)
    for (index, bin) in bins.enumerated() {
      let number = (first + Int64(index)) >> 1
      if joined.isEmpty || number != (first >> 1) + Int64(joined.count - 1) { joined.append(Bin()) }
      joined[joined.count - 1].join(bin)
    }
    bins = joined
    first >>= 1
    exponent += 1
    (start, last) = (.max, .min)
  }
}

extension TimeBins: Equatable where Bin: Equatable {}

extension TimeBins<CountBin> {
  @inline(__always)
  mutating func add(_ count: Int, bytes: Int, at time: Timestamp) {
    change(at: time) { bin in
      bin.count &+= count
      bin.bytes &+= bytes
    }
  }

  /// The counts aligned with the bins of another series, whose bins have the same length; counts outside of that series
  /// are dropped.
  func counts(like other: Self) -> [Int] {
    var counts = [Int](repeating: 0, count: other.bins.count)
    for (index, bin) in bins.enumerated() where bin.count > 0 {
      let place = Int(clamping: first - other.first) + index
      if counts.indices.contains(place) { counts[place] += bin.count }
    }
    return counts
  }
}
