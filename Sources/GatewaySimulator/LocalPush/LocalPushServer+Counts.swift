import Measurement

extension LocalPushServer {
  struct Counts: Sendable, Equatable {
    var connections = 0
    var handshakeFailures = 0
    /// Connections that can be used now.
    var open = 0
    var registered: [LocalPushChannel: Int] = [:]
    /// Users with a notification channel now.
    var here = 0
    var refused: [Refusal: Int] = [:]
    var malformed = 0
    /// Requests of devices by the name of their content, all of them acknowledged.
    var requests: [String: Int] = [:]
    var sources: [Source: Int] = [:]
    var texts = Ledger.LocalPush.Requests()
    var invitations = Ledger.LocalPush.Requests()
    var callActions = Ledger.LocalPush.Requests()
    var heartbeats = Ledger.LocalPush.Requests()
    var directories = Ledger.LocalPush.Requests()
    /// Acknowledgements of requests that are not awaited, because they have timed out or never were.
    var strayAcknowledgements = 0
    var silencedConnections = 0
    var restarts = 0

    subscript(kind: LocalPushKind) -> Ledger.LocalPush.Requests {
      get { self[keyPath: Self.path(kind)] }
      set { self[keyPath: Self.path(kind)] = newValue }
    }

    private static func path(_ kind: LocalPushKind) -> WritableKeyPath<Counts, Ledger.LocalPush.Requests> {
      switch kind {
      case .text: \.texts
      case .invite: \.invitations
      case .callAction: \.callActions
      case .heartbeat: \.heartbeats
      case .directory: \.directories
      }
    }

    /// Leaves the counts since an earlier time; those that are of a moment stay.
    mutating func subtract(_ earlier: Counts) {
      for path in [
        \.connections, \.handshakeFailures, \.malformed, \.strayAcknowledgements, \.silencedConnections, \.restarts,
      ] as [WritableKeyPath<Counts, Int>] {
        self[keyPath: path] -= earlier[keyPath: path]
      }
      registered = Self.difference(registered, earlier.registered)
      refused = Self.difference(refused, earlier.refused)
      requests = Self.difference(requests, earlier.requests)
      sources = Self.difference(sources, earlier.sources)
      for kind in LocalPushKind.allCases { self[kind].subtract(earlier[kind]) }
    }

    private static func difference<Key: Hashable>(_ counts: [Key: Int], _ earlier: [Key: Int]) -> [Key: Int] {
      counts.merging(earlier, uniquingKeysWith: -).filter { $0.value != 0 }
    }

    /// The counts in the ledger's form.
    var ledger: Ledger.LocalPush {
      var ledger = Ledger.LocalPush()
      (ledger.connections, ledger.handshakeFailures) = (connections, handshakeFailures)
      ledger.registered = Self.named(registered)
      ledger.here = here
      ledger.refused = Self.named(refused)
      ledger.malformed = malformed
      ledger.requests = requests
      ledger.sources = Self.named(sources)
      (ledger.texts, ledger.invitations, ledger.callActions) = (texts, invitations, callActions)
      (ledger.heartbeats, ledger.directories) = (heartbeats, directories)
      ledger.strayAcknowledgements = strayAcknowledgements
      (ledger.silencedConnections, ledger.restarts) = (silencedConnections, restarts)
      return ledger
    }

    private static func named<Key: RawRepresentable<String>>(_ counts: [Key: Int]) -> [String: Int] {
      Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) })
    }
  }
}

extension Ledger.LocalPush.Requests {
  /// Leaves the counts since an earlier time. What was not acknowledged then counts as sent since, because its outcome does.
  fileprivate mutating func subtract(_ earlier: Self) {
    offered -= earlier.offered - earlier.unacknowledged
    sent -= earlier.sent - earlier.unacknowledged
    acknowledged -= earlier.acknowledged
    timedOut -= earlier.timedOut
    lost -= earlier.lost
    absent -= earlier.absent
    overloaded -= earlier.overloaded
    silenced -= earlier.silenced
  }
}
