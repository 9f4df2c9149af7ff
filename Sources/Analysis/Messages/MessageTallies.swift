import DeviceProtocol
import Measurement
import PacketCapture
import Records

/// The counts of a connection's messages.
enum MessageCounts: Equatable {
  case devices(InspectionReport.DeviceCounts)
  case localPush(InspectionReport.LocalPushCounts)
}

/// The messages of all open connections of the device channel and of local push.
struct MessageTallies {
  /// The most connections whose notifications and requests are followed; those of others stay open.
  private static let limit = 1 << 16

  /// The records are a selection that was made before, so that any may be missing.
  var lacksRecords = false
  private var tallies: [Int: MessageTally] = [:]
  /// Ends of other connections of which bytes are missing: what they are may become known later.
  private var losses: [Int: Set<Direction>] = [:]

  mutating func note(_ record: MessageRecord, isSelected: Bool) {
    let connection = record.place.connection
    if tallies[connection] == nil {
      let isFollowed = tallies.count < Self.limit
      tallies[connection] = MessageTally(
        record.kind, isFollowed: isFollowed, lacking: losses.removeValue(forKey: connection) ?? [])
    }
    tallies[connection]?.note(record, isSelected: isSelected)
  }

  mutating func noteLoss(_ direction: Direction, on connection: Int) {
    if tallies[connection] != nil {
      tallies[connection]?.noteLoss(direction)
    } else if losses[connection] != nil || losses.count < Self.limit {
      losses[connection, default: []].insert(direction)
    }
  }

  /// The counts of a connection that has ended; `nil` if it has no messages.
  mutating func end(_ record: ConnectionRecord) -> MessageCounts? {
    let lost = losses.removeValue(forKey: record.connection)
    guard var tally = tallies.removeValue(forKey: record.connection) else {
      // One that was declared, and of which no message was found.
      guard let kind = record.otherProtocol?.messages, record.messages != nil else { return nil }
      return MessageTally(kind, isFollowed: true, lacking: lost ?? []).counts
    }
    let isWhole = !lacksRecords && record.tls?.isWhole != false && tally.hasAll(of: record)
    tally.lacksMessages = !isWhole
    tally.finish(
      hasClientEnd: isWhole && record.notCaptured.client == nil, hasServerEnd: isWhole && record.hasServerEnd)
    return tally.counts
  }

  /// The counts of connections that have not ended: what waits is open.
  var open: [Int: MessageCounts] {
    tallies.mapValues { tally in
      var tally = tally
      tally.finish(hasClientEnd: false, hasServerEnd: false)
      return tally.counts
    }
  }
}

extension ConnectionRecord {
  /// All that the server sent is in the recording. A RST of the client may have ended what was on its way.
  fileprivate var hasServerEnd: Bool { notCaptured.server == nil }
}

extension MessageRecord {
  fileprivate var kind: MessageProtocol {
    switch self {
    case .device: .devices
    case .localPush: .localPush
    }
  }
}

/// The messages of one connection.
private struct MessageTally {
  private enum Tally {
    case devices(DeliveryTally)
    case localPush(LocalPushTally)
    /// Beyond the limit.
    case notFollowed(MessageProtocol, requests: Int)
  }

  /// Any messages of the connection may be missing, so nothing is known to be missing from it.
  var lacksMessages = false
  private var tally: Tally
  /// Selected messages, and all.
  private var selected = 0
  private var seen = 0

  init(_ kind: MessageProtocol, isFollowed: Bool, lacking: Set<Direction>) {
    tally =
      switch (isFollowed, kind) {
      case (true, .devices): .devices(DeliveryTally(limits: Self.deliveryLimits))
      case (true, .localPush): .localPush(LocalPushTally())
      case (false, let kind): .notFollowed(kind, requests: 0)
      }
    for direction in [Direction.client, .server] where lacking.contains(direction) { noteLoss(direction) }
  }

  private static var deliveryLimits: DeliveryTally.Limits {
    var limits = DeliveryTally.Limits()
    (limits.tokens, limits.waiting) = (1_024, 1 << 16)
    return limits
  }

  /// Counts are of selected messages; whether they are answered is decided by all.
  mutating func note(_ record: MessageRecord, isSelected: Bool) {
    seen += 1
    if isSelected { selected += 1 }
    switch (tally, record) {
    case (.devices(var deliveries), .device(let record)):
      // The list has to be held once only, or it is copied.
      tally = .notFollowed(.devices, requests: 0)
      deliveries.note(record.message, isCounted: isSelected)
      tally = .devices(deliveries)
    case (.localPush(var requests), .localPush(let record)):
      tally = .notFollowed(.localPush, requests: 0)
      requests.note(
        record.message, from: record.direction == .client ? .client : .server, at: record.place.time.nanoseconds,
        isCounted: isSelected)
      tally = .localPush(requests)
    case (.notFollowed(.devices, let requests), .device(let record)):
      guard isSelected, case .deliver = record.message else { return }
      tally = .notFollowed(.devices, requests: requests + 1)
    case (.notFollowed(.localPush, let requests), .localPush(let record)):
      guard isSelected, record.message.command == .request else { return }
      tally = .notFollowed(.localPush, requests: requests + 1)
    case (.devices, .localPush), (.localPush, .device), (.notFollowed, _): return
    }
  }

  mutating func noteLoss(_ direction: Direction) {
    switch tally {
    case .devices(var deliveries):
      guard direction == .client else { return }
      deliveries.noteLossOfDevice()
      tally = .devices(deliveries)
    case .localPush(var requests):
      requests.noteLoss(of: direction == .client ? .client : .server)
      tally = .localPush(requests)
    case .notFollowed: return
    }
  }

  /// Whether no message of a connection was left out when its records were written.
  func hasAll(of record: ConnectionRecord) -> Bool { seen >= record.messages ?? 0 }

  mutating func finish(hasClientEnd: Bool, hasServerEnd: Bool) {
    switch tally {
    case .devices(var deliveries):
      deliveries.finish(isDeviceEndRecorded: hasClientEnd)
      tally = .devices(deliveries)
    case .localPush(var requests):
      requests.finish(isClientEndRecorded: hasClientEnd, isServerEndRecorded: hasServerEnd)
      tally = .localPush(requests)
    case .notFollowed: return
    }
  }

  var counts: MessageCounts {
    switch tally {
    case .devices(let deliveries):
      var counts = InspectionReport.DeviceCounts()
      counts.messages = selected
      (counts.deliveries, counts.acknowledged) = (deliveries.counts.deliveries, deliveries.counts.acknowledged)
      (counts.unacknowledged, counts.open) = (deliveries.counts.unacknowledged, deliveries.counts.open)
      if lacksMessages { (counts.unacknowledged, counts.open) = (0, counts.open + counts.unacknowledged) }
      (counts.notGrowing, counts.stored) = (deliveries.counts.notGrowing, deliveries.counts.stored)
      counts.repeated = deliveries.counts.repeated
      return .devices(counts)
    case .localPush(let requests):
      var counts = InspectionReport.LocalPushCounts()
      counts.messages = selected
      (counts.requests, counts.acknowledged) = (requests.counts.requests, requests.counts.acknowledged)
      (counts.late, counts.unacknowledged) = (requests.counts.late, requests.counts.unanswered)
      (counts.open, counts.heartbeats) = (requests.counts.open, requests.counts.heartbeats)
      counts.silences = requests.counts.silences
      let longest = requests.counts.longestInterval
      counts.longestIntervalS = longest > 0 ? Double(longest) / 1e9 : nil
      if lacksMessages {
        (counts.unacknowledged, counts.open) = (0, counts.open + counts.unacknowledged)
        (counts.silences, counts.longestIntervalS) = (0, nil)
      }
      return .localPush(counts)
    case .notFollowed(.devices, let requests):
      var counts = InspectionReport.DeviceCounts()
      (counts.messages, counts.deliveries, counts.open) = (selected, requests, requests)
      return .devices(counts)
    case .notFollowed(.localPush, let requests):
      var counts = InspectionReport.LocalPushCounts()
      (counts.messages, counts.requests, counts.open) = (selected, requests, requests)
      return .localPush(counts)
    }
  }
}

extension MessageCounts {
  /// Notes what is worth a look.
  func report(to findings: inout Findings, packet: Int) {
    switch self {
    case .devices(let counts):
      note(.notAcknowledged, counts.unacknowledged, packet, &findings)
      note(.sequenceNotGrowing, counts.notGrowing, packet, &findings)
    case .localPush(let counts):
      note(.requestsUnacknowledged, counts.unacknowledged, packet, &findings)
      note(.acknowledgedLate, counts.late, packet, &findings)
      note(.serverSilent, counts.silences, packet, &findings)
    }
  }

  private func note(_ kind: FindingKind, _ count: Int, _ packet: Int, _ findings: inout Findings) {
    if count > 0 { findings.note(kind, count: count, packet: packet) }
  }
}

extension InspectionReport {
  /// Adds the messages of a connection.
  mutating func add(_ counts: MessageCounts) {
    switch counts {
    case .devices(let counts):
      devices = devices ?? DeviceCounts(connections: 0)
      devices?.add(counts)
    case .localPush(let counts):
      localPush = localPush ?? LocalPushCounts(connections: 0)
      localPush?.add(counts)
    }
  }
}
