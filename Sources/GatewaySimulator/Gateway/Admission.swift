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

  private struct State {
    var rules: Behavior.Connection
    /// Those with open or late connections.
    var topics: [String: Topic] = [:]
  }

  private let state: Mutex<State>

  init(_ rules: Behavior.Connection) { state = Mutex(State(rules: rules)) }

  /// Admits by other rules from now on. Connections that are open stay, and count.
  func adopt(_ rules: Behavior.Connection) { state.withLock { $0.rules = rules } }

  /// Counts the connection and decides on it. Call `release` for each admitted one when it ends.
  ///
  /// - Parameter now: nanoseconds of any clock.
  func admit(_ name: String, now: Int64) -> Refusal? {
    state.withLock { state in
      let rules = state.rules
      var topic = state.topics[name] ?? Topic()
      defer { state.topics[name] = topic }
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
    state.withLock { state in
      state.topics[name]?.open -= 1
      // Topics whose connections are not limited are not kept.
      if let topic = state.topics[name], topic.open == 0, topic.latest.isEmpty, topic.refusedUntil == .min {
        state.topics[name] = nil
      }
    }
  }
}
