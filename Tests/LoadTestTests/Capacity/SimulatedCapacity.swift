import Measurement
import Synchronization

@testable import LoadTest

/// A gateway that takes every rate up to its limit at once, and falls behind at any above it: the outcome of a load is a
/// function of its rate. Loads can be disturbed, one by one.
final class SimulatedCapacity: Sendable {
  enum Disturbance {
    /// The gateway is late, whatever the rate.
    case slowGateway
    /// Something else on the machine takes the generator's processor.
    case busyMachine
    case acceptsNothing
    case givenUp(LoadOutcome.GivingUp)
    case fails(LoadRunner.Failure)
  }

  let limit: Double
  private let disturb: @Sendable (_ number: Int, _ rate: Double?) -> Disturbance?
  private let state = Mutex<[LoadPlan]>([])

  /// - Parameter disturb: what happens to the load of this number, from 1; `nil`: nothing.
  init(limit: Double, disturb: @escaping @Sendable (_ number: Int, _ rate: Double?) -> Disturbance? = { _, _ in nil }) {
    self.limit = limit
    self.disturb = disturb
  }

  /// The loads that were run, in order.
  var loads: [LoadPlan] { state.withLock { $0 } }

  func run(_ plan: LoadPlan) throws -> LoadOutcome {
    let number = state.withLock { loads in
      loads.append(plan)
      return loads.count
    }
    let rate: Double? = if case .scheduled(let schedule, _) = plan.pace { schedule.rate(at: 0) } else { nil }
    let disturbance = disturb(number, rate)
    if case .fails(let failure) = disturbance { throw failure }
    var outcome = LoadOutcome(plan: plan)
    if case .givenUp(let reason) = disturbance { outcome.givenUp = reason }
    var taken = min(limit, rate ?? limit)
    if case .acceptsNothing = disturbance { taken = 0 }
    var isLate = (rate ?? 0) > limit
    if case .slowGateway = disturbance { isLate = true }
    for (phase, length) in [(RunPhase.connect, Duration.zero), (.warmUp, plan.warmUp), (.measured, plan.duration)] {
      var part = LoadOutcome.Phase(phase, seconds: length / .seconds(1))
      let count = Int(taken * part.seconds)
      (part.tally.generated, part.tally.accepted) = (count, count)
      (part.tally.sendings.written, part.tally.sendings.accepted) = (count, count)
      if phase == .measured {
        part.measurements.latency.sendLagUs.record(isLate ? 200_000 : 1_000)
        if case .busyMachine = disturbance { part.waited = part.seconds / 2 }
      }
      outcome.phases.append(part)
    }
    return outcome
  }
}
