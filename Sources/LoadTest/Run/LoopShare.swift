import Measurement

/// Which notifications of a run one event loop sends, by their numbers from 0.
package struct LoopNumbers: Sendable, Equatable {
  /// Of all notifications, or of a topic's, those from this one on.
  var first = 0
  /// Every so many, at least 1.
  var step = 1
  /// The topic's notifications; `nil`: all of the run are meant.
  var places: TopicPattern.Places?
  /// The notifications of the run, where they are numbered as those of the whole stream; `nil`: they are not.
  var segment: SegmentNumbers?

  init(first: Int = 0, step: Int = 1, places: TopicPattern.Places? = nil) {
    (self.first, self.step, self.places) = (first, step, places)
  }

  /// The same notifications, with their numbers in the whole stream.
  func among(_ segment: SegmentNumbers) -> LoopNumbers {
    var numbers = self
    numbers.segment = segment
    return numbers
  }

  /// The share of the run's notifications.
  var share: Double { (places?.share ?? 1) / Double(step) }

  /// The number of the loop's notification `index` (from 0); `Int.max` when that is too large.
  func number(_ index: Int) -> Int {
    let (product, overflow) = index.multipliedReportingOverflow(by: step)
    guard !overflow, product <= .max - first else { return .max }
    let number = places?.number(product + first) ?? product + first
    return segment?.number(number) ?? number
  }

  /// How many of the notifications below `all` are the loop's.
  func count(among all: Int) -> Int {
    let ofRun = segment?.count(among: all) ?? all
    let all = places?.count(among: ofRun) ?? ofRun
    return all <= first ? 0 : (all - first - 1) / step + 1
  }
}

/// One event loop's share of a run.
struct LoopShare: Sendable, Equatable {
  /// The number of the loop, from 0, and how many there are.
  var part = 0
  var parts = 1
  /// The place of its topic in the plan's; `nil`: the plan has none.
  var topic: Int?
  var numbers = LoopNumbers()
  /// The numbers of its connections.
  var connections: [Int] = []
}

extension LoadPlan {
  /// The number of event loops: each of the topics has at least one, which has its connections.
  package var loopCount: Int { max(1, topics.count, min(threads, connections.count)) }

  /// What each of so many event loops sends: every notification is sent by one of them.
  ///
  /// With topics each loop has one: loops and connections are divided in proportion to the weights of the topics'
  /// payloads, and so are notifications.
  func shares(of loops: Int) -> [LoopShare] {
    guard let weights = topicWeights else {
      return (0..<loops).map { part in
        LoopShare(
          part: part, parts: loops, numbers: LoopNumbers(first: part, step: loops),
          connections: Array(stride(from: part, to: connections.count, by: loops)))
      }
    }
    let pattern = TopicPattern(weights: weights)
    let loopsByTopic = apportioned(loops, by: weights, least: weights.map { _ in 1 })
    var shares: [LoopShare] = []
    for (topic, connections) in connectionsByTopic(weights, loopsByTopic).enumerated() {
      let step = loopsByTopic[topic]
      for first in 0..<step {
        shares.append(
          LoopShare(
            part: shares.count, parts: loops, topic: topic,
            numbers: LoopNumbers(first: first, step: step, places: pattern.places[topic]),
            connections: Array(stride(from: connections.lowerBound + first, to: connections.upperBound, by: step))))
      }
    }
    return shares
  }

  /// The weights of the payloads of each topic; `nil` without topics.
  var topicWeights: [Double]? {
    guard !topics.isEmpty, case .listed(let list) = workload.payload else { return nil }
    return topics.map { list.weight(of: $0) }
  }

  /// The numbers of each topic's connections, one topic's behind another's.
  private func connectionsByTopic(_ weights: [Double], _ loops: [Int]) -> [Range<Int>] {
    var next = 0
    return apportioned(connections.count, by: weights, least: loops).map { count in
      defer { next += count }
      return next..<next + count
    }
  }

  /// The workload of each topic, or the only one.
  func workloads(start: Int) throws(Workload.PlanError) -> [Workload] {
    guard !topics.isEmpty else { return [try Workload(workload, start: start, replay: replay)] }
    try checkTopics()
    guard case .listed(let list) = workload.payload else { return [] }
    var all: [Workload] = []
    for topic in topics {
      var plan = workload
      plan.payload = .listed(list.share(of: topic, among: topics))
      all.append(try Workload(plan, start: start))
    }
    return all
  }

  /// The most topics: each takes an event loop, which is a thread.
  public static let maximumTopics = 64

  private func checkTopics() throws(Workload.PlanError) {
    guard topics.count <= Self.maximumTopics else {
      throw Workload.PlanError("\(topics.count) topics; at most \(Self.maximumTopics) can be sent in one run")
    }
    guard Set(topics).count == topics.count else { throw Workload.PlanError("a topic is there twice") }
    guard connections.count >= topics.count else {
      throw Workload.PlanError("\(topics.count) topics need at least as many connections")
    }
    guard replay == nil else { throw Workload.PlanError("recorded notifications name no topics") }
    guard feedback == nil else { throw Workload.PlanError("the feedback service has a list for each topic") }
    guard let weights = topicWeights else { throw Workload.PlanError("topics need listed payloads") }
    let whole = weights.reduce(0, +)
    for (topic, weight) in zip(topics, weights) where weight <= 0 || !whole.isFinite {
      throw Workload.PlanError("no payload is for the topic \(topic), or the weights are too large")
    }
  }
}

extension PayloadList {
  /// The weights of the payloads for a topic together.
  func weight(of topic: String) -> Double { entries.reduce(0) { $0 + ($1.topic == topic ? $1.weight : 0) } }

  /// The payloads that go with one of several topics: its own, and those for no topic, in proportion to its weight.
  func share(of topic: String, among topics: [String]) -> PayloadList {
    let whole = topics.reduce(0) { $0 + weight(of: $1) }
    let part = weight(of: topic) / whole
    return PayloadList(
      entries.compactMap { entry in
        if entry.topic == topic { return entry }
        guard entry.topic == nil else { return nil }
        var shared = entry
        shared.weight *= part
        return shared
      })
  }
}
