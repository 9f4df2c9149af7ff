import BinaryProtocol
import Bytes
import Measurement
import Payload
import PushModel

/// Decides on the valid notifications of one connection.
struct NotificationFilter {
  private var policy: RejectionPolicy
  /// The rules for this topic.
  private var rules: [Rule] = []
  private let store: StoredNotifications
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
  /// UNIX time in ms; set once for all bytes of a read.
  var now: Int64 = 0
  /// Failures of the notifications accepted for uninstalled apps since the last `takeFailures`.
  private var failures: [FeedbackList.Failure] = []
  private(set) var offline = 0
  private(set) var uninstalled = 0
  private let connection: UInt64
  /// Notifications that were decided on; all before a rejection are accepted.
  private var decided = 0
  /// The latest notifications to uninstalled apps, for the observer; `nil`: there is none.
  private var outcomes: [DeviceOutcome]?

  private struct Rule {
    let active: ActiveRule
    /// Notifications of the connection until the next hit of a probability.
    var untilHit = 0
  }

  /// - Parameter payloads: what judges payloads; it then checks priorities in place of the session's rules.
  init(
    _ policy: RejectionPolicy, _ store: StoredNotifications, topic: String, connection: UInt64,
    payloads: PayloadTally? = nil, checksPriority: Bool = false, isObserved: Bool = false
  ) {
    self.policy = policy
    self.store = store
    self.connection = connection
    outcomes = isObserved ? [] : nil
    self.payloads = payloads
    payloadTopic = PayloadTopic(name: topic)
    self.checksPriority = checksPriority && payloads != nil
    self.topic = topic
    topicNumber = store.number(of: topic)
    topicSeed = DevicePopulation.topicSeed(topic, seed: policy.seed)
    generator = SplitMix64(seed: policy.seed, stream: connection)
    adopt(policy)
  }

  /// Decides by another policy from now on. A rule that it has, too, goes on.
  mutating func adopt(_ policy: RejectionPolicy) {
    self.policy = policy
    let earlier = rules
    rules = []
    for active in policy.rules where active.rule.topic == nil || active.rule.topic == topic {
      var rule = Rule(active: active)
      if let probability = active.rule.condition.chance {
        rule.untilHit =
          earlier.first { $0.active === active }?.untilHit ?? generator.waiting(for: probability)
      }
      rules.append(rule)
    }
  }

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
    return policy.acceptsEverything ? nil : decideSlowly(notification)
  }

  /// The rejection for the notification's payload and frame; these are counted in any case.
  private func problem(of notification: borrowing Push, _ payloads: PayloadTally) -> Rejection? {
    let refusal = payloads.refusal(of: notification, topic: payloadTopic, now: now)
    return checksPriority && notification.isSilentAtOnce ? .status(.processingError) : refusal
  }

  private mutating func decideSlowly(_ notification: borrowing Push) -> Rejection? {
    for index in rules.indices where meets(notification.token, ruleAt: index) && rules[index].active.takesOne() {
      return rules[index].active.rule.rejection
    }
    switch policy.devices.device(of: notification.token, topicSeed: topicSeed) {
    case .active: break
    case .unknown: return .status(.invalidToken)
    case .uninstalled:
      uninstalled += 1
      outcomes?.append(
        DeviceOutcome(
          .uninstalled, .init(connection: connection, index: decided), token: Array(copying: notification.token),
          at: now))
      failures.append(
        FeedbackList.Failure(
          topic: topic, token: Array(copying: notification.token), time: UInt32(clamping: now / 1_000)))
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

  /// Whether a notification meets the condition of a rule. Conditions that count do.
  private mutating func meets(_ token: RawSpan, ruleAt index: Int) -> Bool {
    switch rules[index].active.rule.condition {
    case .every(let interval): return rules[index].active.isHit(every: interval)
    case .probability(let probability): return isHit(ruleAt: index, probability)
    case .uninstalled(let probability):
      return policy.devices.device(of: token, topicSeed: topicSeed) == .uninstalled && isHit(ruleAt: index, probability)
    case .prefix(let prefix): return token.begins(with: prefix.rawBytes)
    case .tokens(let tokens): return tokens.contains(token)
    }
  }

  /// The outcomes since the last call that the store does not tell.
  mutating func takeOutcomes() -> [DeviceOutcome] {
    guard outcomes?.isEmpty == false else { return [] }
    defer { outcomes = [] }
    return outcomes ?? []
  }

  /// Counts a notification down to the next one that chance hits.
  private mutating func isHit(ruleAt index: Int, _ probability: Double) -> Bool {
    rules[index].untilHit -= 1
    guard rules[index].untilHit < 0 else { return false }
    rules[index].untilHit = generator.waiting(for: probability)
    return true
  }

  mutating func takeFailures() -> [FeedbackList.Failure] {
    defer { failures = [] }
    return failures
  }
}

extension Behavior.RejectionRule.Condition {
  /// The probability of a condition that chance decides.
  fileprivate var chance: Double? {
    switch self {
    case .probability(let probability), .uninstalled(let probability): probability
    case .every, .prefix, .tokens: nil
    }
  }
}
