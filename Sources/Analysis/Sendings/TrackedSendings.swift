/// The sendings of tracked notifications: the store of a single pass with little memory.
struct TrackedSendings: SendingStore {
  private let tracked: TrackedNotifications
  private let topics: ProviderTopics
  private var story = 0
  /// Sendings of the latest story, the next one last.
  private var rows: [StoryRow] = []

  init(_ tracked: TrackedNotifications, _ topics: ProviderTopics) { (self.tracked, self.topics) = (tracked, topics) }

  mutating func next() -> StoryRow? {
    while rows.isEmpty {
      guard story < tracked.count else { return nil }
      rows = tracked.sendings(of: story).map { row($0) }.sorted { ContentOrder.precedes($1, $0) }
      story += 1
    }
    return rows.popLast()
  }

  private func row(_ sending: TrackedNotifications.Sending) -> StoryRow {
    var row = StoryRow(.sending, connection: sending.connection, index: sending.index)
    // A story for each digest.
    row.content = ContentKey(high: 0, low: UInt64(story))
    // Each request has a topic of its own, which its digest covers; hidden sendings may be of any.
    row.topic = sending.isRequest ? .zero : topics.topic(of: sending.connection)
    row.time = sending.time.nanoseconds
    row.packet = sending.packet
    row.fate = sending.fate
    row.loss = Int32(truncatingIfNeeded: sending.loss)
    row.expiration = sending.expiration
    if sending.expiration != 0 { row.flags.insert(.hasExpiration) }
    if sending.isRequest { row.flags.insert(.isRequest) }
    if sending.isSelected { row.flags.insert(.isSelected) }
    return row
  }
}
