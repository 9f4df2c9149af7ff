import Measurement

extension LocalPushServer {
  /// The counts of each network, and of all else. Requests and users of the whole are their sums, so the two cannot disagree.
  struct Counts: Sendable, Equatable {
    /// The counts of a network, or of control channels and of messages for users who are away.
    struct Part: Sendable, Equatable {
      /// Connections on which a user has registered.
      var registered = 0
      /// Users with a notification channel now.
      var here = 0
      /// How often nobody listened, with the restarts of the whole server.
      var restarts = 0
      var texts = Ledger.LocalPush.Requests()
      var invitations = Ledger.LocalPush.Requests()
      var callActions = Ledger.LocalPush.Requests()
      var heartbeats = Ledger.LocalPush.Requests()
      var directories = Ledger.LocalPush.Requests()

      subscript(kind: LocalPushKind) -> Ledger.LocalPush.Requests {
        get { self[keyPath: Self.path(kind)] }
        set { self[keyPath: Self.path(kind)] = newValue }
      }

      private static func path(_ kind: LocalPushKind) -> WritableKeyPath<Part, Ledger.LocalPush.Requests> {
        switch kind {
        case .text: \.texts
        case .invite: \.invitations
        case .callAction: \.callActions
        case .heartbeat: \.heartbeats
        case .directory: \.directories
        }
      }

      /// Leaves the counts since an earlier time; those that are of a moment stay.
      fileprivate mutating func subtract(_ earlier: Part) {
        registered -= earlier.registered
        restarts -= earlier.restarts
        for kind in LocalPushKind.allCases { self[kind].subtract(earlier[kind]) }
      }
    }

    var connections = 0
    var handshakeFailures = 0
    /// Connections that can be used now.
    var open = 0
    /// By the places of networks in the options.
    private(set) var networks: [Part] = []
    private var elsewhere = Part()
    var refused: [Refusal: Int] = [:]
    var malformed = 0
    /// Requests of devices by the name of their content, all of them acknowledged.
    var requests: [String: Int] = [:]
    var sources: [Source: Int] = [:]
    /// Acknowledgements of requests that are not awaited, because they have timed out or never were.
    var strayAcknowledgements = 0
    var silencedConnections = 0
    /// Of the whole server.
    var restarts = 0

    init(networks: Int = 0) { self.networks = Array(repeating: Part(), count: networks) }

    /// The counts of a network; `nil`: of what is on none.
    subscript(network: Int?) -> Part {
      get {
        guard let network, networks.indices.contains(network) else { return elsewhere }
        return networks[network]
      }
      set {
        guard let network, networks.indices.contains(network) else {
          elsewhere = newValue
          return
        }
        networks[network] = newValue
      }
    }

    /// Requests of all networks and of none.
    subscript(kind: LocalPushKind) -> Ledger.LocalPush.Requests {
      networks.reduce(into: elsewhere[kind]) { $0.add($1[kind]) }
    }

    var texts: Ledger.LocalPush.Requests { self[.text] }
    var invitations: Ledger.LocalPush.Requests { self[.invite] }
    var callActions: Ledger.LocalPush.Requests { self[.callAction] }
    var heartbeats: Ledger.LocalPush.Requests { self[.heartbeat] }
    var directories: Ledger.LocalPush.Requests { self[.directory] }
    /// Users with a notification channel now.
    var here: Int { networks.reduce(0) { $0 + $1.here } }

    /// Leaves the counts since an earlier time; those that are of a moment stay.
    mutating func subtract(_ earlier: Counts) {
      for path in [
        \.connections, \.handshakeFailures, \.malformed, \.strayAcknowledgements, \.silencedConnections, \.restarts,
      ] as [WritableKeyPath<Counts, Int>] {
        self[keyPath: path] -= earlier[keyPath: path]
      }
      refused = Self.difference(refused, earlier.refused)
      requests = Self.difference(requests, earlier.requests)
      sources = Self.difference(sources, earlier.sources)
      elsewhere.subtract(earlier.elsewhere)
      for (place, part) in earlier.networks.enumerated() where place < networks.count { networks[place].subtract(part) }
    }

    private static func difference<Key: Hashable>(_ counts: [Key: Int], _ earlier: [Key: Int]) -> [Key: Int] {
      counts.merging(earlier, uniquingKeysWith: -).filter { $0.value != 0 }
    }

    /// The counts in the ledger's form.
    ///
    /// - Parameter names: those of the networks.
    func ledger(_ names: [String]) -> Ledger.LocalPush {
      var ledger = Ledger.LocalPush()
      (ledger.connections, ledger.handshakeFailures) = (connections, handshakeFailures)
      let notifications = networks.reduce(0) { $0 + $1.registered }
      ledger.registered = ["notification": notifications, "control": elsewhere.registered].filter { $0.value != 0 }
      ledger.here = here
      for (name, part) in zip(names, networks) {
        var network = Ledger.LocalPush.Network()
        (network.registered, network.here, network.restarts) = (part.registered, part.here, part.restarts)
        (network.texts, network.invitations, network.heartbeats) = (part.texts, part.invitations, part.heartbeats)
        ledger.networks[name] = network
      }
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
