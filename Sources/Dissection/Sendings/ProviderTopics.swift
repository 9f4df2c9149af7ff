/// The topics of connections, by which the providers of a recording are told apart.
struct ProviderTopics {
  private let limit: Int
  private var topics: [Int: ContentKey] = [:]
  private var only: ContentKey?
  private var hasSeveral = false

  /// - Parameter limit: connections whose topic is remembered; those of further ones are unknown.
  init(limit: Int) { self.limit = limit }

  mutating func note(_ topic: ContentKey?, of connection: Int) {
    guard let topic else { return }
    if let only, only != topic { hasSeveral = true }
    only = topic
    if topics.count < limit { topics[connection] = topic }
  }

  /// The topic of a connection; `.zero`: it is not known. One that does not show it has that of all others.
  func topic(of connection: Int) -> ContentKey {
    topics[connection] ?? (hasSeveral ? .zero : only ?? .zero)
  }
}
