import Measurement
import TestSupport
import Testing

@testable import DeviceFleet

/// When devices come and go, without a clock.
@Suite("Presence of devices")
struct DevicePresenceTests {
  private static let second: Int64 = 1_000_000_000

  /// What a device does until a time: looked at whenever it says that something may change.
  private func course(
    _ plan: PresencePlan, seed: UInt64 = 1, device: UInt64 = 0, start: Int64 = 0, until end: Int64, population: Int = 1
  ) -> [(time: Int64, isOnline: Bool, change: DevicePresence.Change)] {
    let draws = DeviceDraws(seed: seed, device: device)
    var presence = DevicePresence(plan, draws, start: start, population: population)
    var steps: [(Int64, Bool, DevicePresence.Change)] = []
    var now: Int64? = 0
    while let time = now, time <= end {
      let change = presence.advance(to: time, plan, population: population)
      steps.append((time, presence.wantsOnline, change))
      now = presence.nextChange(plan)
    }
    return steps
  }

  @Test("A device of a plan without anything comes at its start and stays")
  func stays() {
    let steps = course(PresencePlan(), start: 3 * Self.second, until: 1_000 * Self.second)
    #expect(steps.map(\.time) == [0, 3 * Self.second])
    #expect(steps.map(\.isOnline) == [false, true])
  }

  @Test("Stays are of the lengths that are drawn, and take turns")
  func chance() {
    var plan = PresencePlan()
    plan.online = .range(.seconds(2) ... .seconds(3))
    plan.offline = .range(.milliseconds(500) ... .seconds(1))
    let steps = course(plan, until: 500 * Self.second)
    #expect(steps.count > 200)
    for (one, next) in zip(steps, steps.dropFirst()) {
      #expect(one.isOnline != next.isOnline)
      let length = next.time - one.time
      let range = one.isOnline ? 2 * Self.second...3 * Self.second : Self.second / 2...Self.second
      #expect(range.contains(length))
    }
  }

  @Test("Exponential stays have the mean that is asked for")
  func mean() {
    let draws = (0..<4_000 as Range<UInt64>).map {
      DeviceDraws(seed: 5, device: $0).length(.mean(.seconds(10)), .online, 0)
    }
    let mean = Double(draws.reduce(0, +)) / 4_000 / 1e9
    #expect((9.4...10.6).contains(mean), "\(mean) s")
    #expect(draws.count { $0 > 10 * Self.second } < 1_700, "37 % are longer than the mean")
  }

  @Test("A time span takes the share of devices that it names, each time others")
  func absences() {
    var plan = PresencePlan()
    plan.absences = [
      .init(span: .seconds(20) ..< .seconds(40), share: 0.5), .init(span: .seconds(60) ..< .seconds(70), share: 0.1),
    ]
    var away = [0, 0]
    for device in 0..<1_000 as Range<UInt64> {
      let steps = course(plan, device: device, until: 100 * Self.second)
      func isOnline(at second: Int64) -> Bool { steps.last { $0.time <= second * Self.second }?.isOnline ?? false }
      #expect(isOnline(at: 19) && isOnline(at: 40) && isOnline(at: 71))
      if !isOnline(at: 20) { away[0] += 1 }
      #expect(isOnline(at: 20) == isOnline(at: 39))
      if !isOnline(at: 65) { away[1] += 1 }
    }
    #expect((440...560).contains(away[0]) && (70...130).contains(away[1]), "\(away)")
  }

  @Test("After a storm every device comes back within its time")
  func storms() {
    var plan = PresencePlan()
    plan.storms = [.init(time: .seconds(30), within: .seconds(5)), .init(time: .seconds(50), within: .zero)]
    var backs: [Int64] = []
    for device in 0..<200 as Range<UInt64> {
      let steps = course(plan, device: device, until: 100 * Self.second)
      #expect(steps.compactMap(\.change.storm) == [0, 1])
      let first = steps.first { $0.change.storm == 0 }
      #expect(first?.time == 30 * Self.second)
      backs.append(steps.first { $0.time >= 30 * Self.second && $0.isOnline }?.time ?? 0)
      #expect(steps.last?.isOnline == true)
    }
    #expect(backs.allSatisfy { (30 * Self.second...35 * Self.second).contains($0) })
    #expect(backs.count { $0 < 32_500_000_000 } > 60 && Set(backs).count == 200)
  }

  @Test("A storm of one network is none to a device that is on another one, or on none")
  func stormOfNetwork() {
    var plan = PresencePlan()
    plan.storms = [.init(time: .seconds(30), within: .zero, network: "ship")]
    for network in ["ship", "crew", nil] {
      var presence = DevicePresence(plan, DeviceDraws(seed: 1, device: 0), start: 0, population: 1)
      var storms: [Int] = []
      for second in 0..<60 as Range<Int64> {
        let change = presence.advance(to: second * Self.second, plan, population: 1, on: network)
        if let storm = change.storm { storms.append(storm) }
        #expect(presence.wantsOnline)
      }
      #expect(storms == (network == "ship" ? [0] : []))
    }
  }

  @Test("Devices that come back are restored by a share, and at a rate of the whole fleet")
  func restores() {
    var plan = PresencePlan()
    plan.storms = (1...20).map { .init(time: .seconds($0 * 10), within: .seconds(1)) }
    plan.restoring = .share(0.25)
    let byShare = (0..<100 as Range<UInt64>).flatMap { course(plan, device: $0, until: 300 * Self.second) }
    let restored = byShare.reduce(0) { $0 + $1.change.restores }
    #expect((400...600).contains(restored), "\(restored) of 2,000 returns")

    plan.storms = []
    plan.restoring = .rate(2)
    let byRate = (0..<100 as Range<UInt64>).flatMap {
      course(plan, device: $0, until: 100 * Self.second, population: 100)
    }
    #expect((140...260).contains(byRate.reduce(0) { $0 + $1.change.restores }))
  }

  @Test("The seed gives the same course again, and another one another", arguments: seeds(10, of: 100))
  func again(seed: UInt64) {
    var plan = PresencePlan()
    plan.online = .mean(.seconds(5))
    plan.storms = [.init(time: .seconds(30), within: .seconds(5))]
    func times(_ seed: UInt64, _ device: UInt64) -> [Int64] {
      course(plan, seed: seed, device: device, until: 60 * Self.second).map(\.time)
    }
    #expect(times(seed, 4) == times(seed, 4))
    #expect(times(seed, 4) != times(seed, 5) && times(seed, 4) != times(seed + 1, 4))
  }

  @Test("Being looked at more often changes nothing", arguments: seeds(10, of: 100))
  func extraLooks(seed: UInt64) {
    var plan = PresencePlan()
    plan.online = .mean(.seconds(3))
    plan.offline = .mean(.seconds(2))
    plan.absences = [.init(span: .seconds(10) ..< .seconds(20), share: 0.5)]
    plan.storms = [.init(time: .seconds(30), within: .seconds(5))]
    var (generator, time) = (SeededGenerator(seed: seed), Int64(0))
    let steps = course(plan, seed: seed, until: 60 * Self.second)
    var presence = DevicePresence(plan, DeviceDraws(seed: seed, device: 0), start: 0, population: 1)
    var next = 0
    while next < steps.count {
      time = min(steps[next].time, time + Int64(generator.number(1_000_000...2_000_000_000)))
      _ = presence.advance(to: time, plan, population: 1)
      guard time == steps[next].time else { continue }
      #expect(presence.wantsOnline == steps[next].isOnline)
      next += 1
    }
  }

  @Test("A connection follows the last storm that has hit its network, whatever has hit others since")
  func overlapping() {
    var plan = PresencePlan()
    plan.storms = [
      .init(time: .seconds(10), within: .seconds(60)), .init(time: .seconds(20), within: .seconds(60), network: "ship"),
      .init(time: .seconds(30), within: .seconds(5), network: "crew"),
    ]
    for (time, network, expected) in [
      (9, "ship", nil), (10, "ship", 0), (19, "ship", 0), (20, "ship", 1), (31, "ship", 1), (29, "crew", 0),
      (30, "crew", 2), (40, nil, 0),
    ] as [(Int64, String?, Int?)] {
      #expect(plan.lastStorm(at: time * Self.second, on: network) == expected, "\(time) \(network ?? "")")
    }
  }
}
