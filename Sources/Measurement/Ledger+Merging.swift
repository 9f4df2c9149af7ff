/// Books of several gateways that shared a load.
extension Ledger {
  /// Adds the counts of all ledgers; connections are listed in the order of the ledgers. Several have no verdict.
  ///
  /// Counts stay at the end of their range instead of going beyond it.
  public static func merging(_ ledgers: [Ledger]) -> Ledger? {
    guard var merged = ledgers.first else { return nil }
    for ledger in ledgers.dropFirst() { merged.add(ledger) }
    if ledgers.count > 1 {
      // Notifications that one gateway discarded may have been sent again to another.
      (merged.verdict, merged.expectations) = (nil, nil)
    }
    merged.started = ledgers.map(\.started).min() ?? ""
    merged.ended = ledgers.map(\.ended).max() ?? ""
    return merged
  }

  private static let counts: [WritableKeyPath<Ledger, Int> & Sendable] = [
    \.gateway.connections, \.gateway.handshakes, \.gateway.resumed, \.gateway.handshakeFailures, \.gateway.refused,
    \.gateway.received, \.gateway.accepted, \.gateway.discarded, \.gateway.binary.malformed,
    \.gateway.binary.incomplete,
    \.gateway.binary.errorResponsesIncomplete, \.gateway.bytes,
    \.devices.delivered, \.devices.coalesced, \.devices.expired, \.devices.dropped, \.devices.stored,
    \.devices.uninstalled,
    \.feedback.connections, \.feedback.handshakeFailures, \.feedback.completed, \.feedback.tuplesSent,
    \.feedback.waiting, \.feedback.lost,
    \.connectionsOmitted,
  ]

  private mutating func add(_ other: Ledger) {
    for path in Self.counts { self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path]) }
    gateway.rejected.merge(other.gateway.rejected, uniquingKeysWith: sum)
    gateway.binary.errorResponses.merge(other.gateway.binary.errorResponses, uniquingKeysWith: sum)
    if let others = other.payloads {
      var payloads = payloads ?? Payloads()
      payloads.kinds.merge(others.kinds, uniquingKeysWith: sum)
      payloads.lint.merge(others.lint, uniquingKeysWith: sum)
      self.payloads = payloads
    }
    if let others = other.records {
      var records = records ?? Records()
      records.notifications = sum(records.notifications, others.notifications)
      records.lost = sum(records.lost, others.lost)
      if let outcomes = others.outcomesLost { records.outcomesLost = sum(records.outcomesLost ?? 0, outcomes) }
      self.records = records
    }
    connections += other.connections
  }
}
