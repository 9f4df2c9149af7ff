/// The cost of a notification when b of them are written at once: F/b + V.
///
/// F is the cost of a write (the system call, the TLS record, the wake-up), V the cost of each notification.
public struct BatchCost: Sendable, Equatable {
  /// A measured cost at one batch size.
  public struct Point: Sendable, Equatable {
    /// The mean number of notifications of a write, at least 1.
    public var batch: Double
    /// The cost of one notification, in any unit of time or processor time.
    public var cost: Double
    /// The point's relative weight: a point based on ten times the measurements has ten times the weight.
    public var weight: Double

    public init(batch: Double, cost: Double, weight: Double = 1) {
      self.batch = batch
      self.cost = cost
      self.weight = weight
    }
  }

  /// Why no law can be fitted.
  public enum Problem: Error, Sendable, Equatable {
    /// Two unknowns need points at two different batch sizes at least.
    case tooFewPoints
    /// A batch below 1, a cost or weight that is not positive, or a value that is not a number.
    case badPoint
  }

  /// F, in the unit of the points; never negative.
  public let perWrite: Double
  /// V, in the unit of the points; never negative.
  public let perNotification: Double
  /// The half widths of the 95 % confidence intervals of F and V (Student's t), also of a parameter that is held at 0;
  /// `nil` unless there are more points than unknowns.
  public let perWriteHalfWidth: Double?
  public let perNotificationHalfWidth: Double?
  /// The share of the variance that the law explains, at most 1.
  public let rSquared: Double

  /// The least R² of a conclusive fit: below it, points differ by more than batches explain, and F and V are
  /// meaningless.
  package static let leastRSquared = 0.9

  /// Whether F and V are reliable: their errors are known, and they explain most of the variance.
  public var isConclusive: Bool { perWriteHalfWidth != nil && rSquared >= Self.leastRSquared }

  init(
    perWrite: Double, perNotification: Double, halfWidths: (write: Double, notification: Double)?, rSquared: Double
  ) {
    (self.perWrite, self.perNotification, self.rSquared) = (perWrite, perNotification, rSquared)
    (perWriteHalfWidth, perNotificationHalfWidth) = (halfWidths?.write, halfWidths?.notification)
  }

  /// Fits the law by least squares of the relative errors: the costs of small batches are many times the costs of large
  /// batches, and would dominate otherwise.
  public init(_ points: [Point]) throws(Problem) {
    guard
      points.allSatisfy({
        $0.batch >= 1 && $0.batch.isFinite && $0.cost > 0 && $0.cost.isFinite && $0.weight > 0 && $0.weight.isFinite
      })
    else { throw .badPoint }
    guard Set(points.map(\.batch)).count >= 2 else { throw .tooFewPoints }
    var system = LinearSystem(size: 2)
    for point in points {
      system.add([1 / point.batch, 1], point.cost, weight: point.weight / (point.cost * point.cost))
    }
    guard let solved = system.solved() else { throw .tooFewPoints }
    if solved[0] < 0 {
      (perWrite, perNotification) = (0, Self.best(points) { _ in 1 })
    } else if solved[1] < 0 {
      (perWrite, perNotification) = (Self.best(points) { 1 / $0 }, 0)
    } else {
      (perWrite, perNotification) = (solved[0], solved[1])
    }
    let (write, each) = (perWrite, perNotification)
    let errors = FitErrors(
      points.map { point in
        let fitted = write / point.batch + each
        return FitErrors.Row(
          coefficients: [1 / point.batch, 1], weight: point.weight / (point.cost * point.cost), fitted: fitted,
          residual: point.cost - fitted)
      })
    (perWriteHalfWidth, perNotificationHalfWidth) = (errors?.halfWidths[0], errors?.halfWidths[1])
    rSquared = explained(
      points.map(\.cost), weights: points.map(\.weight),
      squaredError: points.reduce(0) {
        let difference = $1.cost - (write / $1.batch + each)
        return $0 + $1.weight * difference * difference
      })
  }

  /// The cost of one notification among `batch`, in the unit of the points; `nil` below 1.
  public func cost(batch: Double) -> Double? { batch >= 1 ? perWrite / batch + perNotification : nil }

  /// The factor of a single term that fits best.
  private static func best(_ points: [Point], _ term: (Double) -> Double) -> Double {
    let products = points.reduce(0) { $0 + $1.weight * term($1.batch) / $1.cost }
    let squares = points.reduce(0) { $0 + $1.weight * term($1.batch) * term($1.batch) / ($1.cost * $1.cost) }
    return squares > 0 ? products / squares : 0
  }
}
