import Synchronization

/// The memory of long frames that have begun, of all connections together: above the limit the oldest frame is dropped,
/// so that peers that never finish their frames do not keep others from sending.
///
/// Shared by all event loops; a frame of usual length never gets here.
final class UnfinishedFrames: Sendable {
  private struct Entry {
    /// Since when, in the order of beginnings.
    let turn: UInt64
    var bytes: Int
    let giveUp: @Sendable () -> Void
  }

  private struct State {
    var entries: [UInt64: Entry] = [:]
    /// Connections in the order in which their frames began; may contain connections without an unfinished frame.
    var order: [(connection: UInt64, turn: UInt64)] = []
    /// The index of the first one that may have an unfinished frame.
    var head = 0
    var turns: UInt64 = 0
    var bytes = 0

    /// Removes and returns the frame that began first.
    mutating func removeOldest() -> Entry? {
      while head < order.count {
        let (connection, turn) = order[head]
        head += 1
        guard let entry = entries[connection], entry.turn == turn else { continue }
        entries[connection] = nil
        bytes -= entry.bytes
        return entry
      }
      return nil
    }

    /// Keeps the order from growing much longer than the number of entries.
    mutating func compact() {
      guard order.count > 2 * entries.count + 64 else { return }
      order = order[head...].filter { entries[$0.connection]?.turn == $0.turn }
      head = 0
    }
  }

  private let limit: Int
  private let state = Mutex(State())

  /// - Parameter limit: in bytes.
  init(limit: Int) { self.limit = limit }

  /// Notes the bytes that a connection's unfinished frame needs so far.
  ///
  /// - Parameter giveUp: called once, on any thread, when the frame is dropped; never after `end`.
  func note(_ connection: UInt64, _ bytes: Int, giveUp: @autoclosure () -> @Sendable () -> Void) {
    let oldest = state.withLock { state -> [Entry] in
      if let entry = state.entries[connection] {
        state.bytes += bytes - entry.bytes
        state.entries[connection]?.bytes = bytes
      } else {
        state.turns += 1
        state.entries[connection] = Entry(turn: state.turns, bytes: bytes, giveUp: giveUp())
        state.order.append((connection, state.turns))
        state.bytes += bytes
        state.compact()
      }
      var oldest: [Entry] = []
      while state.bytes > limit, let entry = state.removeOldest() { oldest.append(entry) }
      return oldest
    }
    for entry in oldest { entry.giveUp() }
  }

  /// The frame of a connection is whole, or the connection has ended.
  func end(_ connection: UInt64) {
    state.withLock { state in
      guard let entry = state.entries.removeValue(forKey: connection) else { return }
      state.bytes -= entry.bytes
    }
  }
}
