import Measurement

/// Runs the trials of a search for capacity, then the trials of the sweeps, one after the other, and keeps the results.
///
/// The function that runs a load is an argument, so a search needs neither sockets nor a clock:
///
/// ```swift
/// let stop = LoadStop()
/// var runner = CapacityRunner(CapacityPlan(), load: plan, environment: environment, stop: stop) { plan in
///   let load = try LoadRunner(plan, tls: context)
///   stop.begin(load)
///   return try await load.run()
/// }
/// try await runner.run()
/// runner.sustained
/// ```
///
/// The results so far are available even after an error was thrown.
public struct CapacityRunner: Sendable {
  /// Runs a load to its end.
  public typealias Run = @Sendable (LoadPlan) async throws -> LoadOutcome

  /// The outcome of a trial: of this process, or the result of processes that others have started.
  package enum Measured: Sendable {
    case outcome(LoadOutcome)
    case result(RunResult)
  }

  /// A trial was ended by a stop, and has no counts.
  package struct Interruption: Error {
    package init() {}
  }

  /// How the search ended.
  public enum Ending: Sendable {
    /// The rate passed a long trial, and the rate a step above it failed twice.
    case found
    /// The rate passed; the generator was too slow to test higher rates.
    case generatorLimited
    /// Trials ran out; the rate passed, but need not be confirmed.
    case unsettled
    /// Not even the lowest rate passed.
    case nothingPassed
    /// The search did not end.
    case interrupted
  }

  private let plan: CapacityPlan
  private let limits: TrialLimits
  private let load: LoadPlan
  private let environment: Environment
  private let stop: LoadStop
  private let measureLoad: @Sendable (LoadPlan) async throws -> Measured
  private let note: @Sendable (CapacityTrial) -> Void
  private var search: CapacitySearch?

  /// The trials so far, in order: the search's, then the sweeps'.
  public private(set) var trials: [CapacityTrial] = []
  /// How the search ended; `interrupted` until then.
  public private(set) var ending = Ending.interrupted
  /// Notifications a second that are sustained; `nil` when no rate passed.
  public var sustained: Double? { search?.sustained }
  /// The range in which the gateway's limit lies; `nil` when no rate passed.
  public var range: SustainedRange? { search?.range }

  /// Prepares a search without running a trial.
  ///
  /// - Parameters:
  ///   - plan: the trials and their limits.
  ///   - load: the common settings of all trials.
  ///   - environment: the environment of this process.
  ///   - stop: ends the running trial, which then is void, and prevents further trials.
  ///   - run: runs one load to its end.
  ///   - note: called with each trial that has ended.
  public init(
    _ plan: CapacityPlan, load: LoadPlan, environment: Environment, stop: LoadStop = LoadStop(),
    run: @escaping Run, note: @escaping @Sendable (CapacityTrial) -> Void = { _ in }
  ) {
    self.init(
      plan, load: load, environment: environment, stop: stop, measure: { .outcome(try await run($0)) }, note: note)
  }

  /// Prepares a search whose trials may be made by others.
  ///
  /// - Parameter measure: makes one trial; throws an `Interruption` when a stop ended it before it had a result.
  package init(
    _ plan: CapacityPlan, load: LoadPlan, environment: Environment, stop: LoadStop,
    measure: @escaping @Sendable (LoadPlan) async throws -> Measured,
    note: @escaping @Sendable (CapacityTrial) -> Void = { _ in }
  ) {
    (self.plan, self.load, self.environment, self.stop) = (plan, load, environment, stop)
    (measureLoad, self.note) = (measure, note)
    var limits = plan.limits
    // Half a step of the search.
    limits.drift = plan.precision / 2
    self.limits = limits
  }

  /// Runs all trials, or the trials up to an interrupted one.
  ///
  /// - Throws: what running a load throws, and `LoadRunner.Failure` for an obstacle that no other trial would overcome.
  public mutating func run() async throws {
    try await makeSearch()
    for request in plan.sweeps where !stop.isRequested { _ = try await measure(request) }
  }

  private mutating func makeSearch() async throws {
    guard let burst = try await measure(TrialRequest(purpose: .burst, seconds: plan.trial)) else { return }
    guard burst.acceptedPerS > 0 else {
      ending = .nothingPassed
      return
    }
    var search = CapacitySearch(
      near: burst.acceptedPerS, precision: plan.precision, maximumTrials: plan.maximumTrials)
    self.search = search
    while let next = search.next {
      guard let trial = try await make(request(for: next)) else { return }
      search.note(outcome(trial), held: trial.heldPerS)
      self.search = search
    }
    ending =
      switch search.ending {
      case .found: .found
      case .generatorLimited: .generatorLimited
      case .unsettled: .unsettled
      case .nothingPassed, nil: .nothingPassed
      }
  }

  private func request(for next: CapacitySearch.Trial) -> TrialRequest {
    let purpose: CapacityTrial.Purpose =
      switch next.kind {
      case .step: .search
      case .confirmation: .confirm
      case .above: .above
      }
    return TrialRequest(purpose: purpose, seconds: next.isLong ? plan.confirmation : plan.trial, rate: next.rate)
  }

  private func outcome(_ trial: CapacityTrial) -> CapacitySearch.Outcome {
    switch trial.verdict {
    case .passed: .passed
    case .void: .void
    case .failed, .measured: .failed
    }
  }

  /// A trial as fast as possible: repeated when other processes disturbed it; the last attempt counts.
  private mutating func measure(_ request: TrialRequest) async throws -> CapacityTrial? {
    for _ in 0..<Self.retries {
      guard let trial = try await make(request) else { return nil }
      if trial.verdict != .void { return trial }
    }
    return try await make(request, isLast: true)
  }

  private static let retries = 1

  /// `nil` when it was interrupted; it is kept as void with its counts.
  ///
  /// - Parameter isLast: there will be no better one, so it is not void.
  private mutating func make(_ request: TrialRequest, isLast: Bool = false) async throws -> CapacityTrial? {
    guard !stop.isRequested else { return nil }
    let load = request.plan(of: load, settling: plan.settling, isFirst: trials.isEmpty)
    let measured: Measured
    do {
      measured = try await measureLoad(load)
    } catch is Interruption {
      return nil
    }
    let result: RunResult
    var trial: CapacityTrial
    switch measured {
    case .outcome(let outcome):
      if case .permanentFailure(let reason) = outcome.givenUp { throw LoadRunner.Failure.unreachable(reason) }
      result = outcome.result(environment)
      trial = outcome.trial(result)
    case .result(let merged):
      result = merged
      trial = CapacityTrial(merged, of: load)
    }
    (trial.number, trial.purpose) = (trials.count + 1, request.purpose)
    let isInterrupted = stop.isRequested
    if isInterrupted {
      (trial.verdict, trial.reasons) = (.void, [CapacityTrial.interruption])
    } else {
      limits.judge(&trial, thresholds: plan.thresholds.map { $0.judge(result) })
      if isLast, request.rate == nil { trial.verdict = .measured }
      if result.merged?.together == false {
        // Nothing had the rate that was asked for.
        (trial.verdict, trial.reasons) = (.void, ["the segments did not run at the same time"])
      }
    }
    trials.append(trial)
    note(trial)
    return isInterrupted ? nil : trial
  }
}
