/// The numbers of one segment of a stream: of anything that is numbered from 0, every `segments`-th, beginning with
/// number `segment`.
///
/// Whatever is divided in this way adds up: each number of the whole is of exactly one segment, and of the first n
/// numbers every segment has as many as any other, give or take one.
package struct SegmentNumbers: Sendable, Equatable {
  /// From 0, and below `segments`.
  package let segment: Int
  /// At least 1.
  package let segments: Int

  package init(segment: Int, segments: Int) {
    self.segments = max(1, segments)
    self.segment = max(0, min(segment, self.segments - 1))
  }

  /// The number in the whole of the segment's number `index`; `Int.max` when that is too large.
  func number(_ index: Int) -> Int {
    let (product, overflow) = index.multipliedReportingOverflow(by: segments)
    return overflow || product > .max - segment ? .max : product + segment
  }

  /// How many of the first `all` are the segment's.
  package func count(among all: Int) -> Int {
    // A count without end is divided into counts without end.
    guard all < .max else { return .max }
    return all <= segment ? 0 : (all - segment - 1) / segments + 1
  }
}

extension LoadPlan {
  /// Turns the plan of a whole stream into that of its segment `workload.segment`: notifications keep their due times,
  /// and `count` and the connections are divided, so that over all segments they add up to the whole.
  ///
  /// Random arrivals (`isPoisson`) have their share of the rate: together they are a process with the whole rate.
  ///
  /// - Throws: a `PlanError` when there are fewer connections or notifications than segments, or some segment would have
  ///   fewer connections than topics.
  public mutating func takeSegment() throws(Workload.PlanError) {
    guard whole == nil else { return }
    let numbers = workload.segmentNumbers
    let segments = workload.segments
    func plural(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
    guard connections.count >= segments else {
      throw Workload.PlanError(
        "\(plural(connections.count, "connection")) cannot be divided among \(segments) segments: each needs one")
    }
    guard connections.count / segments >= topics.count else {
      throw Workload.PlanError(
        "\(plural(connections.count, "connection")) cannot be divided among \(segments) segments with \(topics.count) topics: each needs one for every topic"
      )
    }
    let whole = Whole(connections: connections.count, count: count)
    if let count {
      guard count >= segments else {
        throw Workload.PlanError(
          "\(plural(count, "notification")) cannot be divided among \(segments) segments: each needs one")
      }
      self.count = numbers.count(among: count)
    }
    connections.count = numbers.count(among: connections.count)
    self.whole = whole
  }
}
