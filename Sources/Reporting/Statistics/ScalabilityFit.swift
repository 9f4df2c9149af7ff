/// The universal scalability law X(N) = γN / (1 + α(N − 1) + βN(N − 1)), fitted to measured throughput.
///
/// γ is the throughput at N = 1, α the contention (serialized share), β the coherency cost: with β > 0 throughput is
/// largest at N = √((1 − α)/β), and lower beyond. The fit is by least squares of X itself, with the algorithm of
/// Levenberg and Marquardt from the fit of the law's linear form N/X; α and β are held at 0 when they would be
/// negative. (Gunther, "Guerrilla Capacity Planning", chapters 4 to 6.)
public struct ScalabilityFit: Sendable, Equatable {
  /// A measured throughput at a number of connections.
  public struct Point: Sendable, Equatable, Codable {
    /// N, at least 1.
    public var count: Double
    /// X in any unit, above 0.
    public var throughput: Double

    public init(_ count: Double, _ throughput: Double) {
      self.count = count
      self.throughput = throughput
    }
  }

  /// Why no law can be fitted.
  public enum Problem: Error, Sendable, Equatable {
    /// Three unknowns need measurements at three different N at least.
    case tooFewPoints
    /// N is below 1, a throughput is not positive, or one of these values is not a number.
    case badPoint
    /// No law fits the points.
    case noFit
  }

  /// The number of points below which a fitted law means little for the gateway.
  package static let fewPoints = 6

  /// γ, in the unit of throughput.
  public let gamma: Double
  /// α, not negative.
  public let alpha: Double
  /// β, not negative.
  public let beta: Double
  /// The standard errors of the parameters in the full law, also where α or β is held at 0; `nil` with three points,
  /// which leave no degree of freedom.
  public let gammaError: Double?
  public let alphaError: Double?
  public let betaError: Double?
  /// The half widths of the 95 % confidence intervals of the parameters (Student's t), whether noise is equal at all N
  /// or proportional to throughput; `nil` if the standard errors are.
  public let gammaHalfWidth: Double?
  public let alphaHalfWidth: Double?
  public let betaHalfWidth: Double?
  /// The share of the variance that the law explains, at most 1.
  public let rSquared: Double
  /// The number of points.
  public let points: Int
  /// The largest N that was measured.
  public let largest: Double

  /// Whether there are fewer points than a reliable fit needs: 6.
  public var hasFewPoints: Bool { points < Self.fewPoints }

  /// The N with the largest throughput; `nil` if the points do not determine it: β may as well be 0, or the peak is
  /// beyond twice the largest measured N.
  public var peak: Double? {
    guard let betaHalfWidth, beta > betaHalfWidth else { return nil }
    let peak = max(1, (max(0, 1 - alpha) / beta).squareRoot())
    return peak <= 2 * largest ? peak : nil
  }

  /// X(N); `nil` beyond twice the largest measured N, where the fit is unreliable.
  public func throughput(at count: Double) -> Double? {
    guard count >= 1, count <= 2 * largest else { return nil }
    return Self.value([gamma, alpha, beta], count)
  }

  /// Fits the law to points at three different N or more.
  public init(_ points: [Point]) throws(Problem) {
    guard
      points.allSatisfy({ $0.count >= 1 && $0.count <= 1e6 && $0.throughput > 0 && $0.throughput <= 1e15 })
    else { throw .badPoint }
    guard Set(points.map(\.count)).count >= 3 else { throw .tooFewPoints }
    // In units of the largest throughput, so that all steps have similar sizes.
    let unit = points.map(\.throughput).max() ?? 1
    let scaled = points.map { Point($0.count, $0.throughput / unit) }
    guard let start = Self.linearStart(scaled) else { throw .noFit }
    var best: (values: [Double], error: Double)?
    // Each subset of α and β that is held at 0 is a smaller problem; the best feasible solution wins.
    for held in [[], [2], [1], [1, 2]] as [Set<Int>] {
      var from = start
      for index in held { from[index] = 0 }
      guard let (values, error) = Self.descend(scaled, from: from, held: held), values[0] > 0, values[1] >= 0,
        values[2] >= 0, error < (best?.error ?? .infinity)
      else { continue }
      best = (values, error)
    }
    guard let best else { throw .noFit }
    (gamma, alpha, beta) = (best.values[0] * unit, best.values[1], best.values[2])
    self.points = points.count
    largest = points.map(\.count).max() ?? 1
    rSquared = explained(scaled.map(\.throughput), squaredError: best.error)
    let errors = FitErrors(
      scaled.map { point in
        let value = Self.value(best.values, point.count)
        return FitErrors.Row(
          coefficients: Self.slopes(best.values, point.count), fitted: value, residual: point.throughput - value)
      })
    (gammaError, alphaError, betaError) = (
      errors.map { $0.standard[0] * unit }, errors?.standard[1], errors?.standard[2]
    )
    (gammaHalfWidth, alphaHalfWidth, betaHalfWidth) = (
      errors.map { $0.halfWidths[0] * unit }, errors?.halfWidths[1], errors?.halfWidths[2]
    )
  }

  private static func value(_ parameters: [Double], _ count: Double) -> Double {
    parameters[0] * count / (1 + parameters[1] * (count - 1) + parameters[2] * count * (count - 1))
  }

  private static func squaredError(_ points: [Point], _ parameters: [Double]) -> Double {
    points.reduce(0) {
      let difference = $1.throughput - value(parameters, $1.count)
      return $0 + difference * difference
    }
  }

  /// N/X = a + b(N − 1) + cN(N − 1) with a = 1/γ, b = α/γ, c = β/γ. Where X is large its error shows least in N/X, so a
  /// point weighs as much as it does in X itself.
  private static func linearStart(_ points: [Point]) -> [Double]? {
    var system = LinearSystem(size: 3)
    for point in points {
      let weight = (point.throughput * point.throughput) / point.count
      system.add(
        [1, point.count - 1, point.count * (point.count - 1)], point.count / point.throughput,
        weight: weight * weight)
    }
    guard let solved = system.solved(), solved[0] > 0 else {
      // The solution is not unique or not sensible: begin with a line through the steepest point.
      return points.map { $0.throughput / $0.count }.max().map { [$0, 0.01, 1e-6] }
    }
    return [1 / solved[0], max(0, solved[1] / solved[0]), max(0, solved[2] / solved[0])]
  }

  /// The normal equations of one step, for the free parameters.
  private static func system(_ points: [Point], _ parameters: [Double], _ free: [Int]) -> LinearSystem {
    var system = LinearSystem(size: free.count)
    for point in points {
      let slopes = slopes(parameters, point.count)
      system.add(free.map { slopes[$0] }, point.throughput - value(parameters, point.count))
    }
    return system
  }

  /// The derivatives of X(N) by each parameter.
  private static func slopes(_ parameters: [Double], _ count: Double) -> [Double] {
    let value = value(parameters, count)
    let share = value * value / (parameters[0] * count)
    return [value / parameters[0], -share * (count - 1), -share * count * (count - 1)]
  }

  private static func descend(
    _ points: [Point], from start: [Double], held: Set<Int>
  ) -> (values: [Double], error: Double)? {
    let free = (0..<3).filter { !held.contains($0) }
    var parameters = start
    var error = squaredError(points, parameters)
    var damping = 1e-3
    for _ in 0..<500 {
      var system = system(points, parameters, free)
      for index in free.indices { system.matrix[index][index] *= 1 + damping }
      guard let step = system.solved() else { return (parameters, error) }
      var next = parameters
      for (place, index) in free.enumerated() { next[index] += step[place] }
      let nextError = squaredError(points, next)
      if next[0] > 0, nextError.isFinite, nextError <= error {
        let gain = error - nextError
        (parameters, error) = (next, nextError)
        damping = max(1e-12, damping / 10)
        if gain <= 1e-16 * error || error == 0 { break }
      } else {
        damping *= 10
        if damping > 1e12 { break }
      }
    }
    return error.isFinite ? (parameters, error) : nil
  }
}
