/// The identifiers that were written, as runs with a constant step.
///
/// Clients count (1, 2, 3 …), count in the wrong byte order, or restart their counter per batch; all of these need a
/// handful of runs for millions of notifications. Random identifiers need a run for every two.
struct IdentifierHistory: Sendable {
  private struct Run: Sendable {
    var firstIdentifier: UInt32
    var step: UInt32
    var firstIndex: Int
    var count: Int

    var next: UInt32 { firstIdentifier &+ step &* UInt32(truncatingIfNeeded: count) }

    /// The latest position of `identifier` in this run, and the number of its positions.
    ///
    /// A run that wraps around modulo 2³² repeats identifiers. With the `zeros` zero bits at the end of the step taken
    /// off `position × step = distance`, the odd rest of the step has an inverse, and the position is known modulo
    /// 2^(32 - zeros).
    func positions(of identifier: UInt32) -> (latest: Int, count: Int)? {
      let distance = identifier &- firstIdentifier
      if step == 0 { return distance == 0 ? (count - 1, count) : nil }
      let zeros = step.trailingZeroBitCount
      guard distance.trailingZeroBitCount >= zeros else { return nil }
      let period = 1 << (32 - zeros)
      let earliest = Int((distance >> zeros) &* Self.inverse(ofOdd: step >> zeros)) & (period - 1)
      guard earliest < count else { return nil }
      let repeats = (count - 1 - earliest) / period
      return (earliest + repeats * period, repeats + 1)
    }

    /// The number that times `odd` is 1 modulo 2³². `odd` itself is right in three bits, and each step doubles them.
    private static func inverse(ofOdd odd: UInt32) -> UInt32 {
      var inverse = odd
      for _ in 0..<4 { inverse = inverse &* (2 &- odd &* inverse) }
      return inverse
    }
  }

  private var runs: [Run] = []
  private let maximumRuns: Int
  /// Continues the last run: then nothing but a count changes, and that is kept here until the run ends.
  private var nextIdentifier: UInt32 = 0
  private var nextIndex = -1
  private var step: UInt32 = 0
  private var unrecorded = 0

  init(maximumRuns: Int) { self.maximumRuns = max(1, maximumRuns) }

  /// Bytes that it holds.
  var heldBytes: Int { runs.count * MemoryLayout<Run>.stride }

  /// Forgets all identifiers: they can no longer be found.
  mutating func forget() { self = IdentifierHistory(maximumRuns: maximumRuns) }

  mutating func append(_ identifier: UInt32, at index: Int) {
    if identifier == nextIdentifier && index == nextIndex {
      nextIdentifier &+= step
      nextIndex += 1
      unrecorded += 1
    } else {
      appendOther(identifier, at: index)
    }
  }

  @inline(never)
  private mutating func appendOther(_ identifier: UInt32, at index: Int) {
    if let last = runs.indices.last {
      runs[last].count += unrecorded
      unrecorded = 0
    }
    extend(identifier, at: index)
    guard let run = runs.last, run.count > 1 else {
      nextIndex = -1
      return
    }
    (nextIdentifier, nextIndex, step) = (run.next, run.firstIndex + run.count, run.step)
  }

  private mutating func extend(_ identifier: UInt32, at index: Int) {
    if let last = runs.indices.last, runs[last].firstIndex + runs[last].count == index {
      if runs[last].count == 1 {
        runs[last].step = identifier &- runs[last].firstIdentifier
        runs[last].count = 2
        return
      }
      if runs[last].next == identifier {
        runs[last].count += 1
        return
      }
    }
    // Forgetting half at once keeps the cost of forgetting constant per identifier.
    if runs.count >= maximumRuns { runs.removeFirst((maximumRuns + 1) / 2) }
    runs.append(Run(firstIdentifier: identifier, step: 0, firstIndex: index, count: 1))
  }

  /// The latest notification before `end` with this identifier, and the number of notifications before `end` that have
  /// it.
  func find(_ identifier: UInt32, before end: Int) -> (index: Int?, candidates: Int) {
    var latest: Int?
    var candidates = 0
    for (position, var run) in runs.enumerated().reversed() {
      if position == runs.count - 1 { run.count += unrecorded }
      run.count = min(run.count, end - run.firstIndex)
      guard run.count > 0, let found = run.positions(of: identifier) else { continue }
      candidates += found.count
      if latest == nil { latest = run.firstIndex + found.latest }
    }
    return (latest, candidates)
  }
}
