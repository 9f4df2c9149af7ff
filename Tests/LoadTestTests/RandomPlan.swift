import LoadTest
import TestSupport

/// Plans of every kind.
extension SeededGenerator {
  typealias Mix = WorkloadPlan.Mix

  mutating func mix<Value: Sendable & Equatable & Codable>(_ value: (inout Self) -> Value) -> Mix<Value> {
    Mix((1...number(1...4)).map { _ in (value(&self), pick([1, 1, 0.001, 12.5, 1e-300])) })
  }

  mutating func sizes() -> ClosedRange<Int> {
    let limits = [20, 21, 100, 200, 4_096, 61_439]
    let (a, b) = (
      happens(oneIn: 3) ? pick(limits) : number(20...300), happens(oneIn: 3) ? pick(limits) : number(20...300)
    )
    return min(a, b)...max(a, b)
  }

  /// JSON, with placeholders and other braces in it.
  mutating func template() -> String {
    let values = [
      "{index}", #""{random:\#(number(0...70))}""#, "{time}", #""{""#, #""{index""#, #""{random:12""#, "{}", "[{}]",
      #""{none}""#,
      #""}}{{index}}""#, #""é😀{index}{index}{random:0}""#, #"{"deep":{"index":{index}}}"#,
    ]
    let members = (0..<number(1...5)).map { #""\#($0)":"# + pick(values) }
    return #"{"aps":{"alert":"{random:9}"},"# + members.joined(separator: ",") + "}"
  }

  mutating func plan() -> WorkloadPlan {
    var plan = WorkloadPlan()
    plan.seed = next()
    plan.commands = mix { UInt8($0.number(0...2)) }
    plan.tokenLength = pick([32, 32, 8, 9, 31, 100, number(1...200), 1, 65_535])
    let most = plan.tokenLength < 8 ? 1 << (8 * plan.tokenLength) : Int.max
    plan.tokens = min(most, pick([1, 2, 256, 1_000_000, .max]))
    plan.payload = happens(oneIn: 3) ? .template(template()) : .sizes(mix { $0.sizes() })
    plan.priorities = mix { $0.pick([nil, 10, 5, 0, 255]) }
    plan.expirations = mix { $0.pick([nil, 0, 1, .at($0.uint32()), .at(.max), .after(seconds: $0.uint32())]) }
    for fault in WorkloadPlan.Fault.allCases
    where happens(oneIn: 3) && (fault != .invalidToken || plan.tokenLength >= 8) {
      plan.faults[fault] = Double.random(in: 0...1.0 / 6, using: &self)
    }
    plan.segments = pick([1, 4, .max])
    plan.segment = number(0...plan.segments - 1)
    return plan
  }
}
