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

/// The memory that one connection holds beyond that of every connection; a part of `ConnectionMemory`.
struct HeldMemory {
  private var bytes = 0

  /// Counts that the connection holds so much now; `false` when more is held than before and the limit over all
  /// connections is exceeded. The bytes are counted in any case.
  mutating func change(to held: Int, of memory: ConnectionMemory) -> Bool {
    defer { bytes = held }
    guard held > bytes else {
      if held < bytes { memory.giveBack(bytes - held) }
      return true
    }
    return memory.take(held - bytes)
  }

  /// The connection has ended.
  mutating func giveBack(to memory: ConnectionMemory) { _ = change(to: 0, of: memory) }
}
