/// The errors of the parameters of a least-squares fit.
///
/// Few measurements underestimate the noise, so two models of noise are used, and the larger error counts: weighted
/// noise of equal size at all points, and noise proportional to the fitted value. All parameters count as free,
/// including those held at a bound, which would make the others seem better known than they are.
struct FitErrors {
  /// One measurement: the coefficients of the parameters (their slopes, in a nonlinear law), its weight, the fitted
  /// value, and the residual.
  struct Row {
    var coefficients: [Double]
    var weight = 1.0
    var fitted: Double
    var residual: Double
  }

  /// Standard errors by the first view.
  let standard: [Double]
  /// The parameters are within these distances with 95 % confidence (Student's t), by the wider view.
  let halfWidths: [Double]

  /// `nil` unless there are more rows than parameters, and the parameters are identifiable.
  init?(_ rows: [Row]) {
    guard let size = rows.first?.coefficients.count, rows.count > size else { return nil }
    var system = LinearSystem(size: size)
    for row in rows { system.add(row.coefficients, row.residual, weight: row.weight) }
    guard let inverse = system.inverse() else { return nil }
    let degrees = Double(rows.count - size)
    let variance = rows.reduce(0) { $0 + $1.weight * $1.residual * $1.residual } / degrees
    let relative = rows.reduce(0) {
      let share = $1.fitted == 0 ? 0 : $1.residual / $1.fitted
      return $0 + share * share
    }
    let bound = Distributions.studentBound(0.95, degrees: rows.count - size)
    var (standard, halfWidths): ([Double], [Double]) = ([], [])
    for (index, column) in inverse.enumerated() {
      let equal = variance * max(0, column[index])
      let proportional = rows.reduce(0) {
        let influence = $1.weight * zip(column, $1.coefficients).reduce(0) { $0 + $1.0 * $1.1 } * $1.fitted
        return $0 + influence * influence
      }
      standard.append(equal.squareRoot())
      halfWidths.append(bound * max(equal, proportional * relative / degrees).squareRoot())
    }
    guard halfWidths.allSatisfy(\.isFinite) else { return nil }
    (self.standard, self.halfWidths) = (standard, halfWidths)
  }
}
