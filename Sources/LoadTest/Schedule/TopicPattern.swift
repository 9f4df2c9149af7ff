/// How the notifications of a run are divided among its topics: in proportion to weights, every `length` in the same
/// way, and of any first n as many of each topic as is due to it, give or take less than one.
struct TopicPattern: Sendable, Equatable {
  /// A topic's places of a pattern.
  struct Places: Sendable, Equatable {
    /// The notifications after which the places repeat.
    let length: Int
    /// The topic's numbers below `length`, in their order; at least one.
    fileprivate let numbers: [UInt32]

    /// The share of all notifications.
    var share: Double { Double(numbers.count) / Double(length) }

    /// The number of the topic's notification `index` (from 0); `Int.max` when that is too large.
    func number(_ index: Int) -> Int {
      let (round, place) = index.quotientAndRemainder(dividingBy: numbers.count)
      let (start, overflow) = round.multipliedReportingOverflow(by: length)
      return overflow || start > .max - length ? .max : start + Int(numbers[place])
    }

    /// How many of the notifications below `all` are the topic's.
    func count(among all: Int) -> Int {
      let (rounds, rest) = max(0, all).quotientAndRemainder(dividingBy: length)
      var (low, high) = (0, numbers.count)
      while low < high {
        let middle = (low + high) / 2
        if Int(numbers[middle]) < rest { low = middle + 1 } else { high = middle }
      }
      return rounds * numbers.count + low
    }
  }

  /// The longest pattern. A topic with a smaller share than one in so many has one in so many.
  static let longest = 65_536

  /// By topic.
  let places: [Places]

  /// - Parameter weights: of the topics, each above 0; there is at least one, and fewer than `longest`.
  init(weights: [Double]) {
    let length = Self.length(weights)
    let counts = apportioned(length, by: weights, least: weights.map { _ in 1 })
    var numbers = [[UInt32]](repeating: [], count: weights.count)
    for number in 0..<length {
      // Of the topics that may have another one, that which has to have it first: this keeps every topic's count within
      // one of its share (Baruah et al., Proportionate Progress, 1996).
      var (next, deadline) = (0, Int.max)
      for (topic, count) in counts.enumerated() where numbers[topic].count < count {
        let taken = numbers[topic].count
        guard taken * length / count <= number else { continue }
        let last = ((taken + 1) * length + count - 1) / count
        if last < deadline { (next, deadline) = (topic, last) }
      }
      numbers[next].append(UInt32(number))
    }
    places = numbers.map { Places(length: length, numbers: $0) }
  }

  /// The shortest length in which every topic has a whole number of places; the longest length when there is none.
  private static func length(_ weights: [Double]) -> Int {
    let whole = weights.reduce(0, +)
    return (weights.count...longest).first { length in
      weights.allSatisfy { weight in
        let count = weight / whole * Double(length)
        return count.rounded() >= 1 && abs(count - count.rounded()) <= 1e-9 * Double(length)
      }
    } ?? longest
  }
}

/// Whole numbers in proportion to weights that are `total` together.
///
/// - Parameter least: the smallest number for each weight; together they are not above `total`.
func apportioned(_ total: Int, by weights: [Double], least: [Int]) -> [Int] {
  let whole = weights.reduce(0, +)
  let ideal = weights.map { $0 / whole * Double(total) }
  var counts = zip(ideal, least).map { max(Int($0), $1) }
  var left = total - counts.reduce(0, +)
  while left != 0 {
    // The one that is furthest from its ideal on the side that is to change.
    let open = counts.indices.filter { left > 0 || counts[$0] > least[$0] }
    guard
      let next = open.max(by: {
        (ideal[$0] - Double(counts[$0])) * Double(left.signum())
          < (ideal[$1] - Double(counts[$1])) * Double(left.signum())
      })
    else { break }
    counts[next] += left.signum()
    left -= left.signum()
  }
  return counts
}
