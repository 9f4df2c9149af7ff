import Measurement

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
