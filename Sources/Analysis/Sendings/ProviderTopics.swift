/// The topics of connections, which distinguish the providers of a recording.
struct ProviderTopics {
  private let limit: Int
  private var topics: [Int: ContentKey] = [:]
  private var only: ContentKey?
  private var hasSeveral = false

  /// - Parameter limit: connections whose topic is remembered; further ones have an unknown topic.
  init(limit: Int) { self.limit = limit }

  mutating func note(_ topic: ContentKey?, of connection: Int) {
    guard let topic else { return }
    if let only, only != topic { hasSeveral = true }
    only = topic
    if topics.count < limit { topics[connection] = topic }
  }

  /// The topic of a connection; `.zero`: unknown. A connection without a topic of its own is given the topic of all
  /// others, if these have only one.
  func topic(of connection: Int) -> ContentKey {
    topics[connection] ?? (hasSeveral ? .zero : only ?? .zero)
  }
}
