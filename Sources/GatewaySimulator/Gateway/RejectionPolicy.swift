import Bytes
import PushModel
import Synchronization

/// The gateway's behavior at the moment, as every event loop has it. A change replaces it on each loop.
struct Conduct: Sendable {
  let behavior: Behavior
  let policy: RejectionPolicy
  /// Those of HTTP/2.
  let faults: [ActiveFault]

  /// - Parameters:
  ///   - behavior: rules and faults that `earlier` has, too, go on with its counts.
  ///   - devices: the devices at the moment.
  init(_ behavior: Behavior, _ devices: DevicePopulation, after earlier: Conduct? = nil) {
    var left = earlier?.policy.rules ?? []
    let rules = behavior.rejections.map { rule in
      guard let place = left.firstIndex(where: { $0.rule == rule }) else { return ActiveRule(rule) }
      return left.remove(at: place)
    }
    var leftFaults = earlier?.faults ?? []
    faults = behavior.http2Faults.map { fault in
      guard let place = leftFaults.firstIndex(where: { $0.fault == fault }) else { return ActiveFault(fault) }
      return leftFaults.remove(at: place)
    }
    self.behavior = behavior
    policy = RejectionPolicy(rules: rules, devices: devices, seed: behavior.seed)
  }
}

/// Which valid notifications are rejected: rules in the order in which they are asked, and the devices.
struct RejectionPolicy: Sendable {
  let rules: [ActiveRule]
  let devices: DevicePopulation
  /// No rejection rules, and all devices are active.
  let acceptsEverything: Bool
  let seed: UInt64

  init(rules: [ActiveRule], devices: DevicePopulation, seed: UInt64) {
    (self.rules, self.devices, self.seed) = (rules, devices, seed)
    acceptsEverything = rules.isEmpty && devices.isAllActive
  }
}

/// A rejection rule and what is left of it, shared by all connections.
///
/// Loops ask at the same time: each notification takes its own number, so exactly every n-th is a hit, and exactly
/// `times` of them are rejected.
final class ActiveRule: Sendable {
  let rule: Behavior.RejectionRule
  private let counted = Atomic<Int>(0)
  private let rejected = Atomic<Int>(0)

  init(_ rule: Behavior.RejectionRule) { self.rule = rule }

  /// Counts one notification and returns whether it is an n-th one.
  func isHit(every interval: Int) -> Bool {
    counted.wrappingAdd(1, ordering: .relaxed).newValue % max(1, interval) == 0
  }

  /// Whether a notification that meets the condition is rejected: not once `times` were.
  func takesOne() -> Bool {
    guard let times = rule.times else { return true }
    guard rejected.load(ordering: .relaxed) < times else { return false }
    return rejected.wrappingAdd(1, ordering: .relaxed).newValue <= times
  }

  /// Rejections that are left; `nil`: any number.
  var left: Int? { rule.times.map { max(0, $0 - rejected.load(ordering: .relaxed)) } }
}
