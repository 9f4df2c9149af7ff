/// Equations that the counts of every ledger obey, and connections that several ledgers have in common.
extension Ledger {
  /// The equations that the counts have to obey.
  package var invariants: [RunResult.Verdict.Invariant] { invariants(withDevices: isOfWholeRun) }

  private func invariants(withDevices: Bool) -> [RunResult.Verdict.Invariant] {
    var invariants = [
      Self.equation(
        "received = accepted + rejected + discarded", [gateway.received],
        [gateway.accepted, gateway.allRejected, gateway.discarded])
    ]
    if withDevices {
      // Restored notifications were accepted in an earlier run, and have an outcome in this one.
      let restored = [devices.channel?.restored ?? 0].filter { $0 != 0 }
      invariants.append(
        Self.equation(
          "accepted\(restored.isEmpty ? "" : " + restored") = the sum of the outcomes for devices",
          [gateway.accepted] + restored,
          [
            devices.delivered, devices.stored, devices.coalesced, devices.expired, devices.dropped,
            devices.uninstalled,
          ]))
    }
    if let http2 {
      invariants.append(
        Self.equation(
          "received = accepted + rejected + discarded, over HTTP/2", [http2.received],
          [http2.accepted, http2.rejected, http2.discarded]))
    }
    return invariants
  }

  /// Whether it is of a whole run. A ledger of a control endpoint may be of a part: it lists no connections, and
  /// notifications that wait for devices may have been accepted before.
  private var isOfWholeRun: Bool {
    gateway.connections > 0 && gateway.connections == sum(connections.count, connectionsOmitted)
  }

  /// The equations that the sum of several ledgers has to obey; the first is that of `received`. No count may be beyond
  /// the range of numbers, at whose end `merging(_:)` keeps it.
  package func invariants(ofSumOf parts: [Ledger]) -> [RunResult.Verdict.Invariant] {
    let counts: [Int] =
      [
        gateway.received, gateway.accepted, gateway.allRejected, gateway.discarded, gateway.connections, gateway.bytes,
        devices.delivered, devices.stored, devices.coalesced, devices.expired, devices.dropped, devices.uninstalled,
      ] + (http2.map { [$0.received, $0.accepted, $0.rejected, $0.discarded] } ?? [])
    return invariants(withDevices: parts.allSatisfy(\.isOfWholeRun)) + [
      RunResult.Verdict.Invariant(
        "every sum is below 2^63 - 1", holds: !counts.contains(.max),
        detail: "\(gateway.received) received, \(gateway.accepted) accepted, \(gateway.bytes) bytes")
    ]
  }

  /// Sums that are too large are equal to nothing, because they are not known.
  private static func equation(_ name: String, _ left: [Int], _ right: [Int]) -> RunResult.Verdict.Invariant {
    let sums = [left, right].map { $0.reduce(0, sum) }
    return .init(
      name, holds: sums[0] == sums[1] && sums[0] != .max,
      detail: [left, right].map { $0.map { "\($0)" }.joined(separator: " + ") }.joined(separator: " = "))
  }

  /// Sentences about ledgers that have connections in common, so that their notifications would count twice: a ledger,
  /// and another that was merged from it.
  ///
  /// A host uses the same port to two gateways, so that single connections of these may look alike by chance: a hundredth
  /// of the shorter list is not chance. Ledgers without a connection, and connections that a ledger does not list, tell
  /// nothing.
  ///
  /// - Parameter parts: the ledgers, with their names in messages.
  package static func overlaps(of parts: [(name: String, ledger: Ledger)]) -> [String] {
    var owners: [ConnectionIdentity: Int] = [:]
    // By the numbers of both parts, in the order in which they are given.
    var common: [Pair: Int] = [:]
    for (number, part) in parts.enumerated() {
      for connection in part.ledger.connections {
        let identity = ConnectionIdentity(connection)
        let owner = owners[identity] ?? number
        owners[identity] = owner
        if owner != number { common[Pair(earlier: owner, later: number), default: 0] += 1 }
      }
    }
    func isNoChance(_ pair: Pair, _ count: Int) -> Bool {
      let shorter = min(parts[pair.earlier].ledger.connections.count, parts[pair.later].ledger.connections.count)
      return count > shorter / 100
    }
    return common.filter { isNoChance($0.key, $0.value) }
      .sorted { ($0.key.later, $0.key.earlier) < ($1.key.later, $1.key.earlier) }.map { pair, count in
        let connections = count == 1 ? "a connection" : "\(GroupedNumber.text(count)) connections"
        return
          "\(parts[pair.later].name): has \(connections) of \(parts[pair.earlier].name), which counts twice; one is part of the other"
      }
  }

  private struct Pair: Hashable {
    var earlier: Int
    var later: Int
  }

  /// The properties by which a connection is recognised in another ledger.
  private struct ConnectionIdentity: Hashable {
    var client: String
    var opened: String
    var closed: String
    var topic: String?
    var received: Int
    var accepted: Int
    var discarded: Int

    init(_ connection: Connection) {
      (client, opened, closed) = (connection.client, connection.opened, connection.closed)
      (topic, received) = (connection.topic, connection.received)
      (accepted, discarded) = (connection.accepted, connection.discarded)
    }
  }
}

extension Ledger.Gateway {
  /// All rejections; at the end of the range of numbers if there are more.
  package var allRejected: Int { rejected.values.reduce(0, sum) }
}
