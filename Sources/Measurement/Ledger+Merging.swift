/// Books of several gateways that shared a load.
extension Ledger {
  /// Adds the counts of all ledgers; connections are listed in the order in which they ended, at most 100,000. Several
  /// have no verdict.
  ///
  /// Counts stay at the end of their range instead of going beyond it.
  public static func merging(_ ledgers: [Ledger]) -> Ledger? {
    guard var merged = ledgers.first else { return nil }
    for ledger in ledgers.dropFirst() { merged.add(ledger) }
    if ledgers.count > 1 {
      // Notifications that one gateway discarded may have been sent again to another.
      (merged.verdict, merged.expectations) = (nil, nil)
    }
    merged.connections.sort { ($0.closed, $0.opened, $0.client) < ($1.closed, $1.opened, $1.client) }
    let left = max(0, merged.connections.count - maximumConnections)
    merged.connections.removeLast(left)
    merged.connectionsOmitted = sum(merged.connectionsOmitted, left)
    merged.started = ledgers.map(\.started).min() ?? ""
    merged.ended = ledgers.map(\.ended).max() ?? ""
    return merged
  }

  /// The most connections that are listed of several ledgers; further ones are counted.
  private static let maximumConnections = 100_000

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
    if let others = other.devices.channel {
      if devices.channel == nil { devices.channel = others } else { devices.channel?.add(others) }
    }
    if let others = other.localPush {
      if localPush == nil { localPush = others } else { localPush?.add(others) }
    }
    if let others = other.http2 {
      if http2 == nil { http2 = others } else { http2?.add(others) }
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

extension Ledger.HTTP2 {
  /// The most provider tokens that are listed of several ledgers; further ones are counted.
  private static let maximumTokens = 1_000

  private static let counts: [WritableKeyPath<Self, Int> & Sendable] = [
    \.connections, \.received, \.accepted, \.rejected, \.discarded, \.incomplete, \.unanswered, \.otherRequests,
    \.goaways, \.resetsSent, \.resetsReceived, \.pings, \.providerTokensOmitted, \.providerTokenRenewals,
    \.unknown.accepted, \.unknown.rejected, \.unknown.discarded,
  ]

  fileprivate mutating func add(_ other: Self) {
    for path in Self.counts { self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path]) }
    answers.merge(other.answers, uniquingKeysWith: sum)
    violations.merge(other.violations, uniquingKeysWith: sum)
    floods.merge(other.floods, uniquingKeysWith: sum)
    faults.merge(other.faults, uniquingKeysWith: sum)
    if let others = other.channels {
      if channels == nil { channels = others } else { channels?.add(others) }
    }
    // A provider shows the same token to several gateways.
    for token in other.providerTokens {
      if let index = providerTokens.firstIndex(where: { $0.isSame(as: token) }) {
        providerTokens[index].connections = sum(providerTokens[index].connections, token.connections)
        providerTokens[index].ageS = min(providerTokens[index].ageS, token.ageS)
      } else {
        providerTokens.append(token)
      }
    }
    providerTokens.sort { ($0.issuedAt, $0.keyID, $0.teamID) < ($1.issuedAt, $1.keyID, $1.teamID) }
    let left = max(0, providerTokens.count - Self.maximumTokens)
    providerTokens.removeLast(left)
    providerTokensOmitted = sum(providerTokensOmitted, left)
  }
}

extension Ledger.HTTP2.Channels {
  private static let counts: [WritableKeyPath<Self, Int> & Sendable] = [
    \.created, \.read, \.deleted, \.listed, \.registered, \.keeping,
  ]

  fileprivate mutating func add(_ other: Self) {
    for path in Self.counts { self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path]) }
    rejected.merge(other.rejected, uniquingKeysWith: sum)
  }
}

extension Ledger.Devices.Channel {
  private static let counts: [WritableKeyPath<Self, Int> & Sendable] = [
    \.connections, \.handshakeFailures, \.registrations, \.registered, \.online, \.sent, \.repeated, \.unacknowledged,
    \.accepted, \.acknowledged, \.restored, \.unkept, \.malformed,
  ]

  fileprivate mutating func add(_ other: Self) {
    for path in Self.counts { self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path]) }
    coalescedMs = Self.merged(coalescedMs, other.coalescedMs)
    expiredMs = Self.merged(expiredMs, other.expiredMs)
    refused.merge(other.refused, uniquingKeysWith: sum)
  }

  private static func merged(_ one: LatencyHistogram?, _ other: LatencyHistogram?) -> LatencyHistogram? {
    guard var one, let other else { return one ?? other }
    // Documents of others may have any unit.
    guard one.unit == other.unit else { return nil }
    one.merge(other)
    return one
  }
}

extension Ledger.HTTP2.ProviderToken {
  fileprivate func isSame(as other: Self) -> Bool {
    (keyID, teamID, issuedAt) == (other.keyID, other.teamID, other.issuedAt)
  }
}
