import APNSProtocol
import Bytes
import NIOCore
import Synchronization
import TLSTransport

/// What all connections of a simulator share; nothing of it changes, or what does guards itself.
final class Desk: Sendable {
  let options: SimulatorOptions
  let behavior: Behavior
  let jury: Jury
  let admission: Admission
  let feedbackList: FeedbackList
  let log: EventLog?
  let list: ConnectionList
  private let numbers = Atomic<UInt64>(0)
  private let open = Atomic<Int>(0)

  init(_ options: SimulatorOptions, feedbackList: FeedbackList, log: EventLog?) {
    self.options = options
    behavior = options.behavior
    jury = Jury(options)
    admission = Admission(options.behavior.connection)
    self.feedbackList = feedbackList
    self.log = log
    list = ConnectionList(maximum: options.maximumListedConnections)
  }

  /// A number for a new connection, from 1; `nil` when there are too many already. Given back with `ended`.
  func begin() -> UInt64? {
    guard open.wrappingAdd(1, ordering: .relaxed).newValue <= options.maximumConnections else {
      open.wrappingSubtract(1, ordering: .relaxed)
      return nil
    }
    return numbers.wrappingAdd(1, ordering: .relaxed).newValue
  }

  func ended() { open.wrappingSubtract(1, ordering: .relaxed) }

  // MARK: the feedback list

  private let clearing = Mutex<[Int: Task<Void, Never>]>([:])
  private let failures = Mutex<[String]>([])

  /// Takes what was sent in full off a topic's list.
  func clear(topic: String, through sequence: Int64) {
    clearing.withLock { tasks in
      let key = (tasks.keys.max() ?? 0) + 1
      tasks[key] = Task {
        do { try await feedbackList.remove(topic: topic, through: sequence) } catch { note(error) }
        clearing.withLock { $0[key] = nil }
      }
    }
  }

  /// Waits until everything that was to be cleared is.
  func settle() async {
    for task in clearing.withLock({ Array($0.values) }) { await task.value }
  }

  /// Keeps a problem with the list for whoever watches; a full disk is not said a thousand times.
  func note(_ error: any Error) {
    let text = "\(error)"
    failures.withLock { if $0.count < 16, !$0.contains(text) { $0.append(text) } }
  }

  func takeFailures() -> [String] {
    failures.withLock { failures in
      defer { failures = [] }
      return failures
    }
  }

  /// What chance has in store for a connection.
  func generator(_ connection: UInt64) -> SplitMix64 {
    // Another stream than that of its judge.
    SplitMix64(seed: behavior.seed ^ 0x6761_7465_7761_7921, stream: connection)
  }
}

extension SocketAddress {
  /// Address and port, as records show them.
  var text: String {
    guard let host = ipAddress, let port else { return "unknown" }
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
