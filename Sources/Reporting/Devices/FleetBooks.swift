import Measurement

/// The counts of a fleet beside those of the other side: a gateway's device channel, or a server of local push.
///
/// Both call delivered what a device has acknowledged, or has said to have. So their counts may be below those of the
/// devices, by acknowledgements that did not arrive before the end, and never above them.
struct FleetBooks {
  /// The other side's counts.
  private enum Other {
    case channel(Ledger.Devices.Channel)
    case localPush(FleetResult.LocalPush, Ledger.LocalPush)
    /// The ledger has none of them.
    case none(String)
  }

  /// Networks that are listed.
  private static let mostNetworks = 64

  private let result: FleetResult
  private let ledger: Ledger
  private let other: Other

  init(_ result: FleetResult, _ ledger: Ledger) {
    (self.result, self.ledger) = (result, ledger)
    if let push = result.localPush {
      other =
        ledger.localPush.map { .localPush(push, $0) } ?? .none("the ledger is of a simulator without local push")
    } else {
      other =
        ledger.devices.channel.map { .channel($0) } ?? .none("the ledger is of a gateway without a device channel")
    }
  }

  /// Why the two cannot be compared; `nil`: they can.
  var obstacle: String? {
    if case .none(let reason) = other { return reason }
    let missing = result.missingSegments
    guard missing.isEmpty else { return "segments of the fleet are missing: \(missing.joined(separator: ", "))" }
    guard let began = unixSeconds(ledger.started), let fleet = unixSeconds(result.started), began <= fleet else {
      return "the ledger begins after the fleet did, or the clocks of their machines differ"
    }
    return nil
  }

  /// `nil`: they cannot be compared.
  var agree: Bool? {
    guard obstacle == nil else { return nil }
    switch other {
    case .channel(let channel):
      let devices = ledger.devices
      // What the gateway has accepted, or kept from an earlier run, is somewhere.
      let isBalanced =
        ledger.gateway.accepted + channel.restored == devices.delivered + devices.stored + devices.coalesced
        + devices.expired + devices.dropped + devices.uninstalled
      let received = result.notifications.received
      return isBalanced && channel.acknowledged <= received && received <= channel.acknowledged + channel.unacknowledged
    case .localPush(let devices, let server):
      return server.networksAreWhole
        && [(devices.texts, server.texts), (devices.invitations, server.invitations)].allSatisfy(Self.agree)
        && networks(devices, server).allSatisfy { _, devices, server in
          Self.agree(devices.texts, server.texts) && Self.agree(devices.invitations, server.invitations)
        }
    case .none: return nil
    }
  }

  private static func agree(_ received: Int, _ sent: Ledger.LocalPush.Requests) -> Bool {
    sent.offered == sent.outcomes.reduce(0) { $0 + $1.count } && sent.acknowledged <= received && received <= sent.sent
  }

  /// The networks of both sides by name. None if their names differ: then the two do not speak of the same networks, as when
  /// several networks have one server.
  private func networks(
    _ devices: FleetResult.LocalPush, _ server: Ledger.LocalPush
  ) -> [(name: String, devices: FleetResult.LocalPush.Network, server: Ledger.LocalPush.Network)] {
    let served = server.networks.filter { $0.value.registered > 0 }
    guard Set(served.keys) == Set(devices.networks.filter { $0.value.registered > 0 }.keys) else { return [] }
    return served.sorted { $0.key < $1.key }.compactMap { name, network in
      devices.networks[name].map { (name, $0, network) }
    }
  }

  var section: Section {
    var blocks: [Block] = []
    if let obstacle {
      blocks.append(.callout(.warning, "The books cannot be compared: \(obstacle)."))
    } else if agree == true {
      blocks.append(
        .callout(
          .good,
          "The books agree: all that was accepted is accounted for, and the devices received what the other side calls delivered."
        ))
    } else {
      blocks.append(
        .callout(.bad, "The books disagree. They are of one fleet: a ledger that has others, too, cannot agree."))
    }
    switch other {
    case .channel(let channel): blocks += self.blocks(channel)
    case .localPush(let devices, let server):
      blocks.append(.table(table(devices, server)))
      let networks = networks(devices, server).prefix(Self.mostNetworks)
      if !networks.isEmpty {
        blocks.append(
          .table(
            .numbers(
              ["network", "texts sent", "received", "invitations sent", "received"],
              networks.map { name, devices, server in
                [
                  name, grouped(server.texts.sent), grouped(devices.texts), grouped(server.invitations.sent),
                  grouped(devices.invitations),
                ]
              })))
      }
    case .none: break
    }
    return Section("Books", blocks)
  }

  private func blocks(_ channel: Ledger.Devices.Channel) -> [Block] {
    let devices = ledger.devices
    var table = Table([.init("notifications"), .init("", .right)])
    table.add("accepted by the gateway", Prose(grouped(ledger.gateway.accepted)))
    if channel.restored > 0 { table.add("kept from an earlier run", Prose(grouped(channel.restored))) }
    table.add("delivered", Prose(grouped(devices.delivered)))
    table.add("of these acknowledged by a device, or told to be there", Prose(grouped(channel.acknowledged)))
    table.add("received by the devices", Prose(grouped(result.notifications.received)))
    table.add("waiting, or not acknowledged", Prose(grouped(devices.stored)))
    table.add("of these sent and not acknowledged", Prose(grouped(channel.unacknowledged)))
    table.add("replaced by a later one", Prose(grouped(devices.coalesced)))
    table.add("expired", Prose(grouped(devices.expired)))
    table.add(
      "dropped, because the store was full", Prose(grouped(devices.dropped)),
      tone: devices.dropped > 0 ? .warning : .neutral)
    table.add("to uninstalled apps and earlier generations", Prose(grouped(devices.uninstalled)))
    let times = [("until it was replaced", channel.coalescedMs), ("until it expired", channel.expiredMs)]
      .compactMap { name, times in times.map { (name, $0) } }.filter { $0.1.count > 0 }
    guard !times.isEmpty else { return [.table(table)] }
    return [
      .table(table),
      .table(.numbers(["from the gateway's read"] + LatencyHistogram.columns, times.map { [$0.0] + $0.1.cells })),
    ]
  }

  private func table(_ devices: FleetResult.LocalPush, _ server: Ledger.LocalPush) -> Table {
    let outcomes = zip(server.texts.outcomes, server.invitations.outcomes)
    return .numbers(
      ["local push", "texts", "invitations"],
      [
        ["offered to the server", grouped(server.texts.offered), grouped(server.invitations.offered)],
        ["received by the devices", grouped(devices.texts), grouped(devices.invitations)],
      ] + outcomes.map { [$0.name.replacing("_", with: " "), grouped($0.count), grouped($1.count)] })
  }
}
