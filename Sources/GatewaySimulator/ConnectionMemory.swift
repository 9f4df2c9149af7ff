import Synchronization

/// Memory of all connections, counted against a limit.
///
/// Shared by all event loops; accessed when a connection begins or ends, and when one reads a list.
final class ConnectionMemory: Sendable {
  let perConnection: Int
  private let limit: Int
  private let taken = Atomic<Int>(0)

  init(_ options: SimulatorOptions) {
    perConnection = options.memoryPerConnection
    limit = options.maximumConnectionMemory
  }

  /// Counts the bytes in any case; `false` when the limit is exceeded.
  func take(_ bytes: Int) -> Bool { taken.wrappingAdd(bytes, ordering: .relaxed).newValue <= limit }

  func giveBack(_ bytes: Int) { taken.wrappingSubtract(bytes, ordering: .relaxed) }
}
