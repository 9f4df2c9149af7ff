import Measurement

/// Finds the highest rate that passes: chooses the next trial from the results of the earlier ones.
///
/// The search begins near the rate of a burst and takes growing steps up or down until one trial passed and one failed;
/// then it bisects the logarithm of the rate until the two rates are a step (`precision`) apart. A long trial has to
/// confirm the passing rate, and a long trial a step above this rate has to fail; if not, the short trials were wrong,
/// and the search continues from there.
///
/// A failed trial is repeated: outside disturbances make trials fail, never pass, so only a rate that failed twice
/// bounds the search, and a repeated trial that passes counts as passed. A void trial is repeated up to `retries`
/// times; then its rate counts as untestable. The uncertainty of the result follows from all trials (`range`).
///
/// The search is a value without clock or sockets:
///
///     var search = CapacitySearch(near: burst)
///     while let trial = search.next { search.note(run(trial)) }
///     search.ending
public struct CapacitySearch: Sendable {
  /// A trial to run next.
  public struct Trial: Sendable, Equatable {
    /// The purpose of the trial: a step of the search, a long trial at the found rate, or a long one a step above it.
    public enum Kind: Sendable { case step, confirmation, above }

    /// Notifications a second.
    public var rate: Double
    public var kind: Kind
    /// Whether the trial has the length of a confirmation.
    public var isLong: Bool { kind != .step }

    public init(rate: Double, kind: Kind) {
      self.rate = rate
      self.kind = kind
    }
  }

  /// The outcome of a trial; `void`: no conclusion about the gateway is possible.
  public enum Outcome: Sendable { case passed, failed, void }

  /// How the search ended; rates are notifications a second.
  public enum Ending: Sendable, Equatable {
    /// The rate is confirmed, and the rate a step above it failed.
    case found(Double)
    /// The rate is confirmed; higher rates could not be tested with this generator.
    case generatorLimited(Double)
    /// Trials ran out; the rate is the best that passed, which need not be confirmed.
    case unsettled(Double?)
    /// Not even the lowest rate passed.
    case nothingPassed
  }

  /// The relative distance from the result to a rate that fails: 0.03 is 3 %. At least 0.0001.
  public let precision: Double
  /// The number of trials, repeated ones included, after which the search ends.
  public let maximumTrials: Int
  /// How often a void trial is repeated.
  public let retries: Int
  /// How the search ended; `nil` while it continues.
  public private(set) var ending: Ending?
  /// The number of trials so far.
  public private(set) var trials = 0

  /// The highest that passed and the lowest that did not, as far as both are believed.
  private var low: Double?
  private var high: Double?
  /// The upper end is not a failure of the gateway.
  private var isHighVoid = false
  private let lowest: Double
  private var stride: Double
  private var voids = 0
  /// The trial `next` has failed once.
  private var isDoubted = false
  /// All rates that passed and that no later failure, at the same rate or a lower one, has contradicted.
  private var passes: Set<Double> = []
  private var evidence: [SustainedRange.Evidence] = []
  private var current: Trial

  /// The highest rate that passed so far, in notifications a second; `nil` when later failures contradict all passes. A
  /// failed trial that is being repeated does not count.
  public var passed: Double? { isDoubted ? passes.filter { $0 < current.rate }.max() : passes.max() }

  /// The result so far, in notifications a second; `nil` when no rate passed.
  public var sustained: Double? {
    switch ending {
    case .found(let rate), .generatorLimited(let rate): rate
    case .unsettled(let rate): rate
    case .nothingPassed: nil
    case nil: passed
    }
  }

  /// The range of rates in which the gateway's limit lies; `nil` when no rate has passed.
  public var range: SustainedRange? {
    guard let sustained else { return nil }
    let isBounded = if case .found = ending { true } else { false }
    return SustainedRange(evidence, around: sustained, step: precision, isBounded: isBounded)
  }

  /// - Parameters:
  ///   - burst: notifications a second that the gateway accepted for a short time; more than 0.
  ///   - precision: above 0.
  ///   - maximumTrials: at least 1.
  ///   - retries: how often a void trial is repeated.
  public init(near burst: Double, precision: Double = 0.03, maximumTrials: Int = 40, retries: Int = 2) {
    self.precision = max(1e-4, precision)
    self.maximumTrials = maximumTrials
    self.retries = retries
    lowest = burst / 10_000
    stride = 2 * self.precision
    // Most gateways sustain nearly what they take for a while.
    current = Trial(rate: burst / (1 + self.precision), kind: .step)
  }

  /// The next trial; `nil` at the end.
  public var next: Trial? { ending == nil ? current : nil }

  /// Takes the outcome of the trial `next`.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the trial.
  ///   - held: the proven rate in notifications a second, if lower than the offered one.
  public mutating func note(_ outcome: Outcome, held: Double? = nil) {
    guard ending == nil else { return }
    trials += 1
    if outcome != .void {
      evidence.append(
        SustainedRange.Evidence(
          offeredPerS: current.rate, heldPerS: held ?? current.rate, isLong: current.isLong,
          hasPassed: outcome == .passed))
    }
    if outcome == .void, voids < retries {
      voids += 1
    } else if outcome == .failed, !isDoubted {
      (isDoubted, voids) = (true, 0)
    } else {
      (voids, isDoubted) = (0, false)
      settle(outcome)
    }
    if ending == nil, trials >= maximumTrials { ending = .unsettled(passed) }
  }

  /// The next state of the search when the trial is not repeated.
  private mutating func settle(_ outcome: Outcome) {
    switch outcome {
    case .passed: passes.insert(current.rate)
    case .failed: passes = passes.filter { $0 < current.rate }
    case .void: break
    }
    switch (current.kind, outcome) {
    case (.step, .passed): raise()
    case (.step, _): lower(isVoid: outcome == .void)
    case (.confirmation, .passed):
      current = Trial(rate: current.rate * (1 + precision), kind: .above)
    case (.confirmation, _):
      // Short trials were too lenient: their passes are discarded.
      (low, stride) = (nil, precision)
      lower(isVoid: outcome == .void)
    case (.above, .passed):
      (high, stride) = (nil, precision)
      raise()
    case (.above, _):
      ending = outcome == .void ? .generatorLimited(low ?? 0) : .found(low ?? 0)
    }
  }

  private mutating func raise() {
    low = current.rate
    if let high, high <= current.rate { self.high = nil }
    choose()
  }

  private mutating func lower(isVoid: Bool) {
    high = current.rate
    isHighVoid = isVoid
    if let low, low >= current.rate { self.low = nil }
    choose()
  }

  private mutating func choose() {
    switch (low, high) {
    case (let low?, let high?):
      // A little more than a step, so that rounding does not make a trial for nothing.
      if high <= low * (1 + precision) * (1 + 1e-9) {
        current = Trial(rate: low, kind: .confirmation)
      } else {
        current = Trial(rate: (low * high).squareRoot(), kind: .step)
      }
    case (let low?, nil):
      current = Trial(rate: low * (1 + stride), kind: .step)
      stride *= 2
    case (nil, let high?):
      current = Trial(rate: high / (1 + stride), kind: .step)
      stride *= 2
      if current.rate < lowest { ending = isHighVoid ? .unsettled(nil) : .nothingPassed }
    case (nil, nil): break
    }
  }

  /// The numbers of short and of long trials of an undisturbed search, to estimate its time.
  public static func estimate(precision: Double) -> (short: Int, long: Int) {
    // A gateway that sustains nearly its burst rate, within a step or two.
    var search = CapacitySearch(near: 1, precision: precision)
    var (short, long) = (0, 0)
    while let trial = search.next {
      if trial.isLong { long += 1 } else { short += 1 }
      search.note(trial.rate <= 0.98 ? .passed : .failed)
    }
    return (short, long)
  }
}
