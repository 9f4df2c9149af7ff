import DequeModule

/// An app on a registered device: its token, the device's connection, and what the device has not acknowledged.
struct RegisteredApp: Sendable {
  /// A device's connection: the number of its event loop, and its own number.
  struct Link: Sendable, Hashable {
    let loop: Int
    let connection: UInt64
  }

  enum State: Sendable, Equatable {
    /// The device is not connected.
    case away
    case online(Link, hasLowPower: Bool)
    /// A later generation of the device has registered, at this UNIX ms.
    case retired(at: Int64)
  }

  /// A notification that was sent, and with which sequence.
  struct Sent: Sendable, Equatable {
    let sequence: UInt64
    var held: HeldNotification
  }

  let topic: UInt32
  let name: String
  let token: [UInt8]
  let device: UInt64
  let generation: UInt64
  var state = State.away
  /// The sequence of the last notification that was sent.
  var lastSequence: UInt64 = 0
  /// In the order of their sequences. Those of an earlier connection stay until the device says what it has.
  var unacknowledged: Deque<Sent> = []
  /// In the order in which they were accepted.
  var waiting: [HeldNotification] = []
  /// The day of `used`, in days since 1970.
  var day: Int64 = 0
  /// Background notifications that were sent on the day.
  var used = 0
  /// The time of its entry among those that become due; `Int64.max`: it has none.
  var enteredDue = Int64.max

  init(topic: UInt32, name: String, token: [UInt8], device: UInt64, generation: UInt64) {
    (self.topic, self.name, self.token) = (topic, name, token)
    (self.device, self.generation) = (device, generation)
  }

  var link: Link? { if case .online(let link, _) = state { link } else { nil } }
  var isOnline: Bool { link != nil }

  var isRetired: Bool { if case .retired = state { true } else { false } }

  /// Removes from what waits all that a later notification of the same collapse identifier replaces, and returns it.
  ///
  /// - Parameter keepsUnnamed: those without an identifier do not replace each other.
  mutating func coalesce(keepsUnnamed: Bool) -> [HeldNotification] {
    var latest: Set<[UInt8]> = []
    var (kept, replaced): ([HeldNotification], [HeldNotification]) = ([], [])
    for held in waiting.reversed() {
      if keepsUnnamed && held.collapseID.isEmpty || latest.insert(held.collapseID).inserted {
        kept.append(held)
      } else {
        replaced.append(held)
      }
    }
    guard !replaced.isEmpty else { return [] }
    waiting = kept.reversed()
    return replaced.reversed()
  }
}
