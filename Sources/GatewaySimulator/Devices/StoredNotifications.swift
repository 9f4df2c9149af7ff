import Bytes
import Synchronization

/// The notifications that wait for devices, shared by all connections, and the numbers of their topics.
final class StoredNotifications: Sendable {
  private let store: Mutex<OfflineStore>
  private let topics = Mutex<[String: UInt32]>([:])
  /// Is told what becomes of them; `nil`: nobody is.
  private let observer: (@Sendable ([DeviceOutcome]) -> Void)?

  init(_ options: OfflineStore.Options, observer: (@Sendable ([DeviceOutcome]) -> Void)? = nil) {
    store = Mutex(OfflineStore(options, keepsOutcomes: observer != nil))
    self.observer = observer
  }

  /// Calls a body with the store, then tells the observer what it has decided. Loops do so at the same time: outcomes of
  /// different calls may be told in another order, but each after the store has it.
  func withStore<Result: Sendable>(_ body: (inout OfflineStore) -> Result) -> Result {
    guard let observer else { return store.withLock { body(&$0) } }
    var outcomes: [DeviceOutcome] = []
    let result = store.withLock { store in
      let result = body(&store)
      outcomes = store.takeOutcomes()
      return result
    }
    if !outcomes.isEmpty { observer(outcomes) }
    return result
  }

  /// A number for the topic, the same for all its connections.
  func number(of topic: String) -> UInt32 {
    topics.withLock { topics in
      if let number = topics[topic] { return number }
      let number = UInt32(topics.count)
      topics[topic] = number
      return number
    }
  }

  /// The number of a topic that has one.
  func knownNumber(of topic: String) -> UInt32? { topics.withLock { $0[topic] } }

  /// The most topics of requests that have numbers.
  static let maximumTopics = 100_000

  /// A number for the topic of a request, which may be any; `nil` if there are `limit` others.
  func number(of topic: String, limit: Int) -> UInt32? {
    topics.withLock { topics in
      if let number = topics[topic] { return number }
      guard topics.count < limit else { return nil }
      let number = UInt32(topics.count)
      topics[topic] = number
      return number
    }
  }

  /// Keeps a notification for a device that is offline.
  func accept(
    topic: UInt32, token: RawSpan, payload: RawSpan, expiration: UInt32?, collapseID: [UInt8], now: Int64,
    origin: DeviceOutcome.Origin
  ) {
    withStore {
      $0.accept(
        topic: topic, token: token, payload: payload, expiration: expiration, collapseID: collapseID, now: now,
        origin: origin)
    }
  }

  /// The counts at a time in UNIX milliseconds.
  func counts(now: Int64) -> OfflineStore.Counts {
    withStore { store in
      store.advance(to: now)
      return store.counts
    }
  }

  /// All devices come online, get their notifications, and go offline again.
  func bringOnline(now: Int64) { withStore { $0.comeOnline(now: now) } }

  /// A device gets what waits for it, or never will.
  func settle(_ device: Device, token: RawSpan, now: Int64) {
    guard device != .offline else { return }
    let topics = UInt32(topics.withLock { $0.count })
    withStore { store in
      for topic in 0..<topics { store.settle(topic: topic, token: token, isDelivered: device == .active, now: now) }
    }
  }

  /// Ends the time of the store, and tells the observer what still waits.
  func close(now: Int64) { withStore { $0.close(now: now) } }

  /// Drops what waits.
  func removeAll(now: Int64) { withStore { $0.removeAll(now: now) } }
}
