import Measurement

/// The stalls of all event loops of a run: times in which at least one of them was stalled.
struct StallRecorder {
  /// The origin of seconds.
  private let began: Int64
  /// Of the measured phase, as far as it is known: `count`, `totalS` and `longestMs` are of it.
  var measured: (from: Int64, to: Int64)?
  private(set) var result = RunResult.Stalls()
  private var lastEnd = Int64.min
  /// Not in the series yet.
  private var unmarked: [StallWatch.Stall] = []

  init(began: Int64) { self.began = began }

  /// - Parameter stalls: of all loops since the last call, in any order.
  mutating func note(_ stalls: [StallWatch.Stall]) {
    for stall in stalls.sorted(by: { $0.from < $1.from }) {
      // Overlapping stalls of several loops count as one.
      let part = StallWatch.Stall(from: max(stall.from, lastEnd), to: stall.to)
      guard part.to > part.from else { continue }
      let goesOn = stall.from <= lastEnd
      lastEnd = part.to
      unmarked.append(part)
      count(part, goesOn: goesOn)
      let milliseconds = Double(part.to - part.from) / 1e6
      if goesOn, !result.listed.isEmpty {
        result.listed[result.listed.count - 1].ms += milliseconds
      } else if result.listed.count < RunResult.Stalls.maximumListed {
        result.listed.append(.init(tS: Double(part.from - began) / 1e9, ms: milliseconds))
      }
    }
  }

  /// How long the stall has been in the measured phase that is counted last.
  private var length: Int64 = 0

  private mutating func count(_ stall: StallWatch.Stall, goesOn: Bool) {
    guard let measured else { return }
    let inside = min(stall.to, measured.to) - max(stall.from, measured.from)
    guard inside > 0 else { return }
    if !goesOn || length == 0 { (result.count, length) = (result.count + 1, 0) }
    length += inside
    result.totalS += Double(inside) / 1e9
    result.longestMs = max(result.longestMs, Double(length) / 1e6)
  }

  /// Adds the new stalls to their samples, of which the last one ends at `end`.
  mutating func mark(_ series: inout [RunResult.Sample], until end: Int64) {
    for stall in unmarked {
      var sampleEnd = end
      for index in series.indices.reversed() {
        let from = began + Int64(series[index].tS * 1e9)
        let inside = min(stall.to, sampleEnd) - max(stall.from, from)
        if inside > 0 { series[index].stalledMs = (series[index].stalledMs ?? 0) + Double(inside) / 1e6 }
        guard stall.from < from else { break }
        sampleEnd = from
      }
    }
    unmarked.removeAll()
  }
}
