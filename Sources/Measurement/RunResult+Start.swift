/// When a schedule began that was to begin at a time of day.
extension RunResult {
  /// The planned and the actual start of the schedule.
  public struct Start: Sendable, Equatable, Codable {
    /// The planned time in UTC, RFC 3339.
    public var planned = ""
    /// The time at which the schedule began by the clock of the generator's machine; in a merged result the latest.
    /// Absent when the run ended before.
    public var actual: String?
    /// Seconds from the planned to the actual time; in a merged result the most.
    public var lateS: Double?
    /// The part of the skipped notifications that was due before a run that was late began.
    public var missed: Int?
    /// Whether the system says that a time service keeps its clock near to UTC; in a merged result, whether all do.
    /// Absent where a system does not tell.
    public var clockSynchronised: Bool?
    /// The largest error of the clock in seconds, as the system tells it; in a merged result the largest. Absent unless
    /// the clock is synchronised.
    public var clockErrorS: Double?
    package init() {}
  }

  /// The start of several runs; `nil` if they were not to begin at the same time.
  static func joined(_ starts: [Start?]) -> Start? {
    guard var joined = starts.first ?? nil, starts.allSatisfy({ $0?.planned == joined.planned }) else { return nil }
    let all = starts.compactMap { $0 }
    /// `nil` unless all have it.
    func each<Value>(_ path: KeyPath<Start, Value?>) -> [Value]? {
      let values = all.compactMap { $0[keyPath: path] }
      return values.count == all.count ? values : nil
    }
    // Times of one form, so that the latest is the last in the alphabet.
    joined.actual = all.compactMap(\.actual).max()
    joined.lateS = all.compactMap(\.lateS).max()
    let missed = all.compactMap(\.missed)
    joined.missed = missed.isEmpty ? nil : missed.reduce(0, sum)
    joined.clockSynchronised =
      all.contains { $0.clockSynchronised == false } ? false : each(\.clockSynchronised).map { _ in true }
    joined.clockErrorS = each(\.clockErrorS)?.max()
    return joined
  }
}
