import APNSProtocol
import Bytes
import Glibc
import Measurement
import Synchronization

/// What all connections share to decide over notifications: rejections, devices, and what waits for devices.
final class Jury: Sendable {
  enum Rule: Sendable {
    case every(Countdown, ErrorResponse.Status)
    /// `slot` is the connection's count of notifications until the next one it hits.
    case chance(slot: Int, ErrorResponse.Status)
    case prefix([UInt8], ErrorResponse.Status)
    case tokens(TokenSet, ErrorResponse.Status)
  }

  final class Countdown: Sendable {
    let interval: Int
    let taken = Atomic<Int>(0)
    init(_ interval: Int) { self.interval = max(1, interval) }

    /// One more was taken; whether it is an n-th one.
    func isHit() -> Bool { taken.wrappingAdd(1, ordering: .relaxed).newValue % interval == 0 }
  }

  let rules: [Rule]
  let probabilities: [Double]
  let devices: DevicePopulation
  /// Nothing but the protocol's rules can speak against a notification, and every device is there to get it.
  let isQuiet: Bool
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
    isQuiet = rules.isEmpty && options.devices.isAllActive
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

/// Decides over the notifications of one connection that keep the protocol's rules.
struct Judge {
  private let jury: Jury
  private let topic: String
  private let topicNumber: UInt32
  private let topicSeed: UInt64
  private var generator: SplitMix64
  private var untilChance: [Int] = []
  /// UNIX time in ms; set once for all bytes of a read.
  var now: Int64 = 0
  /// Of the notifications decided since the last `takeFailures`: accepted for apps that are gone.
  private var failures: [FeedbackList.Failure] = []
  private(set) var offline = 0
  private(set) var uninstalled = 0

  init(_ jury: Jury, topic: String, connection: UInt64) {
    self.jury = jury
    self.topic = topic
    topicNumber = jury.number(of: topic)
    topicSeed = DevicePopulation.topicSeed(topic, seed: jury.seed)
    generator = SplitMix64(seed: jury.seed, stream: connection)
    for probability in jury.probabilities { untilChance.append(generator.waiting(for: probability)) }
  }

  /// What speaks against the notification; `nil`: it is accepted, and what is to be done for its device is done.
  @inline(__always)
  mutating func decide(_ notification: borrowing PushNotification) -> ErrorResponse.Status? {
    jury.isQuiet ? nil : decideSlowly(notification)
  }

  private mutating func decideSlowly(_ notification: borrowing PushNotification) -> ErrorResponse.Status? {
    for rule in jury.rules {
      switch rule {
      case .every(let countdown, let status): if countdown.isHit() { return status }
      case .chance(let slot, let status):
        untilChance[slot] -= 1
        if untilChance[slot] < 0 {
          untilChance[slot] = generator.waiting(for: jury.probabilities[slot])
          return status
        }
      case .prefix(let prefix, let status): if notification.token.begins(with: prefix.rawBytes) { return status }
      case .tokens(let tokens, let status): if tokens.contains(notification.token) { return status }
      }
    }
    switch jury.devices.device(of: notification.token, topicSeed: topicSeed) {
    case .active: break
    case .unknown: return .invalidToken
    case .uninstalled:
      uninstalled += 1
      failures.append(
        FeedbackList.Failure(
          topic: topic, token: Array(copying: notification.token), time: UInt32(clamping: now / 1_000)))
    case .offline:
      offline += 1
      jury.store.withLock {
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

/// Vigna's SplitMix64: small, and every stream of a seed is another sequence.
struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64, stream: UInt64) {
    state = seed
    state = next() ^ stream &* 0x9e37_79b9_7f4a_7c15
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// How many pass before the next hit: drawing that once costs nothing per notification.
  mutating func waiting(for probability: Double) -> Int {
    guard probability > 0 else { return .max }
    guard probability < 1 else { return 0 }
    let draw = 1 - Double.random(in: 0..<1, using: &self)
    return Int(min(1e18, (log(draw) / log1p(-probability)).rounded(.down)))
  }

  mutating func isHit(_ probability: Double) -> Bool {
    probability > 0 && Double.random(in: 0..<1, using: &self) < probability
  }
}
