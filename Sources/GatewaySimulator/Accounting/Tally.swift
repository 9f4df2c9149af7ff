import Measurement
import PushModel

/// The counts of one event loop; the tallies of all loops add up to the ledger.
struct Tally: Sendable {
  var connections = 0
  /// Open connections.
  var open = 0
  var handshakes = 0
  var resumed = 0
  var handshakeFailures = 0
  var refused = 0
  var received = 0
  var accepted = 0
  var discarded = 0
  var malformed = 0
  var incomplete = 0
  var bytes = 0
  /// Counts by rejection.
  var rejected: [Rejection: Int] = [:]
  var errorResponses: [Rejection: Int] = [:]
  var errorResponsesIncomplete = 0
  var offline = 0
  var uninstalled = 0
  var feedbackConnections = 0
  var feedbackOpen = 0
  var feedbackHandshakeFailures = 0
  var feedbackCompleted = 0
  var tuplesSent = 0
  /// `nil`: payloads are not judged.
  var payloads: PayloadCounts?
  /// Over HTTP/2; its notifications are in none of the above.
  var served = ServedCounts()
  var http2Connections = 0
  /// Failures that could not be put on a feedback list.
  var feedbackLost = 0
  /// Of the device channel.
  var devices = Devices()

  struct Devices: Sendable {
    var connections = 0
    var handshakeFailures = 0
    var registrations = 0
    var malformed = 0
    /// By reason.
    var refused: [String: Int] = [:]
  }

  static func += (sum: inout Tally, other: Tally) { sum.combine(with: other, +) }

  /// The counts since an earlier time, without those that are 0 by rejection or rule.
  static func -= (tally: inout Tally, earlier: Tally) {
    tally.combine(with: earlier, -)
    tally.rejected = tally.rejected.filter { $0.value != 0 }
    tally.errorResponses = tally.errorResponses.filter { $0.value != 0 }
    tally.devices.refused = tally.devices.refused.filter { $0.value != 0 }
    if let payloads = tally.payloads {
      tally.payloads?.kinds = payloads.kinds.filter { $0.value != 0 }
      tally.payloads?.lint = payloads.lint.filter { $0.value != 0 }
    }
  }

  private mutating func combine(with other: Tally, _ operation: (Int, Int) -> Int) {
    for path in [
      \Tally.connections, \.open, \.handshakes, \.resumed, \.handshakeFailures, \.refused, \.received, \.accepted,
      \.discarded, \.malformed, \.incomplete, \.bytes, \.offline, \.uninstalled, \.feedbackConnections, \.feedbackOpen,
      \.feedbackHandshakeFailures, \.feedbackCompleted, \.tuplesSent, \.feedbackLost, \.errorResponsesIncomplete,
      \.http2Connections, \.devices.connections, \.devices.handshakeFailures, \.devices.registrations,
      \.devices.malformed,
    ] as [WritableKeyPath<Tally, Int>] {
      self[keyPath: path] = operation(self[keyPath: path], other[keyPath: path])
    }
    served.combine(with: other.served, operation)
    for (reason, count) in other.devices.refused {
      devices.refused[reason] = operation(devices.refused[reason] ?? 0, count)
    }
    if let part = other.payloads {
      var sums = payloads ?? PayloadCounts()
      sums.combine(with: part, operation)
      payloads = sums
    }
    for (rejection, count) in other.rejected { rejected[rejection] = operation(rejected[rejection] ?? 0, count) }
    for (rejection, count) in other.errorResponses {
      errorResponses[rejection] = operation(errorResponses[rejection] ?? 0, count)
    }
  }

  /// The counts in the ledger's form, without those of the stores.
  var gateway: Ledger.Gateway {
    var gateway = Ledger.Gateway()
    gateway.connections = connections
    gateway.handshakes = handshakes
    gateway.resumed = resumed
    gateway.handshakeFailures = handshakeFailures
    gateway.refused = refused
    gateway.received = received + served.received
    gateway.accepted = accepted + served.accepted
    // Numbers and names: no key is both.
    gateway.rejected = Dictionary(uniqueKeysWithValues: rejected.map { ($0.key.key, $0.value) })
      .merging(served.rejected.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: +)
    gateway.discarded = discarded + served.discarded
    gateway.binary.malformed = malformed
    gateway.binary.incomplete = incomplete
    gateway.binary.errorResponses = Dictionary(uniqueKeysWithValues: errorResponses.map { ($0.key.key, $0.value) })
    gateway.binary.errorResponsesIncomplete = errorResponsesIncomplete
    gateway.bytes = bytes
    return gateway
  }

  /// The counts of the device channel in the ledger's form, without those of the devices.
  var deviceChannel: Ledger.Devices.Channel {
    var ledger = Ledger.Devices.Channel()
    ledger.connections = devices.connections
    ledger.handshakeFailures = devices.handshakeFailures
    ledger.registrations = devices.registrations
    ledger.malformed = devices.malformed
    ledger.refused = devices.refused
    return ledger
  }

  /// The counts of HTTP/2 in the ledger's form, without provider tokens.
  var http2: Ledger.HTTP2 {
    var ledger = Ledger.HTTP2()
    ledger.connections = http2Connections
    ledger.received = served.received
    ledger.accepted = served.accepted
    ledger.rejected = served.rejections
    ledger.discarded = served.discarded
    ledger.incomplete = served.incomplete
    ledger.unanswered = served.unanswered
    ledger.unknown.accepted = served.unknownAccepted
    ledger.unknown.rejected = served.unknownRejected
    ledger.unknown.discarded = served.unknownDiscarded
    ledger.faults = served.faults
    ledger.otherRequests = served.otherRequests
    ledger.answers = Dictionary(uniqueKeysWithValues: served.answers.map { (String($0.key), $0.value) })
    if served.successes > 0 { ledger.answers["200"] = served.successes }
    ledger.goaways = served.goAways
    ledger.resetsSent = served.resetsSent
    ledger.resetsReceived = served.resetsReceived
    ledger.pings = served.pings
    ledger.violations = Dictionary(uniqueKeysWithValues: served.violations.map { ("\($0.key)", $0.value) })
    ledger.floods = Dictionary(uniqueKeysWithValues: served.floods.map { ($0.key.rawValue, $0.value) })
    return ledger
  }
}
