import Dispatch
import Synchronization

/// Passes values from one thread to another, in the order in which they were put.
///
/// A value belongs to the thread that has it: to one until it puts the value, to the other after it takes the value.
/// Only `Sendable` values can be passed, so the compiler finds anything that both threads would share. Each value takes
/// a lock twice, so values should be batches.
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

  /// Waits for the next value for a limited time; `nil` if none arrived.
  package func take(within interval: DispatchTimeInterval) -> Value? {
    guard count.wait(timeout: .now() + interval) == .success else { return nil }
    return values.withLock { $0.removeFirst() }
  }
}
