/// The series, stalls and timelines of parts, joined on one clock as they come.
struct JoinedCourse: Sendable {
  /// The most spans of a merged timeline; further ones, the latest, are counted.
  static let maximumSpans = 100_000

  private struct Second: Sendable {
    var sample = RunResult.Sample.nothing
    /// Thousand-millionths of a core: a sum of whole numbers does not depend on the order.
    var cpu = 0

    mutating func add(_ other: RunResult.Sample, cpu more: Int) {
      sample.add(other)
      cpu = sum(cpu, more)
    }
  }

  /// Something of a part, at seconds since its start.
  private struct Placed<Value: Sendable>: Sendable {
    /// The whole second in which the part started; `nil`: with the first part.
    var began: Int?
    var part: Int
    var value: Value
  }

  /// By whole seconds since 1970.
  private var seconds: [Int: Second] = [:]
  /// Of parts without a start time: by seconds since the start of the first part.
  private var unplaced: [Int: Second] = [:]
  /// The whole second in which the first part started.
  private var start: Int?
  /// `nil` when a part does not tell of any.
  private var stalls: RunResult.Stalls? = RunResult.Stalls()
  private var listed: [Placed<RunResult.Stalls.Stall>] = []
  private var spans: [Placed<RunResult.Timeline.Span>] = []
  private var omitted = 0

  /// `false`, and nothing is added, if the series would have too many seconds.
  mutating func add(_ result: RunResult, part: Int) -> Bool {
    let began = unixSeconds(result.started).map { Int(nearest: $0.rounded()) }
    let places = result.series.map { sum(began ?? 0, Int(nearest: $0.tS.rounded(.down))) }
    let isNew = places.count { (began == nil ? unplaced[$0] : seconds[$0]) == nil }
    guard seconds.count + unplaced.count + isNew <= RunResult.Merger.maximumSeconds else { return false }
    if let began { start = min(start ?? began, began) }
    for (sample, place) in zip(result.series, places) {
      if began == nil {
        Self.add(sample, at: place, to: &unplaced)
      } else {
        Self.add(sample, at: place, to: &seconds)
      }
    }
    if let others = result.stalls, var joined = stalls {
      joined.count = sum(joined.count, others.count)
      joined.longestMs = max(joined.longestMs, others.longestMs)
      stalls = joined
      listed += others.listed.map { Placed(began: began, part: part, value: $0) }
      if listed.count > 4 * RunResult.Stalls.maximumListed { trimListed() }
    } else {
      (stalls, listed) = (nil, [])
    }
    omitted = sum(omitted, result.timeline.omitted)
    spans += result.timeline.spans.map { Placed(began: began, part: part, value: $0) }
    if spans.count > 2 * Self.maximumSpans { trimSpans { $0 } }
    return true
  }

  private static func add(_ sample: RunResult.Sample, at second: Int, to seconds: inout [Int: Second]) {
    let cpu = Int(nearest: (sample.cpu * 1e9).rounded())
    seconds[second, default: Second()].add(sample, cpu: cpu)
  }

  private mutating func trimListed() {
    let first = start
    listed.sort { a, b in
      let (x, y) = (a.value.tS + Self.delay(a.began, first), b.value.tS + Self.delay(b.began, first))
      return (x, a.value.ms) < (y, b.value.ms)
    }
    listed.removeLast(max(0, listed.count - RunResult.Stalls.maximumListed))
  }

  /// - Parameter place: of a part, in an order that does not depend on when it was added.
  private mutating func trimSpans(_ place: (Int) -> Int) {
    let first = start
    spans.sort { a, b in
      let (x, y) = (a.value.fromS + Self.delay(a.began, first), b.value.fromS + Self.delay(b.began, first))
      return (x, place(a.part), a.value.connection, a.value.toS)
        < (y, place(b.part), b.value.connection, b.value.toS)
    }
    let left = max(0, spans.count - Self.maximumSpans)
    omitted = sum(omitted, left)
    spans.removeLast(left)
  }

  /// Whole seconds from the first start to another, so that seconds stay aligned and merging in steps gives the same
  /// result; 0 without a start time.
  private static func delay(_ began: Int?, _ first: Int?) -> Double {
    guard let began, let first else { return 0 }
    return Double(began - first)
  }

  /// Writes the course of all parts into their result.
  ///
  /// - Parameter parts: in their order, each with the number under which it was added.
  func join(parts: [(number: Int, brief: PartBrief)], into merged: inout RunResult) {
    let first = start
    merged.bins = nil
    var all = unplaced
    for (second, value) in seconds {
      let place = second - (first ?? 0)
      all[place, default: Second()].add(value.sample, cpu: value.cpu)
    }
    merged.series = all.sorted { $0.key < $1.key }.map { second, value in
      var sample = value.sample
      (sample.tS, sample.cpu) = (Double(second), Double(value.cpu) / 1e9)
      return sample
    }
    var course = self
    course.finish(parts, first, &merged)
  }

  private mutating func finish(
    _ parts: [(number: Int, brief: PartBrief)], _ first: Int?, _ merged: inout RunResult
  ) {
    trimListed()
    stalls?.listed = listed.map { .init(tS: finite($0.value.tS + Self.delay($0.began, first)), ms: $0.value.ms) }
    stalls?.totalS = finite(parts.reduce(0) { $0 + ($1.brief.stalledS ?? 0) })
    merged.stalls = stalls

    // The connections of each part are numbered after those of the parts before.
    var (places, begins, next) = ([Int: Int](), [Int: Int](), 0)
    for (place, part) in parts.enumerated() {
      (places[part.number], begins[part.number]) = (place, next)
      next = sum(next, part.brief.connections)
    }
    trimSpans { places[$0] ?? 0 }
    merged.timeline.omitted = omitted
    merged.timeline.spans = spans.map { placed in
      var span = placed.value
      let delay = Self.delay(placed.began, first)
      span.connection = sum(begins[placed.part] ?? 0, span.connection)
      (span.fromS, span.toS) = (finite(span.fromS + delay), finite(span.toS + delay))
      return span
    }
  }
}
