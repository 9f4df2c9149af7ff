/// Draws values with the probability of their weights from a random word.
struct WeightedChoice<Value: Sendable & Equatable & Codable>: Sendable {
  private let values: [Value]
  /// The upper bound of each value's range of words; the last is the maximum.
  private let ends: [UInt64]
  /// There is only one value, the usual case, which is checked first.
  private let isSingle: Bool
  private let first: Value

  init(_ mix: WorkloadPlan.Mix<Value>, _ name: String) throws(Workload.PlanError) {
    let parts = mix.parts.filter { $0.weight > 0 }
    let total = parts.reduce(0) { $0 + $1.weight }
    guard let first = parts.first, mix.parts.allSatisfy({ $0.weight >= 0 }), total.isFinite else {
      throw Workload.PlanError("the weights of \(name) must be finite and not negative, and at least one positive")
    }
    var sum = 0.0
    values = parts.map(\.value)
    ends = parts.map {
      sum += $0.weight
      return UInt64(share: sum / total)
    }
    isSingle = parts.count == 1
    self.first = first.value
  }

  /// The only value; `nil` when there are several.
  var only: Value? { isSingle ? first : nil }

  @inline(__always)
  func draw(_ word: @autoclosure () -> UInt64) -> Value {
    if isSingle { return first }
    let word = word()
    // The first whose bound is above the word; the last one except for one word.
    var (low, high) = (0, ends.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if word < ends[middle] { high = middle } else { low = middle + 1 }
    }
    return values[low]
  }
}

/// Draws the faults of notifications; most have none.
struct FaultChoice: Sendable {
  private var ends: [(end: UInt64, fault: WorkloadPlan.Fault)] = []
  /// Words up to this one have a fault; `nil`: none, which is checked first.
  private var lastEnd: UInt64?
  /// The ends of the shares of faulty payloads, which follow the shares of the other faults.
  private var payloads: [(end: UInt64, bank: Int)] = []

  /// - Parameter payloads: shares of faulty payloads, in the order of their banks.
  init(_ shares: [WorkloadPlan.Fault: Double], payloads: [Double] = []) throws(Workload.PlanError) {
    var sum = 0.0
    for fault in WorkloadPlan.Fault.allCases {
      guard let share = shares[fault], share != 0 else { continue }
      guard (0...1).contains(share) else {
        throw Workload.PlanError("the share of \(fault.rawValue) must be 0 to 1")
      }
      sum += share
      // Shares as 0.1 are not exact, so a sum that should be 1 may be slightly above.
      guard sum <= 1 + 1e-9 else { throw Workload.PlanError("the shares of faults add up to more than 1") }
      ends.append((UInt64(share: sum), fault))
    }
    for (bank, share) in payloads.enumerated() where share != 0 {
      guard (0...1).contains(share) else {
        throw Workload.PlanError("the share of a faulty payload is not from 0 to 1")
      }
      sum += share
      guard sum <= 1 + 1e-9 else { throw Workload.PlanError("the shares of faults are more than 1 together") }
      self.payloads.append((UInt64(share: sum), bank))
    }
    lastEnd = self.payloads.last?.end ?? ends.last?.end
  }

  /// Which faulty payload a word that drew the fault `payload` stands for.
  func bank(of word: UInt64) -> Int { payloads.first { word <= $0.end }?.bank ?? 0 }

  @inline(__always)
  func draw(_ word: @autoclosure () -> UInt64) -> WorkloadPlan.Fault? {
    guard let lastEnd else { return nil }
    let word = word()
    return word <= lastEnd ? fault(of: word) : nil
  }

  @inline(never)
  private func fault(of word: UInt64) -> WorkloadPlan.Fault? {
    ends.first { word <= $0.end }?.fault ?? .payload
  }
}

extension UInt64 {
  /// The word up to which this share of all words lies.
  fileprivate init(share: Double) { self = share < 1 ? UInt64(share * 0x1p64) : .max }
}
