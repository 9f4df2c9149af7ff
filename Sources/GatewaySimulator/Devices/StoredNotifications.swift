import Bytes
import Synchronization

/// The notifications that wait for devices, shared by all connections, and the numbers of their topics.
final class StoredNotifications: Sendable {
  let store: Mutex<OfflineStore>
  private let topics = Mutex<[String: UInt32]>([:])

  init(_ options: OfflineStore.Options) { store = Mutex(OfflineStore(options)) }

  /// A number for the topic, the same for all its connections.
  func number(of topic: String) -> UInt32 {
    topics.withLock { topics in
      if let number = topics[topic] { return number }
      let number = UInt32(topics.count)
      topics[topic] = number
      return number
    }
  }

  /// The counts at a time in UNIX milliseconds.
  func counts(now: Int64) -> OfflineStore.Counts {
    store.withLock { store in
      store.advance(to: now)
      return store.counts
    }
  }

  /// All devices come online, get their notifications, and go offline again.
  func bringOnline(now: Int64) { store.withLock { $0.comeOnline(now: now) } }

  /// A device gets what waits for it, or never will.
  func settle(_ device: Device, token: RawSpan, now: Int64) {
    guard device != .offline else { return }
    let topics = UInt32(topics.withLock { $0.count })
    store.withLock { store in
      for topic in 0..<topics { store.settle(topic: topic, token: token, isDelivered: device == .active, now: now) }
    }
  }

  /// Drops what waits.
  func removeAll(now: Int64) { store.withLock { $0.removeAll(now: now) } }
}
