import Measurement

/// The plan of a search for capacity: the length of trials, the limits to pass, and the measurements after the search.
/// All defaults are those of the command.
public struct CapacityPlan: Sendable {
  /// The relative distance from the found rate to a rate that fails: 0.03 is 3 %. Above 0.
  public var precision = 0.03
  /// The maximum number of trials of the search, at least 1.
  public var maximumTrials = 40
  /// The length of a trial's measured phase.
  public var trial = Duration.seconds(10)
  /// The length of the measured phase in trials that confirm the found rate, and in trials a step above this rate.
  public var confirmation = Duration.seconds(30)
  /// The time before each measured phase, which is not measured.
  public var settling = Duration.seconds(2)
  /// The limits that a trial must keep; `drift` is derived from `precision`.
  public var limits = TrialLimits()
  /// Further conditions on every trial.
  public var thresholds: [Threshold] = []
  /// The numbers of connections of the trials without a rate limit after the search.
  public var connectionsSweep = [1, 2, 4, 8]
  /// The maximum numbers of notifications of a write in such trials.
  public var batchSweep = [1, 4, 16, 64]
  /// The shares of faulty notifications in such trials, from 0 to 1.
  public var errorSweep = [1e-3, 3e-4]
  /// The numbers of connections that are opened at once, with full handshakes, in a trial each after all others.
  public var storms: [Int] = []

  public init() {}

  /// The trials after the search, in order.
  package var sweeps: [TrialRequest] {
    var sweeps: [TrialRequest] = []
    for count in connectionsSweep {
      sweeps.append(TrialRequest(purpose: .connections, seconds: trial, connections: count))
    }
    if connectionsSweep.count >= 3, let most = connectionsSweep.max() {
      // Half as many again as were measured: a check further away would depend on chance more than on the law.
      let count = max(most + 1, most * 3 / 2)
      sweeps.append(TrialRequest(purpose: .check, seconds: trial, connections: min(Self.maximumConnections, count)))
    }
    for size in batchSweep {
      sweeps.append(TrialRequest(purpose: .batch, seconds: trial, batch: size))
    }
    // Repeat the burst without errors: their cost is a small difference, and the machine may have changed meanwhile.
    if !errorSweep.isEmpty {
      sweeps.append(TrialRequest(purpose: .errors, seconds: trial, faultShare: 0))
    }
    for share in errorSweep {
      sweeps.append(TrialRequest(purpose: .errors, seconds: trial, faultShare: share))
    }
    // Last: a gateway that does not survive a storm spoils no other trial.
    for count in storms {
      sweeps.append(TrialRequest(purpose: .storm, seconds: min(trial, Self.afterStorm), connections: count))
    }
    return sweeps
  }

  private static let maximumConnections = 100_000
  /// The measured phase behind a storm, whose figures are those of opening the connections.
  private static let afterStorm = Duration.seconds(1)
}

/// The settings of one trial that differ from the common load.
package struct TrialRequest: Sendable, Equatable {
  package var purpose: CapacityTrial.Purpose
  /// Length of the measured phase.
  package var seconds: Duration
  /// Notifications a second; `nil`: as fast as possible.
  package var rate: Double?
  package var connections: Int?
  package var batch: Int?
  /// The share of notifications with deliberate faults, in addition to the load's own faults.
  package var faultShare: Double?

  package init(
    purpose: CapacityTrial.Purpose, seconds: Duration, rate: Double? = nil, connections: Int? = nil, batch: Int? = nil,
    faultShare: Double? = nil
  ) {
    (self.purpose, self.seconds, self.rate) = (purpose, seconds, rate)
    (self.connections, self.batch, self.faultShare) = (connections, batch, faultShare)
  }

  /// The load of the trial.
  ///
  /// - Parameters:
  ///   - isFirst: no trial was made before it.
  package func plan(of load: LoadPlan, settling: Duration, isFirst: Bool) -> LoadPlan {
    var plan = load
    plan.duration = seconds
    plan.warmUp = settling
    if let rate { plan.pace = .scheduled(.constant(rate), isPoisson: false) }
    if let connections { plan.connections.count = connections }
    if purpose == .storm {
      (plan.connections.stagger, plan.resumesSessions, plan.warmUp) = (.zero, false, .zero)
    }
    if let batch { plan.batching.notifications = batch }
    if let faultShare, faultShare > 0 { plan.workload.faults[.missingToken, default: 0] += faultShare }
    // A gateway that was there before may be starting again.
    if !isFirst { plan.connections.patienceWithNobody = plan.connections.giveUp }
    return plan
  }
}
