import Measurement

/// The result of a fleet of devices on one screen.
package struct FleetSummary: Sendable {
  package let text: String

  package init(_ result: FleetResult) {
    text =
      (Self.counts(result) + Self.times(result) + Self.campaigns(result) + Self.storms(result) + Self.checks(result))
      .joined(
        separator: "\n")
  }

  private static func counts(_ result: FleetResult) -> [String] {
    let (devices, connections) = (result.devices, result.connections)
    let notifications = result.notifications
    return [
      "devices        \(grouped(devices.asked)): \(grouped(devices.everOnline)) were online, \(grouped(devices.onlineAtEnd)) at the end\(devices.restored > 0 ? "; \(counted(devices.restored, "restore"))" : "")",
      "connections    \(grouped(connections.opened)) opened, \(grouped(connections.failures)) failed\(list(connections.failed, in: " (", ")"))\(connections.abandoned > 0 ? ", \(grouped(connections.abandoned)) abandoned" : ""); closed: \(list(connections.closed.byName))",
    ] + tokens(result) + [
      "notifications  \(grouped(notifications.received)) received = \(grouped(notifications.online)) online + \(grouped(notifications.stored)) stored + \(grouped(notifications.repeated)) repeated; \(counted(notifications.acknowledgements, "acknowledgement"))"
    ] + localPush(result) + [
      "last received  \(result.lastReceived ?? "-")"
    ]
  }

  /// Over local push there are none.
  private static func tokens(_ result: FleetResult) -> [String] {
    guard result.localPush == nil else { return [] }
    let registrations = result.registrations
    return [
      "tokens         \(grouped(registrations.tokens)) of \(grouped(registrations.asked)) that were asked for, \(grouped(registrations.wrongTokens)) wrong, \(grouped(registrations.tokenChanges)) changed\(list(registrations.refused, in: "; refused: ", ""))"
    ]
  }

  private static func localPush(_ result: FleetResult) -> [String] {
    guard let push = result.localPush else { return [] }
    let joins = push.joins.isEmpty ? "" : "; joined: \(list(push.joins)), elsewhere \(grouped(push.joinsElsewhere))"
    return [
      "local push     \(grouped(push.registered)) of \(counted(push.registrations, "registration")) acknowledged; \(counted(push.texts, "text")), \(counted(push.invitations, "invitation")) (\(grouped(push.missedCalls)) missed), \(counted(push.heartbeats, "heartbeat"))\(joins)"
    ] + networks(push)
  }

  private static func networks(_ push: FleetResult.LocalPush) -> [String] {
    let most = 10
    let lines = push.networks.sorted { $0.key < $1.key }.prefix(most).map { name, network in
      "network        \(name): \(grouped(network.registered)) registered; \(counted(network.texts, "text")), \(counted(network.invitations, "invitation"))"
    }
    let more = push.networks.count - most
    return lines + (more > 0 ? ["network        and \(grouped(more)) more"] : [])
  }

  private static func times(_ result: FleetResult) -> [String] {
    let latency = result.latency
    let rows = [
      ("due, online", latency.fromDue.onlineUs), ("due, stored", latency.fromDue.storedUs),
      ("due, repeated", latency.fromDue.repeatedUs), ("write, online", latency.fromWritten.onlineUs),
      ("write, stored", latency.fromWritten.storedUs), ("write, repeated", latency.fromWritten.repeatedUs),
      ("online", latency.onlineUs), ("stored", latency.storedUs), ("repeated", latency.repeatedUs),
      ("connect", latency.connectUs), ("ready", latency.readyUs),
    ].compactMap { name, histogram -> String? in
      guard histogram.count > 0 else { return nil }
      return row(
        name, [0.5, 0.99, 0.999].map { histogram.text(histogram.quantile($0)) } + [histogram.text(histogram.maximum)])
    }
    let resources = result.resources
    return (rows.isEmpty ? [] : [row("", ["p50", "p99", "p99.9", "max"])] + rows) + [
      "resources      \(tenths(resources.cpuUserS + resources.cpuSystemS)) of processor time, \(resources.maxRssBytes >> 20) MiB"
    ]
  }

  private static func campaigns(_ result: FleetResult) -> [String] {
    let most = 20
    let lines = result.campaigns.prefix(most).compactMap { campaign -> String? in
      guard let all = campaign.lastS else { return nil }
      let name = campaign.name.map { "\($0): " } ?? ""
      guard all >= 0, campaign.lastOnlineS ?? 0 >= 0 else {
        return "campaign       \(name)its times are of clocks that differ"
      }
      let online = campaign.lastOnlineS.map {
        "the last of \(grouped(campaign.online)) for connected devices came after \(tenths($0))"
      }
      let rest =
        campaign.received > campaign.online
        ? "the last of all \(grouped(campaign.received)) after \(tenths(all))" : nil
      let since = campaign.dated == campaign.received ? "since the first was due" : "since the gateway read the first"
      return "campaign       \(name)\([online, rest].compactMap { $0 }.joined(separator: ", ")), \(since)"
    }
    let more = result.campaigns.count - most
    return lines + (more > 0 ? ["campaign       and \(grouped(more)) more"] : [])
  }

  private static func storms(_ result: FleetResult) -> [String] {
    result.storms.map { storm in
      let all = storm.back == storm.lost ? "all" : "\(grouped(storm.back)) of \(grouped(storm.lost))"
      let back = storm.lastBackS.map { ", \(all) back after \(tenths($0))" } ?? ""
      let stored =
        storm.lastStoredS.map { ", the last notification that had waited for them came after \(tenths($0))" } ?? ""
      return
        "storm          at \(tenths(storm.atS))\(storm.network.map { " on \($0)" } ?? ""): \(counted(storm.lost, "connection")) lost\(back), at most \(grouped(storm.peakOpenedPerS)) connections a second\(stored)"
    }
  }

  private static func checks(_ result: FleetResult) -> [String] {
    let errors: [String] =
      if !result.faults.isEmpty {
        ["✗ errors of the gateway: \(list(result.faults))"]
      } else if result.devices.everOnline > 0 {
        ["✓ the gateway made no errors"]
      } else {
        // A gateway that was never spoken to made none either.
        []
      }
    return result.invariants.filter { !$0.holds }.map { "✗ \($0.name)  \($0.detail)" } + errors
      + result.warnings.map { "! \($0)" }
  }

  /// Counts with their names, the highest first.
  private static func list(_ counts: [String: Int], in opening: String = "", _ closing: String = "") -> String {
    let positive = counts.filter { $0.value > 0 }
    if positive.isEmpty { return opening.isEmpty ? "-" : "" }
    return opening + listed(positive) + closing
  }

  private static func row(_ name: String, _ cells: [String]) -> String {
    func pad(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    return name + String(repeating: " ", count: max(1, 15 - name.count)) + cells.map { pad($0, 11) }.joined()
  }
}
