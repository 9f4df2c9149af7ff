import BinaryProtocol
import Bytes
import Measurement
import Payload
import PushModel

/// Decides on the valid notifications of one connection.
struct NotificationFilter {
  private let policy: RejectionPolicy
  private let topic: String
  private let topicNumber: UInt32
  private let topicSeed: UInt64
  /// `nil`: payloads are not judged.
  private let payloads: PayloadTally?
  private let payloadTopic: PayloadTopic
  /// Silent pushes with priority 10 are refused here, for the session would not have them judged.
  private let checksPriority: Bool
  /// The filter rejected a notification, instead of the protocol's rules.
  private(set) var hasRefused = false
  private var generator: SplitMix64
  private var untilHit: [Int] = []
  /// UNIX time in ms; set once for all bytes of a read.
  var now: Int64 = 0
  /// Failures of the notifications accepted for uninstalled apps since the last `takeFailures`.
  private var failures: [FeedbackList.Failure] = []
  private(set) var offline = 0
  private(set) var uninstalled = 0

  /// - Parameter payloads: what judges payloads; it then checks priorities in place of the session's rules.
  init(
    _ policy: RejectionPolicy, topic: String, connection: UInt64, payloads: PayloadTally? = nil,
    checksPriority: Bool = false
  ) {
    self.policy = policy
    self.payloads = payloads
    payloadTopic = PayloadTopic(name: topic)
    self.checksPriority = checksPriority && payloads != nil
    self.topic = topic
    topicNumber = policy.number(of: topic)
    topicSeed = DevicePopulation.topicSeed(topic, seed: policy.seed)
    generator = SplitMix64(seed: policy.seed, stream: connection)
    for probability in policy.probabilities { untilHit.append(generator.waiting(for: probability)) }
  }

  /// Why the notification is rejected; `nil`: it is accepted, and its device is handled.
  @inline(__always)
  mutating func decide(_ notification: borrowing Push) -> Rejection? {
    var rejection: Rejection?
    if let payloads { rejection = problem(of: notification, payloads) }
    if rejection == nil { rejection = verdict(on: notification) }
    if rejection != nil { hasRefused = true }
    return rejection
  }

  @inline(__always)
  private mutating func verdict(on notification: borrowing Push) -> Rejection? {
    if DeviceToken.isInvalid(notification.token) { return .status(.invalidToken) }
    return policy.acceptsEverything ? nil : decideSlowly(notification)
  }

  /// The rejection for the notification's payload and frame; these are counted in any case.
  private func problem(of notification: borrowing Push, _ payloads: PayloadTally) -> Rejection? {
    let refusal = payloads.refusal(of: notification, topic: payloadTopic, now: now)
    return checksPriority && notification.isSilentAtOnce ? .status(.processingError) : refusal
  }

  private mutating func decideSlowly(_ notification: borrowing Push) -> Rejection? {
    for rule in policy.rules {
      switch rule {
      case .every(let countdown, let rejection): if countdown.isHit() { return rejection }
      case .chance(let slot, let rejection):
        untilHit[slot] -= 1
        if untilHit[slot] < 0 {
          untilHit[slot] = generator.waiting(for: policy.probabilities[slot])
          return rejection
        }
      case .prefix(let prefix, let rejection):
        if notification.token.begins(with: prefix.rawBytes) { return rejection }
      case .tokens(let tokens, let rejection): if tokens.contains(notification.token) { return rejection }
      }
    }
    switch policy.devices.device(of: notification.token, topicSeed: topicSeed) {
    case .active: break
    case .unknown: return .status(.invalidToken)
    case .uninstalled:
      uninstalled += 1
      failures.append(
        FeedbackList.Failure(
          topic: topic, token: Array(copying: notification.token), time: UInt32(clamping: now / 1_000)))
    case .offline:
      offline += 1
      policy.store.withLock {
        $0.accept(
          topic: topicNumber, token: notification.token, payload: notification.payload,
          expiration: notification.expiration, now: now)
      }
    }
    return nil
  }

  mutating func takeFailures() -> [FeedbackList.Failure] {
    defer { failures = [] }
    return failures
  }
}
