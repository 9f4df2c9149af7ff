import Measurement

/// The figures of a fleet of simulated devices that a plan needs, from `apnscope devices --output`.
public struct MeasuredFleet: Sendable, Equatable, Codable {
  /// The name of the result's file.
  public var source: String
  /// The devices of the fleet.
  public var devices: Int
  /// The share of the devices' time in which they were not online, from 0 to 1; `nil`: the result has no course.
  public var offlineShare: Double?
  /// Notifications to devices that were connected.
  public var online: Int
  /// The highest rate at which notifications of all paths came for 10 s or, in a shorter run, for all of it.
  public var receivedPerS: Double
  /// From when a notification was due, or was read by the gateway if payloads do not tell it, to a connected device.
  public var onlineUs: LatencyHistogram
  /// Whether `onlineUs` is from when it was due.
  public var isFromDue: Bool
  /// From the gateway's read to a device that came back.
  public var storedUs: LatencyHistogram
  /// Notifications that tell a time after the one at which they came: then the clocks differ, and no latency is right.
  public var early: Int
  /// Reasons to doubt answers from this fleet, in sentences; `nil`: none is known.
  public var remarks: [String]?

  /// - Parameter source: the name of the file.
  public init(_ result: FleetResult, source: String) {
    self.source = source
    devices = result.devices.asked
    // Until the first connection the fleet had not begun, and its last sample may be of less than a second.
    var running = result.timeline.samples.drop { $0.onlineS == 0 }
    if running.last?.onlineS == 0 { running.removeLast() }
    let seconds = Double(running.count) * Double(max(1, result.timeline.periodS))
    let online = running.reduce(0.0) { $0 + Double($1.onlineS) }
    offlineShare = seconds > 0 && devices > 0 ? min(1, max(0, 1 - online / (seconds * Double(devices)))) : nil
    self.online = result.notifications.online
    receivedPerS = Self.rate(result)
    let due = result.latency.fromDue.onlineUs
    isFromDue = due.count > 0 && due.count == result.notifications.online
    onlineUs = isFromDue ? due : result.latency.onlineUs
    storedUs = result.latency.storedUs
    early = result.notifications.early
    let remarks = Self.remarks(result)
    self.remarks = remarks.isEmpty ? nil : remarks
  }

  private static func remarks(_ result: FleetResult) -> [String] {
    var remarks: [String] = []
    if result.interrupted { remarks.append("somebody ended the run before its end") }
    let missing = result.missingSegments
    if !missing.isEmpty { remarks.append("segments are missing: \(missing.joined(separator: ", "))") }
    if !result.faults.isEmpty { remarks.append("the gateway made errors: \(listed(result.faults))") }
    for (cause, count) in [(FleetResult.Connections.Cause.refused, "refused"), (.peerRst, "reset by the gateway")]
      .map({ ($0.1, result.connections.closed[$0.0, default: 0]) }) where count > 0
    {
      remarks.append(
        "\(counted(count, "connection")) \(count == 1 ? "was" : "were") \(cause), and such devices count as away")
    }
    return remarks + result.invariants.filter { !$0.holds }.map { "it does not hold that \($0.name)" }
  }

  /// A sample has what came since the sample before it, which is more than a second where the fleet was stalled, and its
  /// time is right to a period. So rates are those of spans between two samples, each a period longer than it seems.
  private static func rate(_ result: FleetResult) -> Double {
    let samples = result.timeline.samples.map { (time: Double($0.time), received: Double($0.received)) }
    guard let first = samples.first, let last = samples.last else { return 0 }
    let period = Double(max(1, result.timeline.periodS))
    let shortest = max(0, min(10, last.time - first.time))
    // That of the whole run.
    var best = 0.0
    if let began = unixSeconds(result.started), let ended = unixSeconds(result.ended), ended > began {
      best = Double(result.notifications.received) / max(1, ended - began)
    }
    var (start, sum) = (0, 0.0)
    for end in samples.indices.dropFirst() {
      sum += samples[end].received
      while start + 1 < end, samples[end].time - samples[start + 1].time >= shortest {
        start += 1
        sum -= samples[start].received
      }
      let span = samples[end].time - samples[start].time
      if span >= shortest { best = max(best, sum / (span + period)) }
    }
    return best
  }
}

/// When the last user has a campaign: the time to send it, and what a fleet of devices has shown.
public struct DeviceForecast: Sendable, Equatable, Encodable {
  /// The notifications of the campaign.
  public var notifications: Int
  /// The share of devices that are away, and the notifications for them.
  public var offlineShare: Double
  public var away: Int
  /// Seconds to send the campaign; `nil`: no rate passed.
  public var sendingS: Double?
  /// Seconds for the devices to get it at the highest rate at which the fleet did; `nil`: it got nothing.
  public var receivingS: Double?
  /// Seconds from the start to when the last connected device has it, if devices keep up with the sending: the time to send
  /// all, and the longest latency of the fleet; `nil`: it is not known.
  public var keepingUpS: Double?
  /// The same, if devices get no more than the fleet did; `nil`: it is not known.
  public var lastConnectedS: Double?
  /// The evidence of `lastConnectedS`; `nil` without it.
  public var basis: Basis?
  /// Sentences about what these times do not show, or why there is none.
  public var notes: [String] = []

  /// `nil` without a campaign or a fleet.
  init?(_ document: CapacityDocument, _ plan: CampaignPlan?) {
    guard let target = document.target, let fleet = document.devices else { return nil }
    notifications = target.notifications
    offlineShare = fleet.offlineShare ?? 0
    away = Int(nearest: (Double(notifications) * offlineShare).rounded())
    sendingS = plan?.cases.first?.secondsForTarget
    let connected = Double(notifications - away)
    if fleet.receivedPerS > 0 { receivingS = connected / fleet.receivedPerS }
    notes += (fleet.remarks ?? []).map { "in \(fleet.source) \($0)" }
    if fleet.offlineShare == nil { notes.append("\(fleet.source) has no course, so no device is taken to be away") }
    guard fleet.online > 0, let receivingS else {
      notes.append("in \(fleet.source) no notification came to a connected device, so there is no answer")
      return
    }
    guard let sendingS else {
      notes.append("no rate passed, so there is no answer")
      return
    }
    guard fleet.early == 0 else {
      notes.append(
        "in \(fleet.source) \(counted(fleet.early, "notification")) came before they were sent: its clocks differ, so there is no answer"
      )
      return
    }
    guard fleet.onlineUs.maximum < LatencyHistogram.highest else {
      notes.append("in \(fleet.source) a latency is an hour or more, and not known, so there is no answer")
      return
    }
    keepingUpS = sendingS + Double(fleet.onlineUs.maximum) / 1e6
    lastConnectedS = max(sendingS, receivingS) + Double(fleet.onlineUs.maximum) / 1e6
    basis = notifications <= fleet.online ? .interpolated : .extrapolated
    if basis == .extrapolated {
      notes.append(
        "predicted: the fleet got \(grouped(fleet.online)) while connected, and \(grouped(Int(nearest: connected))) are asked for"
      )
    }
    if receivingS > sendingS {
      notes.append(
        "no more than \(Unit.perSecond.text(fleet.receivedPerS)) were seen to reach devices, which may be able to get more: only a fleet that gets more can prove less time"
      )
    }
    if !fleet.isFromDue {
      notes.append(
        "the latency is from the gateway's read, since payloads did not tell when they were due (load --stamp)")
    }
    if away > 0 {
      let back =
        fleet.storedUs.count > 0
        ? ": in the fleet's run \(grouped(fleet.storedUs.count)) came later, the last \(fleet.storedUs.text(fleet.storedUs.maximum)) after the gateway's read"
        : ""
      notes.append(
        "\(grouped(away)) are for devices that are away, which have them when they come back, the latest of each app only\(back)"
      )
    }
  }

  /// The answer in a sentence without a full stop.
  package var sentence: String {
    guard let lastConnectedS else {
      return "no answer for when the last connected device has \(counted(notifications, "notification"))"
    }
    let seen = offlineShare > 0 ? ", with \(Unit.share.text(offlineShare)) of the devices away" : ""
    guard let keepingUpS, keepingUpS < lastConnectedS else {
      return
        "the last connected device has its notification after \(Unit.seconds.text(lastConnectedS))\(basis.remark)\(seen)"
    }
    return
      "the last connected device has its notification after \(Unit.seconds.text(keepingUpS)) if devices keep up, and after \(Unit.seconds.text(lastConnectedS)) if they get no more than the fleet did\(basis.remark)\(seen)"
  }

  /// The answer as a part of a report.
  func section(_ fleet: MeasuredFleet) -> Section {
    var table = Table([.init("campaign"), .init("", .right)])
    table.add("notifications", Prose(grouped(notifications)))
    table.add("of them for devices that are away", Prose("\(grouped(away)) (\(Unit.share.text(offlineShare)))"))
    table.add("time to send them", Prose(sendingS.map(Unit.seconds.text) ?? "unknown"))
    table.add(
      "time for connected devices to get them, at most", Prose(receivingS.map(Unit.seconds.text) ?? "unknown"))
    table.add(
      "the last connected device has it, if devices keep up, after",
      Prose(keepingUpS.map(Unit.seconds.text) ?? "unknown"))
    table.add(
      "and if devices get no more than these did, after",
      Prose((lastConnectedS.map(Unit.seconds.text) ?? "unknown") + basis.remark))
    var rows = [
      [fleet.isFromDue ? "due to a connected device" : "the gateway's read to a connected device"]
        + fleet.onlineUs.cells
    ]
    if fleet.storedUs.count > 0 { rows.append(["the gateway's read to one that came back"] + fleet.storedUs.cells) }
    var blocks: [Block] = [
      .callout(
        lastConnectedS == nil || fleet.remarks != nil ? .warning : .neutral, Prose("For \(fleet.source): \(sentence).")),
      .table(table),
      .table(.numbers(["measured in \(fleet.source)"] + LatencyHistogram.columns, rows)),
    ]
    if !notes.isEmpty { blocks.append(.list(notes.map { Prose($0) })) }
    return Section("When the last device has it", blocks)
  }
}
