import Measurement

/// The counts of a fleet beside those of its gateway.
///
/// A gateway calls delivered what a device has acknowledged, or has said to have. So its count may be below that of the
/// devices, by acknowledgements that did not arrive before the end, and never above it.
struct FleetBooks {
  private let result: FleetResult
  private let devices: Ledger.Devices
  private let channel: Ledger.Devices.Channel?
  private let accepted: Int
  private let started: String

  init(_ result: FleetResult, _ ledger: Ledger) {
    (self.result, devices, channel) = (result, ledger.devices, ledger.devices.channel)
    (accepted, started) = (ledger.gateway.accepted, ledger.started)
  }

  /// What the gateway has accepted, or kept from an earlier run, is somewhere.
  private var isBalanced: Bool {
    accepted + (channel?.restored ?? 0) == devices.delivered + devices.stored + devices.coalesced + devices.expired
      + devices.dropped + devices.uninstalled
  }

  /// Why the two cannot be compared; `nil`: they can.
  private var obstacle: String? {
    guard channel != nil else { return "the ledger is of a gateway without a device channel" }
    let missing = result.missingSegments
    guard missing.isEmpty else { return "segments of the fleet are missing: \(missing.joined(separator: ", "))" }
    guard let began = unixSeconds(started), let fleet = unixSeconds(result.started), began <= fleet else {
      return "the gateway's ledger begins after the fleet did"
    }
    return nil
  }

  /// `nil`: they cannot be compared.
  var agree: Bool? {
    guard let channel, obstacle == nil else { return nil }
    let received = result.notifications.received
    return isBalanced && channel.acknowledged <= received && received <= channel.acknowledged + channel.unacknowledged
  }

  var section: Section {
    var blocks: [Block] = []
    if let obstacle {
      blocks.append(.callout(.warning, "The books cannot be compared: \(obstacle)."))
    } else if agree == true {
      blocks.append(
        .callout(
          .good,
          "The books agree: all that the gateway accepted is accounted for, and the devices received what it calls delivered."
        ))
    } else {
      blocks.append(.callout(.bad, "The books disagree."))
    }
    guard let channel else { return Section("Books", blocks) }
    var table = Table([.init("notifications"), .init("", .right)])
    table.add("accepted by the gateway", Prose(grouped(accepted)))
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
    blocks.append(.table(table))
    let times = [("until it was replaced", channel.coalescedMs), ("until it expired", channel.expiredMs)]
      .compactMap { name, times in times.map { (name, $0) } }.filter { $0.1.count > 0 }
    if !times.isEmpty {
      blocks.append(
        .table(.numbers(["from the gateway's read"] + LatencyHistogram.columns, times.map { [$0.0] + $0.1.cells })))
    }
    return Section("Books", blocks)
  }
}
