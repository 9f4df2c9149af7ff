import BinaryProtocol
import Bytes
import Synchronization

/// The policy shared by all connections: rejection rules, devices, and the offline store.
final class RejectionPolicy: Sendable {
  enum Rule: Sendable {
    case every(Countdown, ErrorResponse.Status)
    /// `slot` is the index of the connection's countdown to the next hit.
    case chance(slot: Int, ErrorResponse.Status)
    case prefix([UInt8], ErrorResponse.Status)
    case tokens(TokenSet, ErrorResponse.Status)
  }

  final class Countdown: Sendable {
    let interval: Int
    let taken = Atomic<Int>(0)
    init(_ interval: Int) { self.interval = max(1, interval) }

    /// Counts one notification; whether it is an n-th one.
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
    for rejection in options.behavior.rejections {
      switch rejection.condition {
      case .every(let interval): rules.append(.every(Countdown(interval), rejection.status))
      case .probability(let probability):
        rules.append(.chance(slot: probabilities.count, rejection.status))
        probabilities.append(probability)
      case .prefix(let prefix): rules.append(.prefix(prefix, rejection.status))
      case .tokens(let tokens): rules.append(.tokens(tokens, rejection.status))
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
