import HTTP2
import HTTP2Server
import Measurement
import ProviderAPI

/// The counts of requests over HTTP/2, of a connection or of an event loop.
struct ServedCounts: Sendable {
  /// Notifications: `received = accepted + Σ rejected + discarded`.
  var received = 0
  var accepted = 0
  var rejected: [ProviderReason: Int] = [:]
  /// Refused, or above the last stream of a GOAWAY.
  var discarded = 0
  /// The part of `accepted` that waits, or has waited, for a device.
  var offline = 0
  /// Notifications that never ended: they are in no other count.
  var incomplete = 0
  /// The part of `accepted` and `rejected` whose answer was cut behind its status: its content waited for a window when
  /// the client reset the stream, or the connection ended; or a fault cut it.
  var unanswered = 0
  /// The parts of `accepted`, of the rejected and of `discarded` of which the provider was told nothing: no status, no
  /// refusal, no GOAWAY. Faults do that, and connections that end while answers wait.
  var unknownAccepted = 0
  var unknownRejected = 0
  var unknownDiscarded = 0
  /// Requests that are no notifications.
  var otherRequests = 0
  /// Answers with status 200.
  var successes = 0
  /// Answers with another one.
  var answers: [Int: Int] = [:]
  var goAways = 0
  var resetsSent = 0
  var resetsReceived = 0
  var pings = 0
  /// Broken rules, by their words.
  var violations: [Rule: Int] = [:]
  var floods: [Flood: Int] = [:]
  /// Faults that were done, by their kind.
  var faults: [String: Int] = [:]

  var channels = ChannelCounts()

  /// The counts of requests to channel management.
  struct ChannelCounts: Sendable, Equatable {
    var created = 0
    var read = 0
    var deleted = 0
    var listed = 0
    var rejected: [ProviderReason: Int] = [:]

    /// In the ledger's form, without what is registered.
    var ledger: Ledger.HTTP2.Channels {
      var ledger = Ledger.HTTP2.Channels()
      (ledger.created, ledger.read, ledger.deleted, ledger.listed) = (created, read, deleted, listed)
      ledger.rejected = Dictionary(uniqueKeysWithValues: rejected.map { ($0.key.rawValue, $0.value) })
      return ledger
    }
  }

  /// The sum of `rejected`.
  var rejections: Int { rejected.values.reduce(0, +) }

  /// Notes a notification whose provider never learns what became of it.
  mutating func noteUnknown(isAccepted: Bool) {
    if isAccepted { unknownAccepted += 1 } else { unknownRejected += 1 }
  }

  mutating func combine(with other: ServedCounts, _ operation: (Int, Int) -> Int) {
    for path in [
      \ServedCounts.received, \.accepted, \.discarded, \.offline, \.incomplete, \.unanswered, \.otherRequests,
      \.successes, \.unknownAccepted, \.unknownRejected, \.unknownDiscarded,
      \.channels.created, \.channels.read, \.channels.deleted, \.channels.listed,
      \.goAways, \.resetsSent, \.resetsReceived, \.pings,
    ] as [WritableKeyPath<ServedCounts, Int>] {
      self[keyPath: path] = operation(self[keyPath: path], other[keyPath: path])
    }
    rejected.combine(with: other.rejected, operation)
    answers.combine(with: other.answers, operation)
    violations.combine(with: other.violations, operation)
    floods.combine(with: other.floods, operation)
    faults.combine(with: other.faults, operation)
    channels.rejected.combine(with: other.channels.rejected, operation)
  }
}

extension Dictionary where Value == Int {
  /// Counts that come to 0 are left out.
  fileprivate mutating func combine(with other: [Key: Int], _ operation: (Int, Int) -> Int) {
    for (key, count) in other {
      let result = operation(self[key] ?? 0, count)
      self[key] = result == 0 ? nil : result
    }
  }
}
