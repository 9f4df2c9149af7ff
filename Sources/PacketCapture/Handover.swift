import Dispatch
import Synchronization

/// Hands values from one thread to another, in the order in which they were put.
///
/// A value belongs to the thread that has it: until it is put to the one, from when it is taken to the other. Only
/// values that are `Sendable` are handed over, so the compiler finds whatever both would still share. A lock is taken
/// twice for each, so it is for batches.
package final class Handover<Value: Sendable>: Sendable {
  private let values = Mutex<[Value]>([])
  private let count = DispatchSemaphore(value: 0)

  package init() {}

  package func put(_ value: consuming Value) {
    let value = value
    values.withLock { $0.append(value) }
    count.signal()
  }

  /// Waits for the next value.
  package func take() -> Value {
    count.wait()
    return values.withLock { $0.removeFirst() }
  }

  /// The same; `nil` when none came in time.
  package func take(within interval: DispatchTimeInterval) -> Value? {
    guard count.wait(timeout: .now() + interval) == .success else { return nil }
    return values.withLock { $0.removeFirst() }
  }
}
