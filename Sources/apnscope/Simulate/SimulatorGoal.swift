import Measurement

/// What ends a simulator: conditions that hold, or a pause of its providers.
struct SimulatorGoal: Sendable {
  /// The time between two looks at the books.
  static let pause = Duration.milliseconds(50)

  private let conditions: [Expectation]
  private let idle: Duration?
  /// Notifications received at the latest look at which there were new ones, and its time.
  private var latest: (received: Int, time: ContinuousClock.Instant)?

  /// `nil`: nothing but time and signals ends it.
  init?(_ options: ExpectationOptions) {
    (conditions, idle) = (options.until.map(\.expectation), options.untilIdle?.duration)
    if conditions.isEmpty, idle == nil { return nil }
  }

  mutating func isReached(by ledger: Ledger, at now: ContinuousClock.Instant = .now) -> Bool {
    if !conditions.isEmpty, conditions.allSatisfy({ $0.judge(ledger).passed }) { return true }
    guard let idle, ledger.gateway.received > 0 else { return false }
    guard let latest, latest.received == ledger.gateway.received else {
      latest = (ledger.gateway.received, now)
      return false
    }
    return now - latest.time >= idle
  }
}
