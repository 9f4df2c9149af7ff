/// The range of the highest rate that a gateway sustains, from the trials of a search for it.
///
/// A trial that passed contradicts every limit below the rate that it proved (`heldPerS`), one that failed every limit
/// at its rate or above; a long trial counts twice. The range contains the limit with the fewest contradictions, all
/// limits with one more, and half a step of the search on either side, because rates less than a step apart are not
/// distinguished. So trials that contradict each other widen it.
///
/// In simulated searches of known limits it holds the limit in nine of ten, as long as a trial's own limit varies by no
/// more than a step and no more than one in five fails for a reason that is not the gateway.
public struct SustainedRange: Sendable, Equatable, Codable {
  /// The evidence of one trial; void trials have none.
  public struct Evidence: Sendable, Equatable {
    /// The offered rate in notifications per second.
    public var offeredPerS: Double
    /// The rate that the trial has proven, if it passed; at most the offered rate.
    public var heldPerS: Double
    /// Whether it was a long trial, which counts twice.
    public var isLong: Bool
    /// Whether the gateway sustained the rate.
    public var hasPassed: Bool

    package init(offeredPerS: Double, heldPerS: Double, isLong: Bool, hasPassed: Bool) {
      (self.offeredPerS, self.heldPerS) = (offeredPerS, min(heldPerS, offeredPerS))
      (self.isLong, self.hasPassed) = (isLong, hasPassed)
    }

    fileprivate var weight: Int { isLong ? 2 : 1 }
    /// The limit from which on, or up to which, this evidence contradicts.
    fileprivate var edge: Double { hasPassed ? heldPerS : offeredPerS }
  }

  /// The lower end of the range, in notifications per second.
  public var lowerPerS: Double
  /// The upper end of the range, in notifications per second; `nil` if no trial has shown a rate that is too high.
  public var upperPerS: Double?

  package init(lowerPerS: Double, upperPerS: Double?) {
    (self.lowerPerS, self.upperPerS) = (lowerPerS, upperPerS)
  }

  /// `nil` without evidence.
  ///
  /// - Parameters:
  ///   - sustained: the answer of the search, which is always in the range.
  ///   - step: of the search, as 0.03.
  ///   - isBounded: the search ended at a rate that failed; otherwise the range has no upper end.
  package init?(_ evidence: [Evidence], around sustained: Double, step: Double, isBounded: Bool) {
    let edges = Set(evidence.map(\.edge)).sorted()
    guard let lowest = edges.first, let highest = edges.last else { return nil }
    // A search that was not bounded has made some failures only once, which it does not believe itself, however long.
    let failures = Dictionary(grouping: evidence.filter { !$0.hasPassed }, by: \.offeredPerS)
    func weight(_ one: Evidence) -> Int {
      !isBounded && !one.hasPassed && failures[one.offeredPerS]?.count == 1 ? 1 : one.weight
    }
    // Stretch i lies below edge i and from edge i - 1 on; limits within it are not distinguished.
    let contradictions = (0...edges.count).map { stretch in
      evidence.reduce(0) { sum, one in
        let isContradicted =
          one.hasPassed
          ? stretch < edges.count && edges[stretch] <= one.edge : stretch > 0 && edges[stretch - 1] >= one.edge
        return sum + (isContradicted ? weight(one) : 0)
      }
    }
    let most = (contradictions.min() ?? 0) + 1
    let first = contradictions.firstIndex { $0 <= most } ?? 0
    let last = contradictions.lastIndex { $0 <= most } ?? edges.count
    // Without a trial beyond, the search's next step is the bound.
    let lower = first > 0 ? edges[first - 1] : lowest / (1 + step)
    let upper = last < edges.count ? edges[last] : isBounded ? highest * (1 + step) : nil
    lowerPerS = min(lower, sustained) / (1 + step / 2)
    upperPerS = upper.map { max($0, sustained) * (1 + step / 2) }
  }
}
