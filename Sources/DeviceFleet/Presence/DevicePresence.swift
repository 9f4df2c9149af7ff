import Measurement

/// When one device wants to be online. Times are nanoseconds since the fleet's start, and only go forward.
struct DevicePresence {
  /// The changes between two calls of `advance`.
  struct Change: Equatable {
    /// The last storm that has hit the device, by its place in the plan.
    var storm: Int?
    /// How often the device was restored.
    var restores = 0
  }

  private let draws: DeviceDraws
  /// When the device comes first.
  private let start: Int64
  /// Whether chance keeps it online, until when, and how many such stays there were.
  private var isOnByChance = true
  private var chanceEnds = Int64.max
  private var stays: UInt64 = 0
  private var nextStorm = 0
  /// When the device comes back after the last storm.
  private var stormEnds: Int64 = 0
  private var nextRestore = Int64.max
  private var restores: UInt64 = 0
  private var returns: UInt64 = 0
  private var wanted = false
  /// The time up to which everything is known.
  private var time: Int64 = 0

  /// - Parameters:
  ///   - start: when the device comes first.
  ///   - population: devices of the whole fleet, which share the rate of restores.
  init(_ plan: PresencePlan, _ draws: DeviceDraws, start: Int64, population: Int) {
    (self.draws, self.start) = (draws, start)
    if let online = plan.online { chanceEnds = start + draws.length(online, .online, 0) }
    if case .rate(let rate)? = plan.restoring { planRestore(after: start, rate, population) }
  }

  /// Whether the device wanted to be online at the time of the last `advance`.
  var wantsOnline: Bool { wanted }

  /// Lets the time pass up to `now`.
  ///
  /// - Parameter network: the network of local push that the device has been on until now; `nil`: none.
  mutating func advance(
    to now: Int64, _ plan: PresencePlan, population: Int, on network: String? = nil
  ) -> Change {
    time = max(time, now)
    var change = Change()
    while chanceEnds <= now {
      isOnByChance.toggle()
      if isOnByChance { stays += 1 }
      guard let online = plan.online else { break }
      chanceEnds += draws.length(isOnByChance ? online : plan.offline, isOnByChance ? .online : .offline, stays)
    }
    while nextStorm < plan.storms.count, plan.storms[nextStorm].time.nanoseconds <= now {
      let storm = plan.storms[nextStorm]
      if storm.hits(network) {
        stormEnds =
          storm.time.nanoseconds
          + Int64(draws.unit(.storm, UInt64(nextStorm)) * Double(storm.within.nanoseconds))
        change.storm = nextStorm
      }
      nextStorm += 1
    }
    while nextRestore <= now {
      change.restores += 1
      guard case .rate(let rate)? = plan.restoring else { break }
      planRestore(after: nextRestore, rate, population)
    }
    let wants = now >= start && isOnByChance && now >= stormEnds && !isAbsent(at: now, plan)
    // Storms may pass between two looks: whoever lost its connection comes back.
    let cameBack = wants && (!wanted || change.storm != nil) && returns > 0
    if wants, !wanted || change.storm != nil { returns += 1 }
    if cameBack, case .share(let share)? = plan.restoring, draws.isHit(share, .restore, returns) {
      change.restores += 1
    }
    wanted = wants
    return change
  }

  /// When something may change after the last `advance`; `nil`: never. It may have passed meanwhile.
  func nextChange(_ plan: PresencePlan) -> Int64? {
    var next = Int64.max
    func consider(_ moment: Int64) { if moment > time { next = min(next, moment) } }
    consider(start)
    consider(chanceEnds)
    consider(stormEnds)
    consider(nextRestore)
    if nextStorm < plan.storms.count { consider(plan.storms[nextStorm].time.nanoseconds) }
    for (number, absence) in plan.absences.enumerated() where isHit(by: absence, number) {
      consider(absence.span.lowerBound.nanoseconds)
      consider(absence.span.upperBound.nanoseconds)
    }
    return next == .max ? nil : next
  }

  private func isHit(by absence: PresencePlan.Absence, _ number: Int) -> Bool {
    draws.isHit(absence.share, .absence, UInt64(number))
  }

  private func isAbsent(at now: Int64, _ plan: PresencePlan) -> Bool {
    for (number, absence) in plan.absences.enumerated() {
      guard absence.span.lowerBound.nanoseconds <= now, now < absence.span.upperBound.nanoseconds else { continue }
      if isHit(by: absence, number) { return true }
    }
    return false
  }

  private mutating func planRestore(after time: Int64, _ rate: Double, _ population: Int) {
    guard rate > 0 else {
      nextRestore = .max
      return
    }
    // The fleet's rate is the devices' together: each has times of its own.
    let mean = PresencePlan.Length.mean(.seconds(min(1e9, Double(max(1, population)) / rate)))
    nextRestore = time + draws.length(mean, .restoreTime, restores)
    restores += 1
  }
}
