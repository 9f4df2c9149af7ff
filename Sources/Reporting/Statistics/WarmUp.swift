/// The point at which a series becomes steady, by MSER-5: the best truncation minimizes the standard error of the mean
/// of the rest.
///
/// The series is cut into means of 5 values; of those left when the first d are dropped, the squared standard error
/// Σ(Z − Z̄)²/(m − d)² is smallest at the end of the warm-up. (White, "An effective truncation heuristic for bias
/// reduction in simulation output", 1997; White, Cobb and Spratt, 2000.)
package enum WarmUp: Sendable, Equatable {
  /// Steady from this value on, counted from 0.
  case settled(at: Int)
  /// The minimum is in the second half: the rest is too short to be called steady.
  case neverSettles
  /// Fewer than 10 means of 5 values.
  case tooShort

  /// Values that are taken together.
  package static let group = 5

  package init(_ values: [Double]) {
    let count = values.count / Self.group
    guard count >= 10, values.allSatisfy(\.isFinite) else {
      self = .tooShort
      return
    }
    let means = Self.grouped(values[...])
    // From the end, so that each error needs one step: Welford's sums.
    var (best, at) = (Double.infinity, 0)
    var (sum, middle, left) = (0.0, 0.0, 0.0)
    for index in means.indices.reversed() {
      left += 1
      let distance = means[index] - middle
      middle += distance / left
      sum += distance * (means[index] - middle)
      // A few at the end are alike by chance.
      guard left >= Double(max(5, count / 4)) else { continue }
      let error = sum / (left * left)
      if error <= best { (best, at) = (error, index) }
    }
    self = at <= count / 2 ? .settled(at: at * Self.group) : .neverSettles
  }

  private static func grouped(_ values: ArraySlice<Double>) -> [Double] {
    (0..<values.count / group).map { index in
      let start = values.startIndex + index * group
      return mean(values[start..<start + group])
    }
  }
}

extension WarmUp {
  /// The length in seconds below which short bins cannot distinguish a warm-up from chance.
  package static let shortestS = 10.0

  /// Finds the warm-up of rates in short bins of equal length, for example 100 ms. MSER-5 alone would find one in 30 to
  /// 50 % of series that are steady from the beginning.
  ///
  /// A beginning counts as warm-up only if leaving it out changes the mean by 1 % or more, if its mean differs from the
  /// rest's by more than their uncertainty, and if four fifths of it are on the same side of the rest's mean: one stall
  /// is not a warm-up. A series counts as never settling only if its halves differ in this way, or if it drifts. Of
  /// simulated steady series of 10 to 60 s with AR(1) φ 0 to 0.8 from value to value, or stalls, at most 7 % have a
  /// warm-up then; of those that begin at half their rate and reach it in 2 to 5 s, two thirds have one in 10 s and
  /// nine of ten in 30 s.
  package init(rates: [Double], secondsEach: Double) {
    guard Double(rates.count) * secondsEach >= Self.shortestS - 1e-6 else {
      self = .tooShort
      return
    }
    self = WarmUp(rates)
    switch self {
    case .settled(let at) where at > 0:
      if !Self.isAnother(rates[..<at], than: rates[at...], secondsEach) { self = .settled(at: 0) }
    case .neverSettles:
      let half = rates.count / 2
      if !BatchMeans.drifts(rates), !Self.isAnother(rates[..<half], than: rates[half...], secondsEach) {
        self = .settled(at: 0)
      }
    case .settled, .tooShort: break
    }
  }

  private static func isAnother(
    _ head: ArraySlice<Double>, than rest: ArraySlice<Double>, _ secondsEach: Double
  ) -> Bool {
    let (ofHead, ofRest) = (mean(head), mean(rest))
    let (short, long) = (Double(head.count), Double(rest.count))
    let change = (ofHead - ofRest) * short / (short + long)
    guard abs(change) >= 0.01 * abs(ofRest) else { return false }
    // The head's mean is known the worse the shorter it is.
    let known = BatchMeans.halfWidth(Array(rest), length: long * secondsEach) * (1 + long / short).squareRoot()
    guard abs(ofHead - ofRest) > known else { return false }
    let groups = grouped(head)
    return groups.count { ($0 > ofRest) == (ofHead > ofRest) } * 5 >= groups.count * 4
  }
}
