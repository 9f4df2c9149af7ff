import Measurement

/// The counts of one event loop; those of loops are added.
struct FleetTally: Sendable {
  /// Devices that were ever online, and that are now.
  var everOnline = 0
  var online = 0
  var restored = 0

  var attempted = 0
  var opened = 0
  /// Attempts that are under way.
  var connecting = 0
  var failures: [String: Int] = [:]
  var closed: [FleetResult.Connections.Cause: Int] = [:]
  /// Connections that are open.
  var open = 0

  var asked = 0
  var tokens = 0
  var tokenChanges = 0
  var refused: [String: Int] = [:]
  var faults: [String: Int] = [:]

  var notifications = FleetResult.Notifications()
  var latency = FleetResult.Latency()
  var campaigns: [FleetResult.Campaign] = []
  var localPush = FleetResult.LocalPush()
  /// UNIX nanoseconds; `nil`: nothing came.
  var lastReceived: Int64?
  var storms: [FleetResult.Storm] = []
  /// The message of the latest failure.
  var lastFailure: String?

  /// - Parameter most: different reasons that are counted by name.
  mutating func noteFailure(_ reason: String, most: Int) {
    lastFailure = reason
    let name = failures[reason] != nil || failures.count < most ? reason : "other"
    failures[name, default: 0] += 1
  }

  var failed: Int { failures.values.reduce(0, +) }

  static func += (one: inout FleetTally, other: FleetTally) {
    one.everOnline += other.everOnline
    one.online += other.online
    one.restored += other.restored
    one.attempted += other.attempted
    one.opened += other.opened
    one.connecting += other.connecting
    one.failures.merge(other.failures, uniquingKeysWith: +)
    one.closed.merge(other.closed, uniquingKeysWith: +)
    one.open += other.open
    one.asked += other.asked
    one.tokens += other.tokens
    one.tokenChanges += other.tokenChanges
    one.refused.merge(other.refused, uniquingKeysWith: +)
    one.faults.merge(other.faults, uniquingKeysWith: +)
    one.notifications.add(other.notifications)
    one.latency.add(other.latency)
    one.campaigns.add(other.campaigns)
    one.localPush.add(other.localPush)
    one.lastReceived = [one.lastReceived, other.lastReceived].compactMap { $0 }.max()
    if one.storms.isEmpty {
      one.storms = other.storms
    } else {
      for (place, storm) in other.storms.enumerated() where place < one.storms.count { one.storms[place].add(storm) }
    }
    one.lastFailure = other.lastFailure ?? one.lastFailure
  }
}
