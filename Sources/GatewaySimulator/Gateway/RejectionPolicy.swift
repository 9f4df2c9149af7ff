import Bytes
import PushModel
import Synchronization

/// The policy shared by all connections: rejection rules, devices, and the offline store.
final class RejectionPolicy: Sendable {
  enum Rule: Sendable {
    case every(Countdown, Rejection)
    /// `slot` is the index of the connection's countdown to the next hit.
    case chance(slot: Int, Rejection)
    case prefix([UInt8], Rejection)
    case tokens(TokenSet, Rejection)
  }

  final class Countdown: Sendable {
    let interval: Int
    let taken = Atomic<Int>(0)
    init(_ interval: Int) { self.interval = max(1, interval) }

    /// Counts one notification and returns whether it is an n-th one.
    func isHit() -> Bool { taken.wrappingAdd(1, ordering: .relaxed).newValue % interval == 0 }
  }

  let rules: [Rule]
  let probabilities: [Double]
  let devices: DevicePopulation
  /// No rejection rules, and all devices are active.
  let acceptsEverything: Bool
  let seed: UInt64
  let store: Mutex<OfflineStore>
  private let topics = Mutex<[String: UInt32]>([:])

  init(_ options: SimulatorOptions) {
    var rules: [Rule] = []
    var probabilities: [Double] = []
    for rule in options.behavior.rejections {
      switch rule.condition {
      case .every(let interval): rules.append(.every(Countdown(interval), rule.rejection))
      case .probability(let probability):
        rules.append(.chance(slot: probabilities.count, rule.rejection))
        probabilities.append(probability)
      case .prefix(let prefix): rules.append(.prefix(prefix, rule.rejection))
      case .tokens(let tokens): rules.append(.tokens(tokens, rule.rejection))
      }
    }
    self.rules = rules
    self.probabilities = probabilities
    devices = options.devices
    acceptsEverything = rules.isEmpty && options.devices.isAllActive
    seed = options.behavior.seed
    store = Mutex(OfflineStore(options.offline))
  }

  /// A number for the topic, the same for all its connections.
  func number(of topic: String) -> UInt32 {
    topics.withLock { topics in
      if let number = topics[topic] { return number }
      let number = UInt32(topics.count)
      topics[topic] = number
      return number
    }
  }
}
