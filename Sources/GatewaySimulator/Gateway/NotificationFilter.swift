import BinaryProtocol
import Bytes
import Measurement
import Payload
import PushModel

/// Decides on the valid notifications of one connection.
struct NotificationFilter {
  private var decider: PushDecider
  private let store: StoredNotifications
  /// The registered devices; `nil`: there is no device channel.
  private let devices: DeviceDirectory?
  private let topic: String
  private let topicNumber: UInt32
  /// `nil`: payloads are not judged.
  private let payloads: PayloadTally?
  private let payloadTopic: PayloadTopic
  /// Silent pushes with priority 10 are refused here, for the session would not have them judged.
  private let checksPriority: Bool
  /// The filter rejected a notification, instead of the protocol's rules.
  private(set) var hasRefused = false
  /// UNIX time in ms; set once for all bytes of a read.
  var now: Int64 = 0
  /// The same in ns, for registered devices.
  var nanoseconds: Int64 = 0
  /// Failures of the notifications accepted for uninstalled apps since the last `takeFailures`.
  private var failures: [FeedbackList.Failure] = []
  private(set) var offline = 0
  private(set) var uninstalled = 0
  private let connection: UInt64
  /// Notifications that were decided on; all before a rejection are accepted.
  private var decided = 0
  /// The latest notifications to uninstalled apps, for the observer; `nil`: there is none.
  private var outcomes: [DeviceOutcome]?

  /// - Parameter payloads: what judges payloads; it then checks priorities in place of the session's rules.
  init(
    _ policy: RejectionPolicy, _ store: StoredNotifications, topic: String, connection: UInt64,
    devices: DeviceDirectory? = nil, payloads: PayloadTally? = nil, checksPriority: Bool = false,
    isObserved: Bool = false
  ) {
    decider = PushDecider(policy, topic: topic, stream: connection)
    self.store = store
    self.devices = devices
    self.connection = connection
    outcomes = isObserved ? [] : nil
    self.payloads = payloads
    payloadTopic = PayloadTopic(name: topic)
    self.checksPriority = checksPriority && payloads != nil
    self.topic = topic
    topicNumber = store.number(of: topic)
  }

  /// Decides by another policy from now on. A rule that it has, too, goes on.
  mutating func adopt(_ policy: RejectionPolicy) { decider.adopt(policy) }

  /// Why the notification is rejected; `nil`: it is accepted, and its device is handled.
  @inline(__always)
  mutating func decide(_ notification: borrowing Push) -> Rejection? {
    var rejection: Rejection?
    if let payloads { rejection = problem(of: notification, payloads) }
    if rejection == nil { rejection = verdict(on: notification) }
    if rejection != nil { hasRefused = true }
    decided += 1
    return rejection
  }

  @inline(__always)
  private mutating func verdict(on notification: borrowing Push) -> Rejection? {
    if DeviceToken.isInvalid(notification.token) { return .status(.invalidToken) }
    return decider.acceptsEverything && devices == nil ? nil : decideSlowly(notification)
  }

  /// The rejection for the notification's payload and frame; these are counted in any case.
  private func problem(of notification: borrowing Push, _ payloads: PayloadTally) -> Rejection? {
    let refusal = payloads.refusal(of: notification, topic: payloadTopic, now: now)
    return checksPriority && notification.isSilentAtOnce ? .status(.processingError) : refusal
  }

  private mutating func decideSlowly(_ notification: borrowing Push) -> Rejection? {
    let decision = decider.decide(notification.token)
    if case .rejected(let rule) = decision { return rule.rejection }
    if let devices {
      switch offer(notification, to: devices) {
      case .decided(.unknown): break
      case .decided(.accepted):
        offline += 1
        return nil
      case .decided(.otherTopic): return .status(.invalidToken)
      case .decided(.unregistered):
        noteUninstalled(notification.token)
        return nil
      case .unkept: return .status(.processingError)
      }
    }
    switch decision {
    case .active, .rejected: break
    case .unknown: return .status(.invalidToken)
    case .uninstalled: noteUninstalled(notification.token)
    case .offline:
      offline += 1
      store.withStore {
        $0.accept(
          topic: topicNumber, token: notification.token, payload: notification.payload,
          expiration: notification.expiration, now: now, origin: .init(connection: connection, index: decided))
      }
    }
    return nil
  }

  private func offer(_ notification: borrowing Push, to devices: DeviceDirectory) -> DeviceDirectory.Decision {
    var push = OfferedPush(
      topic: topicNumber, token: notification.token, payload: notification.payload, sent: nanoseconds)
    push.priority = notification.priority ?? 10
    push.expiration = notification.expiration
    push.isBackground = PayloadRules.isSilent(notification.payload)
    push.origin = .init(connection: connection, index: decided)
    return devices.accept(push, topic: topic, now: now)
  }

  /// A token that is no longer valid: the notification is accepted, and the token goes on the feedback list.
  private mutating func noteUninstalled(_ token: RawSpan) {
    uninstalled += 1
    outcomes?.append(
      DeviceOutcome(
        .uninstalled, .init(connection: connection, index: decided), token: Array(copying: token), at: now))
    failures.append(
      FeedbackList.Failure(topic: topic, token: Array(copying: token), time: UInt32(clamping: now / 1_000)))
  }

  /// The outcomes since the last call that the store does not tell.
  mutating func takeOutcomes() -> [DeviceOutcome] {
    guard outcomes?.isEmpty == false else { return [] }
    defer { outcomes = [] }
    return outcomes ?? []
  }

  mutating func takeFailures() -> [FeedbackList.Failure] {
    defer { failures = [] }
    return failures
  }
}
