import Measurement

/// The analysis of a capacity run's trials: the laws that the trials follow, each checked against one more measurement.
public struct CapacityAnalysis: Sendable, Equatable, Encodable {
  /// A prediction and its measurement.
  public struct Check: Sendable, Equatable, Encodable {
    /// The number of connections, or the share of errors.
    public var at: Double
    /// The predicted throughput, in accepted notifications a second.
    public var predictedPerS: Double
    /// The measured throughput, in accepted notifications a second.
    public var measuredPerS: Double
    /// The relative deviation of the measurement from the prediction: 0.05 is 5 % more.
    public var deviation: Double { predictedPerS > 0 ? measuredPerS / predictedPerS - 1 : 0 }

    private enum CodingKeys: String, CodingKey { case at, predictedPerS, measuredPerS, deviation }

    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(at, forKey: .at)
      try container.encode(predictedPerS, forKey: .predictedPerS)
      try container.encode(measuredPerS, forKey: .measuredPerS)
      try container.encode(deviation, forKey: .deviation)
    }
  }

  /// The universal scalability law over connections, see `ScalabilityFit`.
  public struct Scalability: Sendable, Equatable, Encodable {
    /// γ, in notifications a second.
    public var gamma: Double
    /// α, not negative.
    public var alpha: Double
    /// β, not negative.
    public var beta: Double
    /// The standard errors of γ, α and β in the full law.
    public var gammaError: Double?
    public var alphaError: Double?
    public var betaError: Double?
    /// The half widths of the 95 % confidence intervals of γ, α and β.
    public var gammaHalfWidth: Double?
    public var alphaHalfWidth: Double?
    public var betaHalfWidth: Double?
    /// The share of the variance that the law explains.
    public var rSquared: Double
    /// The number of points.
    public var points: Int
    /// The number of connections above which throughput falls; absent if the trials do not show it, or if it exceeds
    /// twice the largest number measured.
    public var peak: Double?
    /// The check by a trial that the fit does not include.
    public var check: Check?
  }

  /// The goodput law of one connection, see `GoodputLaw`: the accepted rate as a function of the share of errors.
  public struct Goodput: Sendable, Equatable, Encodable {
    /// Notifications a second while nothing is rejected.
    public var streamingPerS: Double
    /// The mean number of notifications that a rejection discards.
    public var discardedPerError: Double
    /// Milliseconds from an error response to the first notification on the next connection.
    public var downtimeMs: Double
    /// The share of errors without deliberate faults, from 0 to 1.
    public var errorShare: Double
    public var check: Check?
  }

  /// The cost of notifications of this generator, in microseconds of processor time, see `BatchCost`.
  public struct Batching: Sendable, Equatable, Encodable {
    /// F: the cost of a write.
    public var perWriteUs: Double
    /// V: the cost of each notification.
    public var perNotificationUs: Double
    /// The half widths of the 95 % confidence intervals of F and V.
    public var perWriteHalfWidthUs: Double?
    public var perNotificationHalfWidthUs: Double?
    /// The share of the variance that the law explains.
    public var rSquared: Double
    /// The reason why F and V are inconclusive; absent if they are shown.
    public var notShown: String?
  }

  /// A trial without a rate limit, over the connections of the search, in which more was accepted than the search found
  /// to be sustained.
  public struct Contradiction: Sendable, Equatable, Encodable {
    /// The trial's number.
    public var trial: Int
    /// Accepted notifications a second.
    public var acceptedPerS: Double
  }

  /// The trial that contradicts the search's result; `nil`: none does.
  public private(set) var contradiction: Contradiction?
  /// The law over connections; `nil` if the trials do not determine it.
  public private(set) var scalability: Scalability?
  /// The law over shares of errors; `nil` if the trials do not determine it.
  public private(set) var goodput: Goodput?
  /// The law over batch sizes; `nil` if the trials do not determine it.
  public private(set) var batching: Batching?
  /// The plan of a campaign; `nil` when no rate passed.
  public private(set) var plan: CampaignPlan?
  /// The demand over the capacity; `nil` without a demand, and when no rate passed.
  public private(set) var demand: DemandForecast?
  /// How long connections take to be back when all open at once: of the numbers that were asked for, otherwise of
  /// those that were tried; `nil` when neither was.
  public private(set) var storms: [StormForecast]?
  /// When the last user has the campaign; `nil` without a campaign, or a fleet of devices.
  public private(set) var devices: DeviceForecast?
  /// Sentences about what makes the conclusions doubtful.
  public private(set) var warnings: [String] = []

  private enum CodingKeys: String, CodingKey {
    case contradiction, scalability, goodput, batching
    case plan = "campaign"
    case demand, storms, devices, warnings
  }

  /// Computes all conclusions from the document's trials.
  public init(_ document: CapacityDocument) {
    let trials = document.trials
    let free = Self.free(trials)
    fitScalability(free)
    fitGoodput(free)
    fitBatching(free)
    plan = CampaignPlan(document, self)
    let storms = StormForecast.all(of: document)
    if !storms.isEmpty { self.storms = storms }
    devices = DeviceForecast(document, plan)
    findContradiction(document, free)
    let voids = trials.count { $0.verdict == .void && !$0.wasInterrupted }
    if voids > 0 {
      let verb = voids == 1 ? "is" : "are"
      warnings.append(
        "\(voids) of \(trials.count) trials \(verb) void: the generator had too little processor time or stalled")
    }
    switch document.ending {
    case .found: break
    case .generatorLimited:
      warnings.append("the gateway may sustain more: the generator was too slow to test it")
    case .unsettled: warnings.append("the search was not completed: the rate may not be the highest")
    case .nothingPassed: warnings.append("no rate passed; see the reasons of the trials")
    case .interrupted: warnings.append("it was interrupted: the search was not completed")
    }
    if document.ending != .interrupted, trials.contains(where: \.wasInterrupted) {
      warnings.append("it was interrupted after the search: further trials are missing")
    }
    let disturbed = free.count { ($0.waitedShare ?? 0) > 0.1 || ($0.stalledS ?? 0) > 0.01 * $0.measuredS }
    if disturbed > 0 {
      warnings.append(
        "\(disturbed) of \(free.count) bursts were disturbed by other processes or by stalls of the generator, so laws and their checks may be inaccurate"
      )
    }
    let busy = free.filter { ($0.cpuCores ?? 0) > 0.9 * Double($0.availableCores) }
    if !busy.isEmpty {
      warnings.append(
        "\(busy.count) of \(free.count) bursts were limited by the generator: they may show the law of the generator, not the gateway's"
      )
    }
    demand = DemandForecast(document, self)
  }

  /// Trials as fast as possible that took anything. A storm is short, and says nothing about rates.
  private static func free(_ trials: [CapacityTrial]) -> [CapacityTrial] {
    trials.filter {
      $0.offeredPerS == nil && $0.verdict == .measured && $0.acceptedPerS > 0 && $0.purpose != .storm
    }
  }

  // MARK: the search

  private mutating func findContradiction(_ document: CapacityDocument, _ free: [CapacityTrial]) {
    guard let sustained = document.sustainedPerS, let upper = document.sustainedRange?.upperPerS,
      let search = document.trials.first(where: { $0.offeredPerS != nil })
    else { return }
    let alike = free.filter {
      $0.connections == search.connections && $0.batch == search.batch && $0.faultShare == search.faultShare
    }
    guard let most = alike.max(by: { $0.acceptedPerS < $1.acceptedPerS }), most.acceptedPerS > upper else { return }
    contradiction = Contradiction(trial: most.number, acceptedPerS: most.acceptedPerS)
    warnings.append(
      "trial \(most.number) (\(most.purpose.rawValue)) took \(Unit.perSecond.text(most.acceptedPerS)) over the same connections as fast as possible: the search's limit, \(Unit.perSecond.text(sustained)), is doubtful"
    )
  }

  // MARK: connections

  /// Bursts that differ in nothing but their connections, the check apart.
  package static func scaling(_ trials: [CapacityTrial]) -> (fit: [CapacityTrial], check: CapacityTrial?) {
    let free = trials.filter { $0.offeredPerS == nil && $0.verdict == .measured && $0.faultShare == 0 }
    let fit = free.filter { $0.purpose == .connections && $0.acceptedPerS > 0 }
    return (fit, free.last { $0.purpose == .check && $0.acceptedPerS > 0 })
  }

  /// The scalability law over connections; `nil` with fewer than three different numbers of connections.
  package static func scalabilityFit(_ trials: [CapacityTrial]) -> ScalabilityFit? {
    try? ScalabilityFit(scaling(trials).fit.map { ScalabilityFit.Point(Double($0.connections), $0.acceptedPerS) })
  }

  private mutating func fitScalability(_ free: [CapacityTrial]) {
    guard let fit = Self.scalabilityFit(free) else { return }
    scalability = Scalability(
      gamma: fit.gamma, alpha: fit.alpha, beta: fit.beta, gammaError: fit.gammaError, alphaError: fit.alphaError,
      betaError: fit.betaError, gammaHalfWidth: fit.gammaHalfWidth, alphaHalfWidth: fit.alphaHalfWidth,
      betaHalfWidth: fit.betaHalfWidth, rSquared: fit.rSquared, points: fit.points, peak: fit.peak)
    if let trial = Self.scaling(free).check, let predicted = fit.throughput(at: Double(trial.connections)) {
      scalability?.check = Check(
        at: Double(trial.connections), predictedPerS: predicted, measuredPerS: trial.acceptedPerS)
    }
    if fit.hasFewPoints {
      warnings.append(
        "the scalability law is fitted to \(fit.points) points; fewer than \(ScalabilityFit.fewPoints) say little"
      )
    }
  }

  // MARK: errors

  /// The law of one connection, from measurements with and without intentional errors; `nil` without a trial with
  /// errors.
  package static func goodputLaw(_ trials: [CapacityTrial]) -> (law: GoodputLaw, base: CapacityTrial)? {
    let free = Self.free(trials)
    // The first trial with intentional errors and its counterpart without; otherwise any with the same connections
    // and batch.
    guard let withErrors = free.first(where: { $0.purpose == .errors && $0.faultShare > 0 }) ?? free.first else {
      return nil
    }
    let without = free.filter {
      $0.faultShare == 0 && $0.connections == withErrors.connections && $0.batch == withErrors.batch
    }
    guard let base = without.first(where: { $0.purpose == .errors }) ?? without.first else { return nil }
    let known = (base == withErrors ? [base] : [base, withErrors]).filter {
      $0.errors > 0 && $0.lossMean != nil && $0.recoverMeanMs != nil
    }
    let errors = known.reduce(0) { $0 + $1.errors }
    guard errors > 0 else { return nil }
    let discarded = known.reduce(0) { $0 + Double($1.errors) * ($1.lossMean ?? 0) } / Double(errors)
    let downtime = known.reduce(0) { $0 + Double($1.errors) * ($1.recoverMeanMs ?? 0) / 1e3 } / Double(errors)
    // The ceiling is the fastest trial with the same connections and batch, whatever its errors.
    let ceiling = free.filter { $0.connections == base.connections && $0.batch == base.batch }.map(\.acceptedPerS).max()
    func capped(_ rate: Double, _ downtime: Double) -> GoodputLaw? {
      var law = GoodputLaw(streamingRate: rate, discarded: discarded, downtime: downtime)
      law?.ceiling = ceiling
      return law
    }
    // 1/G = 1/R + p (L/R + T) is a line over p: two points give R and the total cost of an error, of which the time
    // from reading it to the next sending is only the part visible to the sender.
    let step = withErrors.errorShare - base.errorShare
    let (slow, fast) = (
      Double(withErrors.connections) / withErrors.acceptedPerS, Double(base.connections) / base.acceptedPerS
    )
    if step > 0, slow > fast {
      let cost = (slow - fast) / step
      let perNotification = fast - base.errorShare * cost
      let rest = cost - discarded * perNotification
      if perNotification > 0, rest >= 0, let law = capped(1 / perNotification, rest) { return (law, base) }
    }
    // Notifications written while connections were up.
    let seconds = base.settleS + base.measuredS + base.drainS
    let up = Double(base.connections) * seconds - Double(base.errors) * downtime
    guard up > 0.1 * seconds else { return nil }
    return capped(Double(base.sendings.accepted + base.sendings.discarded) / up, downtime).map { ($0, base) }
  }

  private mutating func fitGoodput(_ free: [CapacityTrial]) {
    guard let (law, base) = Self.goodputLaw(free) else { return }
    goodput = Goodput(
      streamingPerS: law.streamingRate, discardedPerError: law.discarded, downtimeMs: law.downtime * 1e3,
      errorShare: base.errorShare)
    // The check is the last trial with errors, unless the law is computed from it.
    let errors = free.filter { $0.purpose == .errors && $0.faultShare > 0 }
    if let trial = errors.last, errors.count > 1 {
      goodput?.check = Check(
        at: trial.errorShare,
        predictedPerS: law.goodput(errorShare: trial.errorShare, connections: trial.connections, cores: nil),
        measuredPerS: trial.acceptedPerS)
    }
  }

  // MARK: batches

  package static func batchPoints(_ trials: [CapacityTrial]) -> [BatchCost.Point] {
    trials.filter { $0.purpose == .batch && $0.verdict == .measured }.compactMap { trial in
      guard let size = trial.perWriteMean, let cost = trial.cpuPerNotificationUs, size >= 1, cost > 0 else {
        return nil
      }
      return BatchCost.Point(batch: size, cost: cost)
    }
  }

  private mutating func fitBatching(_ free: [CapacityTrial]) {
    guard let fit = try? BatchCost(Self.batchPoints(free)) else { return }
    batching = Batching(
      perWriteUs: fit.perWrite, perNotificationUs: fit.perNotification, perWriteHalfWidthUs: fit.perWriteHalfWidth,
      perNotificationHalfWidthUs: fit.perNotificationHalfWidth, rSquared: fit.rSquared, notShown: fit.reasonToHide)
  }
}
