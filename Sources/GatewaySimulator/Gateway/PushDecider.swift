import Bytes
import Measurement
import PushModel

/// Decides on the valid pushes of one connection to one topic: rejection rules, then the device.
struct PushDecider {
  enum Decision {
    case active
    /// By a rule.
    case rejected(Behavior.RejectionRule)
    /// By the device.
    case unknown, uninstalled, offline
  }

  private var policy: RejectionPolicy
  /// The rules for this topic.
  private var rules: [Rule] = []
  private let topic: String
  private let topicSeed: UInt64
  private var generator: SplitMix64

  private struct Rule {
    let active: ActiveRule
    /// Pushes of the connection until the next hit of a probability.
    var untilHit = 0
  }

  /// - Parameter stream: the number of its random numbers, which no other decider has.
  init(_ policy: RejectionPolicy, topic: String, stream: UInt64) {
    self.policy = policy
    self.topic = topic
    topicSeed = DevicePopulation.topicSeed(topic, seed: policy.seed)
    generator = SplitMix64(seed: policy.seed, stream: stream)
    adopt(policy)
  }

  /// Whether each push is accepted without being looked at.
  var acceptsEverything: Bool { policy.acceptsEverything }

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

  mutating func decide(_ token: RawSpan) -> Decision {
    for index in rules.indices where meets(token, ruleAt: index) && rules[index].active.takesOne() {
      return .rejected(rules[index].active.rule)
    }
    return switch policy.devices.device(of: token, topicSeed: topicSeed) {
    case .active: .active
    case .unknown: .unknown
    case .uninstalled: .uninstalled
    case .offline: .offline
    }
  }

  /// UNIX ms at which the device of a token was changed; `nil`: it was not.
  func timeOfChange(of token: RawSpan) -> Int64? { policy.devices.timeOfChange(of: token) }

  /// Whether a push meets the condition of a rule. Conditions that count do.
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

  /// Counts a push down to the next one that chance hits.
  private mutating func isHit(ruleAt index: Int, _ probability: Double) -> Bool {
    rules[index].untilHit -= 1
    guard rules[index].untilHit < 0 else { return false }
    rules[index].untilHit = generator.waiting(for: probability)
    return true
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
