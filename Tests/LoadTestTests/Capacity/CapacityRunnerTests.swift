import Measurement
import Synchronization
import Testing

@testable import LoadTest

@Suite("Capacity runner")
struct CapacityRunnerTests {
  /// Without sweeps.
  private var searchOnly: CapacityPlan {
    var plan = CapacityPlan()
    (plan.connectionsSweep, plan.batchSweep, plan.errorSweep) = ([], [], [])
    return plan
  }

  private func makeRunner(
    _ plan: CapacityPlan, _ gateway: SimulatedCapacity, stop: LoadStop = LoadStop(),
    note: @escaping @Sendable (CapacityTrial) -> Void = { _ in }
  ) -> CapacityRunner {
    CapacityRunner(plan, load: LoadPlan(), environment: Environment(), stop: stop) {
      try gateway.run($0)
    } note: {
      note($0)
    }
  }

  @Test("A rate within a step of the limit is found, confirmed for long, and a step above it fails twice")
  func finds() async throws {
    let gateway = SimulatedCapacity(limit: 10_000)
    let noted = Mutex<[CapacityTrial]>([])
    var runner = makeRunner(searchOnly, gateway) { trial in noted.withLock { $0.append(trial) } }
    try await runner.run()
    #expect(runner.ending == .found)
    let rate = try #require(runner.sustained)
    #expect(rate <= 10_000 && rate * 1.03 > 10_000)
    let range = try #require(runner.range)
    #expect(range.lowerPerS < 10_000 && (range.upperPerS ?? 0) > 10_000)
    #expect(runner.trials == noted.withLock { $0 })
    #expect(runner.trials.map(\.number) == Array(1...runner.trials.count))
    #expect(runner.trials.first?.purpose == .burst && runner.trials.first?.verdict == .measured)
    let last = runner.trials.suffix(3)
    #expect(last.map(\.purpose) == [.confirm, .above, .above])
    #expect(last.map(\.verdict) == [.passed, .failed, .failed])
    #expect(last.first?.offeredPerS == rate)
    // Long ones are as long as they are said to be, and each settles first.
    #expect(gateway.loads.map(\.duration).suffix(3).allSatisfy { $0 == .seconds(30) })
    #expect(gateway.loads.dropLast(3).allSatisfy { $0.duration == .seconds(10) })
    #expect(gateway.loads.allSatisfy { $0.warmUp == .seconds(2) })
  }

  @Test("Storms come last: all connections at once, with full handshakes, and nothing else is measured")
  func storms() async throws {
    var plan = searchOnly
    (plan.storms, plan.errorSweep) = ([50, 200], [1e-3])
    let gateway = SimulatedCapacity(limit: 10_000)
    var runner = makeRunner(plan, gateway)
    try await runner.run()
    #expect(runner.trials.map(\.purpose).suffix(4) == [.errors, .errors, .storm, .storm])
    for (load, count) in zip(gateway.loads.suffix(2), [50, 200]) {
      #expect(load.connections.count == count && load.connections.stagger == .zero && !load.resumesSessions)
      #expect(load.warmUp == .zero && load.duration == .seconds(1))
    }
    #expect(gateway.loads.dropLast(2).allSatisfy { $0.resumesSessions && $0.connections.stagger > .zero })
    #expect(runner.trials.allSatisfy { $0.opening != nil })
    #expect(runner.trials.last?.opening?.staggerS == 0 && runner.trials.first?.opening?.staggerS == 0.1)
  }

  @Test("A trial that fails by chance is made again at its rate, and the answer is the same")
  func madeAgain() async throws {
    let gateway = SimulatedCapacity(limit: 10_000) { number, _ in number == 2 ? .slowGateway : nil }
    var runner = makeRunner(searchOnly, gateway)
    try await runner.run()
    #expect(runner.ending == .found)
    #expect(runner.trials[1].verdict == .failed && runner.trials[2].verdict == .passed)
    #expect(runner.trials[1].offeredPerS == runner.trials[2].offeredPerS)
    var undisturbed = makeRunner(searchOnly, SimulatedCapacity(limit: 10_000))
    try await undisturbed.run()
    #expect(runner.sustained == undisturbed.sustained)
    #expect(runner.trials.count == undisturbed.trials.count + 1)
  }

  @Test("A void trial is made again, and says nothing of the rate")
  func void() async throws {
    // Only a trial that fails is void: the first above the limit, twice.
    let spoilt = Mutex(0)
    let gateway = SimulatedCapacity(limit: 10_000) { _, rate in
      guard let rate, rate > 10_000 else { return nil }
      return spoilt.withLock { count in
        count += 1
        return count <= 2 ? .busyMachine : nil
      }
    }
    var runner = makeRunner(searchOnly, gateway)
    try await runner.run()
    #expect(runner.ending == .found)
    let above = runner.trials.filter { ($0.offeredPerS ?? 0) > 10_000 }
    #expect(above.prefix(4).map(\.verdict) == [.void, .void, .failed, .failed])
    #expect(Set(above.prefix(4).compactMap(\.offeredPerS)).count == 1)
    #expect(above.first?.reasons.first?.contains("waited for a processor") == true)
  }

  @Test("When every trial above a rate is void, the generator is the limit")
  func generatorLimited() async throws {
    let gateway = SimulatedCapacity(limit: 10_000) { _, rate in (rate ?? 0) > 10_000 ? .busyMachine : nil }
    var runner = makeRunner(searchOnly, gateway)
    try await runner.run()
    #expect(runner.ending == .generatorLimited)
    #expect(runner.sustained.map { $0 <= 10_000 && $0 * 1.03 > 10_000 } == true)
  }

  @Test("A burst that others disturbed is made once more, and the second counts as it is")
  func disturbedBurst() async throws {
    let gateway = SimulatedCapacity(limit: 10_000) { _, rate in rate == nil ? .busyMachine : nil }
    var runner = makeRunner(searchOnly, gateway)
    try await runner.run()
    #expect(runner.trials.prefix(3).map(\.purpose) == [.burst, .burst, .search])
    #expect(runner.trials.prefix(2).map(\.verdict) == [.void, .measured])
    #expect(runner.ending == .found)
  }

  @Test("A gateway that accepts nothing of the burst has no rate, and is not searched")
  func nothingAccepted() async throws {
    let gateway = SimulatedCapacity(limit: 10_000) { _, _ in .acceptsNothing }
    var runner = makeRunner(searchOnly, gateway)
    try await runner.run()
    #expect(runner.ending == .nothingPassed && runner.trials.count == 1)
    #expect(runner.sustained == nil && runner.range == nil)
  }

  @Test("After so many trials the search ends unsettled, with the best rate that passed")
  func trialsRunOut() async throws {
    var plan = searchOnly
    plan.maximumTrials = 2
    var runner = makeRunner(plan, SimulatedCapacity(limit: 10_000))
    try await runner.run()
    #expect(runner.ending == .unsettled)
    // The burst is none of the search.
    #expect(runner.trials.count == 3)
    #expect(runner.sustained == runner.trials.filter { $0.verdict == .passed }.compactMap(\.offeredPerS).max())
    #expect(runner.sustained != nil)
  }

  @Test("A trial in which the end is requested is void, kept, and the last", arguments: [1, 2, 4])
  func interrupted(number: Int) async throws {
    let stop = LoadStop()
    let gateway = SimulatedCapacity(limit: 10_000) { current, _ in
      if current == number { stop.request() }
      return nil
    }
    var runner = makeRunner(CapacityPlan(), gateway, stop: stop)
    try await runner.run()
    #expect(runner.ending == .interrupted)
    #expect(runner.trials.count == number && gateway.loads.count == number)
    #expect(runner.trials.last?.wasInterrupted == true)
    #expect(runner.trials.dropLast().allSatisfy { !$0.wasInterrupted })
    let passed = runner.trials.filter { $0.verdict == .passed }
    #expect(runner.sustained == passed.compactMap(\.offeredPerS).max())
  }

  @Test("Nothing is run when the end was requested before")
  func stoppedBefore() async throws {
    let stop = LoadStop()
    stop.request()
    let gateway = SimulatedCapacity(limit: 10_000)
    var runner = makeRunner(CapacityPlan(), gateway, stop: stop)
    try await runner.run()
    #expect(runner.trials.isEmpty && gateway.loads.isEmpty && runner.ending == .interrupted)
  }

  @Test("A load that begins after the end was requested ends at once")
  func stoppedAtBegin() throws {
    let stop = LoadStop()
    let run = try SimulatedRun()
    stop.request()
    stop.begin(run.runner)
    let outcome = try run.run()
    #expect(outcome.interruption?.phase == .connect)
  }

  @Test("An obstacle, or a gateway that is gone, ends it with an error, and the trials before it stay")
  func failures() async throws {
    for disturbance in [
      SimulatedCapacity.Disturbance.givenUp(.permanentFailure("certificate expired")),
      .fails(.unreachable("certificate expired")),
    ] {
      let gateway = SimulatedCapacity(limit: 10_000) { number, _ in number == 3 ? disturbance : nil }
      var runner = makeRunner(searchOnly, gateway)
      do {
        try await runner.run()
        Issue.record("no error")
      } catch let failure as LoadRunner.Failure {
        #expect(failure.description == "certificate expired")
      }
      #expect(runner.trials.count == 2 && runner.ending == .interrupted)
      #expect(runner.sustained == runner.trials[1].offeredPerS)
    }
    // A gateway that was lost may be back for the next trial.
    let gateway = SimulatedCapacity(limit: 10_000) { number, _ in number == 2 ? .givenUp(.lost(lastError: "")) : nil }
    var runner = makeRunner(searchOnly, gateway)
    try await runner.run()
    #expect(runner.ending == .found)
  }

  @Test("Sweeps come after the search, each with its own plan")
  func sweeps() async throws {
    var plan = CapacityPlan()
    (plan.connectionsSweep, plan.batchSweep, plan.errorSweep) = ([1, 2, 5], [8], [0.01, 0.02])
    let gateway = SimulatedCapacity(limit: 10_000)
    var runner = makeRunner(plan, gateway)
    try await runner.run()
    let sweeps = runner.trials.suffix(8)
    #expect(
      sweeps.map(\.purpose) == [.connections, .connections, .connections, .check, .batch, .errors, .errors, .errors])
    #expect(sweeps.allSatisfy { $0.verdict == .measured && $0.offeredPerS == nil })
    #expect(sweeps.map(\.connections) == [1, 2, 5, 7, 1, 1, 1, 1])
    #expect(sweeps.map(\.batch) == [nil, nil, nil, nil, 8, nil, nil, nil])
    #expect(sweeps.map(\.faultShare) == [0, 0, 0, 0, 0, 0, 0.01, 0.02])
    #expect(sweeps.allSatisfy { $0.measuredS == 10 && $0.settleS == 2 })
    #expect(runner.trials.dropLast(8).allSatisfy { [.burst, .search, .confirm, .above].contains($0.purpose) })
  }

  @Test("There is no check without three numbers of connections, and none beyond what a run may have")
  func check() {
    func connections(_ sweep: [Int]) -> [Int] {
      var plan = searchOnly
      plan.connectionsSweep = sweep
      return plan.sweeps.filter { $0.purpose == .check }.compactMap(\.connections)
    }
    #expect(connections([1, 2]) == [])
    #expect(connections([1, 2, 3]) == [4])
    #expect(connections([8, 4, 2, 1]) == [12])
    #expect(connections([1, 2, 90_000]) == [100_000])
  }

  @Test("Bad notifications are added to those of the load, and a gateway that was there is waited for")
  func plans() throws {
    var load = LoadPlan()
    load.workload.faults = [.missingToken: 0.1, .oversize: 0.2]
    var request = TrialRequest(purpose: .errors, seconds: .seconds(3), faultShare: 0.01)
    let first = request.plan(of: load, settling: .seconds(1), isFirst: true)
    #expect(abs((first.workload.faults[.missingToken] ?? 0) - 0.11) < 1e-12)
    #expect(first.workload.faults[.oversize] == 0.2)
    #expect(first.connections.patienceWithNobody == .seconds(3))
    #expect((first.duration, first.warmUp) == (.seconds(3), .seconds(1)))
    request.faultShare = 0
    let second = request.plan(of: load, settling: .zero, isFirst: false)
    #expect(second.workload.faults == load.workload.faults)
    #expect(second.connections.patienceWithNobody == second.connections.giveUp)
  }

  @Test("What a trial has to keep is what the plan says")
  func limits() async throws {
    var plan = searchOnly
    plan.limits.lag = 300_000
    plan.maximumTrials = 1
    // 200 ms late is within the limit then.
    let gateway = SimulatedCapacity(limit: 10_000) { _, _ in .slowGateway }
    var patient = makeRunner(plan, gateway)
    try await patient.run()
    #expect(patient.trials.last?.verdict == .passed)
    plan.thresholds = [try Threshold("send_lag_p99<100ms")]
    var strict = makeRunner(plan, gateway)
    try await strict.run()
    #expect(strict.trials.last?.reasons == ["threshold send_lag_p99<100ms"])
  }
}
