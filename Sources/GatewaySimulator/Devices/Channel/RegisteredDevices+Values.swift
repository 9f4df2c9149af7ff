import DeviceProtocol
import Measurement

/// The values that go in and out of the registered devices.
extension RegisteredDevices {
  /// The decision on a notification.
  enum Decision: Sendable, Equatable {
    /// Its outcome is told later.
    case accepted
    /// The token is none of a registered device.
    case unknown
    /// The token is registered, for other topics.
    case otherTopic
    /// The token is no longer valid since a UNIX ms.
    case unregistered(since: Int64)
  }

  /// The answer to a registration.
  enum Registration: Sendable, Equatable {
    case token([UInt8])
    case refused(DeviceMessage.Refusal)
  }

  /// A change that a file keeps.
  enum Change: Sendable, Equatable {
    /// A token was registered, or is no longer valid.
    case app(topic: String, token: [UInt8], device: UInt64, generation: UInt64, retiredAt: Int64?)
    /// A notification was sent.
    case sent(UInt64, sequence: UInt64)
    /// A notification is delivered, or never will be.
    case settled(UInt64)
  }

  struct Counts: Sendable, Equatable {
    /// Apps with a valid token.
    var apps = 0
    /// Apps whose device is connected.
    var online = 0
    var accepted = 0
    /// Of an earlier run; they are not in `accepted`.
    var restored = 0
    /// Acknowledged, or the device has said that it has it.
    var delivered = 0
    var coalesced = 0
    var expired = 0
    var dropped = 0
    /// Those that could not be kept, and were not accepted.
    var unkept = 0
    /// Those that wait or are not acknowledged.
    var stored = 0
    /// The part of `stored` that was sent.
    var unacknowledged = 0
    /// Messages with a notification, also of one that was sent before.
    var sent = 0
    /// The part of `sent` whose notification was sent before, on a connection that ended.
    var repeated = 0
    /// From when a notification was read to when it was replaced by a later one, and to when it expired.
    var coalescedAfter = LatencyHistogram(.milliseconds)
    var expiredAfter = LatencyHistogram(.milliseconds)

    /// Leaves the counts since an earlier time; those that are of a moment stay, and times, which begin anew by themselves.
    mutating func subtract(_ earlier: Counts) {
      accepted -= earlier.accepted
      restored -= earlier.restored
      delivered -= earlier.delivered
      coalesced -= earlier.coalesced
      expired -= earlier.expired
      dropped -= earlier.dropped
      sent -= earlier.sent
      repeated -= earlier.repeated
      unkept -= earlier.unkept
    }
  }
}
