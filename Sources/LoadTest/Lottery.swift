/// Draws values as often as their weights say, from a random word.
struct Lottery<Value: Sendable & Equatable & Codable>: Sendable {
  private let values: [Value]
  /// Where each value's part of all words ends; the last reaches to the end.
  private let ends: [UInt64]
  /// There is nothing to draw, which is the usual case and asked first.
  let isSingle: Bool
  let first: Value

  init(_ mix: WorkloadPlan.Mix<Value>, _ name: String) throws(Workload.PlanError) {
    let parts = mix.parts.filter { $0.weight > 0 }
    guard let first = parts.first, mix.parts.allSatisfy({ $0.weight >= 0 && $0.weight.isFinite }) else {
      throw Workload.PlanError("the weights of \(name) must not be negative, and one must be above 0")
    }
    let total = parts.reduce(0) { $0 + $1.weight }
    var sum = 0.0
    values = parts.map(\.value)
    ends = parts.map {
      sum += $0.weight
      return sum >= total ? .max : UInt64(min(1, sum / total) * 0x1p63) << 1
    }
    isSingle = parts.count == 1
    self.first = first.value
  }

  func draw(_ word: UInt64) -> Value {
    for (index, end) in ends.enumerated() where word < end { return values[index] }
    return values[values.count - 1]
  }
}

/// Draws which notifications have which fault; most have none.
struct FaultLottery: Sendable {
  private var ends: [(end: UInt64, fault: WorkloadPlan.Fault)] = []

  var isEmpty: Bool { ends.isEmpty }

  init(_ shares: [WorkloadPlan.Fault: Double]) throws(Workload.PlanError) {
    var sum = 0.0
    for fault in WorkloadPlan.Fault.allCases {
      guard let share = shares[fault], share != 0 else { continue }
      guard (0...1).contains(share) else {
        throw Workload.PlanError("the share of \(fault.rawValue) is not from 0 to 1")
      }
      sum += share
      guard sum <= 1 else { throw Workload.PlanError("the shares of faults are more than 1 together") }
      ends.append((sum == 1 ? .max : UInt64(sum * 0x1p63) << 1, fault))
    }
  }

  func draw(_ word: UInt64) -> WorkloadPlan.Fault? {
    guard let last = ends.last, word < last.end else { return nil }
    for (end, fault) in ends where word < end { return fault }
    return nil
  }
}
