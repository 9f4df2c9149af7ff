import SQLite

/// The operations of a transfer to a provider: `snapshot`, then `read` to its end, then `remove` after all of it has
/// arrived. An aborted transfer needs no cleanup.
extension FeedbackList {
  /// The failures that a transfer sends.
  package struct Snapshot: Sendable, Equatable {
    /// The sequence of the last failure on the topic's list; 0 when it is empty.
    package let sequence: Int64
    /// The number of failures on the list. A failure that recurs during the transfer moves to the end of the list, so
    /// fewer may be sent.
    package let count: Int
  }

  /// A failure on a topic's list.
  package struct Entry: Sendable, Equatable {
    package let sequence: Int64
    /// UNIX seconds at which the app was last found uninstalled.
    package let time: UInt32
    package let token: [UInt8]
  }

  /// The current end of the topic's list.
  package func snapshot(topic: String) async throws(FeedbackListError) -> Snapshot {
    try await performOpen { database in
      guard let sequence = try FeedbackFile.lastSequence(topic: topic, database) else {
        return Snapshot(sequence: 0, count: 0)
      }
      return Snapshot(sequence: sequence, count: self.waiting(topic: topic))
    }
  }

  /// The next failures of a topic, in the order of their sequences; none when the end is reached.
  ///
  /// - Parameters:
  ///   - sequence: the sequence of the last failure read; 0 to begin.
  ///   - end: the sequence of the snapshot.
  ///   - limit: the most entries; a token has up to 65,535 bytes.
  package func read(
    topic: String, after sequence: Int64, through end: Int64, limit: Int = 1_000
  ) async throws(FeedbackListError) -> [Entry] {
    try await performOpen {
      try FeedbackFile.entries(topic: topic, after: sequence, through: end, limit: max(0, limit), $0)
    }
  }

  /// Removes the failures that a transfer has sent, except those that failed again since; durable on return.
  ///
  /// Long lists are removed in several transactions, the first failures first. If the process ends in between, the rest
  /// is sent again.
  ///
  /// - Parameter end: the sequence of the snapshot.
  /// - Returns: the number of failures removed.
  @discardableResult
  package func remove(topic: String, through end: Int64) async throws(FeedbackListError) -> Int {
    let limit = 8_192
    var total = 0
    while true {
      let removed = try await performOpen { database in
        let last = self.state.withLock { $0.lastSequence }
        let removed = try database.transaction(.immediate) {
          try FeedbackFile.remove(topic: topic, through: end, limit: limit, lastSequence: last, database)
        }
        self.state.withLock { state in
          let name = Array(topic.utf8)
          let left = (state.waiting[name] ?? 0) - removed
          state.waiting[name] = left > 0 ? left : nil
        }
        return removed
      }
      total += removed
      if removed < limit { return total }
    }
  }

  /// Removes the failures of all topics that were added before; durable on return.
  package func removeAll() async throws(FeedbackListError) {
    await flush()
    let (topics, last) = state.withLock { (Array($0.waiting.keys), $0.lastSequence) }
    for topic in topics { try await remove(topic: String(decoding: topic, as: UTF8.self), through: last) }
  }

  private func performOpen<Result: Sendable>(
    _ work: @escaping @Sendable (SQLConnection) throws -> Result
  ) async throws(FeedbackListError) -> Result {
    if state.withLock({ $0.isClosed }) { throw closedError }
    do {
      return try await perform(work)
    } catch {
      // The list may have been closed meanwhile.
      throw state.withLock({ $0.isClosed }) ? closedError : error
    }
  }
}
