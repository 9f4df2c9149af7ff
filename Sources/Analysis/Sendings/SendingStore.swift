/// The sendings of a recording, those of one notification together: what stories are made of, by one rule for all stores.
///
/// There are two. `TrackedSendings` is the window: of the notifications that a single pass recognised as refused,
/// discarded or repeated among the latest ones. `SortedRows` is exact: every sending of a recording of any size.
protocol SendingStore {
  associatedtype Failure: Error

  /// The next sending; `nil`: there is none. Sendings of one notification come together, within it those of one topic,
  /// the unknown topic first, and these in order of time.
  mutating func next() throws(Failure) -> StoryRow?
}

extension SortedRows: SendingStore where Order == ContentOrder {}

/// Stories of one notification that wait for one with a topic; further ones count as an unknown provider's.
private let maximumWaiting = 1_024

extension SendingStore {
  /// Makes stories of all sendings, which are used up.
  ///
  /// - Parameters:
  ///   - repeatAfter: nanoseconds after an accepted sending from which another begins a story of its own.
  ///   - sending: receives each sending of a story that has several, with the place of the story's first one.
  ///   - story: receives each story after its sendings, perhaps after sendings of others.
  mutating func makeStories(
    repeatAfter: Int64, sending: (_ row: StoryRow, _ story: SendingPlace) throws(Failure) -> Void,
    story: (_ facts: StoryFacts) throws(Failure) -> Void
  ) throws(Failure) {
    var fold: StoryFold?
    var topics = TopicsOfContent()
    while let row = try next() {
      if var open = fold, open.takes(row, repeatAfter: repeatAfter) {
        // The only sending of a story is in its facts.
        if open.sent == 1 { try sending(open.first, open.place) }
        open.add(row)
        try sending(row, open.place)
        fold = open
      } else {
        if let fold { for facts in topics.add(fold.facts) { try story(facts) } }
        fold = StoryFold(row)
      }
    }
    if let fold { for facts in topics.add(fold.facts) { try story(facts) } }
    for facts in topics.finish() { try story(facts) }
  }
}

/// Knows of each story whether its content was sent on connections of which only some show their topic.
///
/// Stories without a topic come first within their content: they wait until it is known whether others have one.
private struct TopicsOfContent {
  private var waiting: [StoryFacts] = []
  private var withoutTopic: ContentKey?

  /// Adds the next story, and returns those of which it is known.
  mutating func add(_ facts: StoryFacts) -> [StoryFacts] {
    var facts = facts
    let isSame = withoutTopic == facts.first.content
    guard facts.first.topic == .zero else {
      facts.isOfUnknownProvider = isSame
      return settle(isSame) + [facts]
    }
    let settled = !isSame || waiting.count >= maximumWaiting ? settle(isSame) : []
    withoutTopic = facts.first.content
    waiting.append(facts)
    return settled
  }

  mutating func finish() -> [StoryFacts] { settle(false) }

  private mutating func settle(_ isOfUnknownProvider: Bool) -> [StoryFacts] {
    defer { waiting.removeAll() }
    return waiting.map { one in
      var one = one
      one.isOfUnknownProvider = isOfUnknownProvider
      return one
    }
  }
}
