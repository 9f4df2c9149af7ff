import Measurement
import Synchronization

/// Decides which connections of a topic are admitted.
///
/// Shared by all event loops; called once per connection.
final class Admission: Sendable {
  enum Refusal: String, Sendable {
    case limit = "connection_limit"
    case reconnects = "rapid_reconnect"
  }

  private struct Topic {
    var open = 0
    /// Times of the latest connections in nanoseconds, at most as many as are allowed per second.
    var latest: [Int64] = []
    var refusedUntil: Int64 = .min
  }

  private let rules: Behavior.Connection
  private let topics = Mutex<[String: Topic]>([:])

  init(_ rules: Behavior.Connection) { self.rules = rules }

  /// Counts the connection and decides on it. Call `release` for each admitted one when it ends.
  ///
  /// - Parameter now: nanoseconds of any clock.
  func admit(_ name: String, now: Int64) -> Refusal? {
    guard rules.limitPerTopic != nil || rules.reconnectsPerSecond != nil else { return nil }
    return topics.withLock { topics in
      var topic = topics[name] ?? Topic()
      defer { topics[name] = topic }
      if let most = rules.reconnectsPerSecond {
        if now < topic.refusedUntil { return .reconnects }
        topic.latest.removeAll { $0 <= now - 1_000_000_000 }
        if topic.latest.count >= most {
          topic.refusedUntil = now + rules.refusal.nanoseconds
          topic.latest = []
          return .reconnects
        }
        topic.latest.append(now)
      }
      if let most = rules.limitPerTopic, topic.open >= most { return .limit }
      topic.open += 1
      return nil
    }
  }

  func release(_ name: String) {
    guard rules.limitPerTopic != nil || rules.reconnectsPerSecond != nil else { return }
    topics.withLock { $0[name]?.open -= 1 }
  }
}
