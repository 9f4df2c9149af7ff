/// A small system of linear equations, as least squares makes them.
struct LinearSystem {
  /// Symmetric.
  var matrix: [[Double]]
  var vector: [Double]

  init(size: Int) {
    matrix = [[Double]](repeating: [Double](repeating: 0, count: size), count: size)
    vector = [Double](repeating: 0, count: size)
  }

  /// Adds an equation Σ coefficient · unknown = value to the normal equations.
  mutating func add(_ coefficients: [Double], _ value: Double, weight: Double = 1) {
    for row in coefficients.indices {
      for column in coefficients.indices { matrix[row][column] += weight * coefficients[row] * coefficients[column] }
      vector[row] += weight * coefficients[row] * value
    }
  }

  /// The solution, by elimination with pivoting; `nil` if it is not unique.
  func solved() -> [Double]? { solved(vector) }

  func solved(_ vector: [Double]) -> [Double]? {
    var (matrix, vector) = (matrix, vector)
    let size = vector.count
    // Unknowns differ by orders of magnitude, so a pivot is judged against its own row.
    let scales = (0..<size).map { row in matrix[row].map(abs).max() ?? 0 }
    guard scales.allSatisfy({ $0 > 0 && $0.isFinite }) else { return nil }
    for column in 0..<size {
      guard let pivot = (column..<size).max(by: { abs(matrix[$0][column]) < abs(matrix[$1][column]) }),
        abs(matrix[pivot][column]) > 1e-13 * scales[column]
      else { return nil }
      matrix.swapAt(pivot, column)
      vector.swapAt(pivot, column)
      for row in column + 1..<max(size, column + 1) {
        let factor = matrix[row][column] / matrix[column][column]
        for place in column..<size { matrix[row][place] -= factor * matrix[column][place] }
        vector[row] -= factor * vector[column]
      }
    }
    for row in (0..<size).reversed() {
      for column in row + 1..<max(size, row + 1) { vector[row] -= matrix[row][column] * vector[column] }
      vector[row] /= matrix[row][row]
    }
    return vector.allSatisfy(\.isFinite) ? vector : nil
  }

  /// The inverse, by columns: what errors of the unknowns are made of.
  func inverse() -> [[Double]]? {
    var columns: [[Double]] = []
    for index in vector.indices {
      var unit = [Double](repeating: 0, count: vector.count)
      unit[index] = 1
      guard let column = solved(unit) else { return nil }
      columns.append(column)
    }
    return columns
  }
}

/// The share of the values' variance that a fit explains; 1 when they do not vary and the fit is exact.
///
/// - Parameter weights: the weights of the squared errors; `nil`: all 1.
func explained(_ values: [Double], weights: [Double]? = nil, squaredError: Double) -> Double {
  let weights = weights ?? values.map { _ in 1 }
  let weight = weights.reduce(0, +)
  let mean = weight > 0 ? zip(values, weights).reduce(0) { $0 + $1.0 * $1.1 } / weight : 0
  let total = zip(values, weights).reduce(0) { $0 + $1.1 * ($1.0 - mean) * ($1.0 - mean) }
  guard total > 0 else { return squaredError <= 1e-18 * mean * mean * weight ? 1 : 0 }
  return 1 - squaredError / total
}
