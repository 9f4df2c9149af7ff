/// Whether the parts of a merged result ran at the same time: only then is the sum of their rates a real rate.
extension RunResult {
  /// The measured phases of the merged runs.
  public struct Merged: Sendable, Equatable, Codable {
    /// The runs that it is of.
    public var runs = 0
    /// Whether the measured phases overlap for at least nine tenths of the shortest. Otherwise there are no rates, and
    /// `measured_s` is 0.
    public var together = true
    /// Length of the shortest measured phase; 0 when there is none.
    public var shortestS = 0.0
    /// The time, in seconds since 1970, in which all runs measured; the end is before the beginning if there is none.
    /// Absent if a document lacks its times.
    public var fromS: Double?
    public var toS: Double?

    package init() {}

    /// Seconds in which all runs measured at the same time; `nil` if a document lacks its times.
    var overlapS: Double? {
      guard let fromS, let toS else { return nil }
      return max(0, toS - fromS)
    }
  }

  /// Share of the shortest measured phase.
  static let leastOverlap = 0.9

  /// How far measured phases overlap; `nil` for that of a single run.
  static func together(_ spans: [Merged], isOfOneRun: Bool) -> Merged? {
    guard !isOfOneRun, !spans.isEmpty else { return nil }
    var all = Merged()
    all.runs = spans.reduce(0) { sum($0, $1.runs) }
    // A part that measured nothing adds nothing to the rates.
    let measured = spans.filter { $0.shortestS > 0 }
    all.shortestS = measured.map(\.shortestS).min() ?? 0
    let (begins, ends) = (measured.compactMap(\.fromS), measured.compactMap(\.toS))
    if !measured.isEmpty, begins.count == measured.count, ends.count == measured.count {
      (all.fromS, all.toS) = (begins.max(), ends.min())
    }
    all.together =
      measured.allSatisfy(\.together)
      && (measured.count < 2 || (all.overlapS ?? 0) >= leastOverlap * all.shortestS)
    return all
  }

  /// The measured phase of one run.
  var measuredSpan: Merged {
    if let merged { return merged }
    var span = Merged()
    span.runs = 1
    span.shortestS = measuredS
    guard let index = phases.firstIndex(where: { $0.name == .measured }), let start = unixSeconds(started) else {
      return span
    }
    span.shortestS = measuredS > 0 ? measuredS : phases[index].seconds
    let begin = finite(start + phases[..<index].reduce(0) { $0 + $1.seconds })
    (span.fromS, span.toS) = (begin, finite(begin + phases[index].seconds))
    return span
  }

  /// Warnings about rates that are missing, or are means over phases of different lengths.
  ///
  /// - Parameter longest: seconds of the longest measured phase.
  static func overlapWarnings(_ merged: Merged?, longest: Double) -> [String] {
    guard let merged, merged.runs > 1 else { return [] }
    func seconds(_ value: Double) -> String { "\((value * 10).rounded() / 10) s" }
    guard let overlap = merged.overlapS else {
      return merged.together
        ? [] : [overlapWarning + " for an unknown time, so there are no rates"]
    }
    if !merged.together {
      return [
        overlapWarning
          + " for \(seconds(overlap)) only, of \(seconds(merged.shortestS)), or the clocks of their machines differ: there is no rate, because the segments did not all send at the same time"
      ]
    }
    guard overlap < leastOverlap * longest else { return [] }
    return [
      overlapWarning + " for \(seconds(overlap)) only, of \(seconds(longest)): the rates are means over the longest"
    ]
  }

  /// Whether a text is one of `overlapWarnings`, which further parts may change.
  static func isOverlapWarning(_ text: String) -> Bool { text.hasPrefix(overlapWarning) }

  private static let overlapWarning = "the measured phases overlap"
}
