/// The different plans of parts, and that of the whole stream which they are of.
struct DistinctPlans: Sendable {
  typealias Plan = [String: RunResult.PlanValue]

  private var plans: [(own: Plan, whole: Plan)] = []
  private var last = 0

  /// Settings that may differ between the runs of one load.
  private static let ofOneRun: Set<String> = ["segment", "keylog"]
  /// Settings that are divided among segments.
  private static let divided = ["rate", "stage", "count", "connections"]

  /// The number of a plan among the different ones.
  mutating func index(of plan: Plan) -> Int {
    let segments: Segments?
    if case .text(let text)? = plan["segment"] { segments = Segments(text) } else { segments = nil }
    let own = plan.filter { !Self.ofOneRun.contains($0.key) }
    if last < plans.count, plans[last].own == own { return last }
    if let index = plans.firstIndex(where: { $0.own == own }) {
      last = index
      return index
    }
    plans.append((own, Self.whole(own, of: segments?.count ?? 1)))
    last = plans.count - 1
    return last
  }

  /// The plan of the whole stream: what segments have to themselves, times their number. The same plan, when some of it
  /// cannot be multiplied.
  static func whole(_ plan: Plan, of segments: Int) -> Plan {
    guard segments > 1, plan["of_whole"] != .flag(true) else { return plan }
    var whole = plan
    for name in divided {
      guard let value = plan[name] else { continue }
      guard let product = times(value, segments, name) else { return plan }
      whole[name] = product
    }
    guard whole != plan || plan["rate_per_connection"] != nil else { return plan }
    whole["of_whole"] = .flag(true)
    return whole
  }

  private static func times(_ value: RunResult.PlanValue, _ factor: Int, _ name: String) -> RunResult.PlanValue? {
    /// Numbers of a document may be so large that there is no product.
    func product(_ number: Double) -> Double? { (number * Double(factor)).isFinite ? number * Double(factor) : nil }
    func rate(_ text: Substring) -> String? { Double(text).flatMap(product).map { "\($0)" } }
    switch value {
    case .number(let number): return product(number).map { .number($0) }
    case .text(let text) where name == "rate":
      return text.hasSuffix("/s") ? rate(text.dropLast(2)).map { .text("\($0)/s") } : nil
    case .list(let stages) where name == "stage":
      // `10s:500.0..30000.0/s`
      let scaled = stages.compactMap { stage -> String? in
        guard let colon = stage.firstIndex(of: ":"), stage.hasSuffix("/s"),
          let dots = stage.firstRange(of: "..")
        else { return nil }
        let (from, to) = (stage[stage.index(after: colon)..<dots.lowerBound], stage[dots.upperBound...].dropLast(2))
        guard let from = rate(from), let to = rate(to) else { return nil }
        return "\(stage[..<colon]):\(from)..\(to)/s"
      }
      return scaled.count == stages.count ? .list(scaled) : nil
    default: return nil
    }
  }

  /// The plan of the merged result: that of the whole stream, if all parts agree in what is divided; otherwise the first
  /// part's own.
  func merged(_ parts: [PartBrief]) -> Plan {
    guard let first = parts.first else { return [:] }
    let plan = plans[first.plan]
    var merged = isOneWhole(parts) ? plan.whole : plan.own
    if let segment = first.segment { merged["segment"] = .text(segment) }
    return merged
  }

  private func isOneWhole(_ parts: [PartBrief]) -> Bool {
    guard let first = parts.first else { return false }
    let names = Self.divided + ["of_whole", "rate_per_connection"]
    return Set(parts.map(\.plan)).allSatisfy { index in
      names.allSatisfy { plans[index].whole[$0] == plans[first.plan].whole[$0] }
    }
  }

  /// The settings that differ between the plans; paths of secrets are ignored.
  func differences(_ parts: [PartBrief]) -> [String] {
    guard let first = parts.first else { return [] }
    let isWhole = isOneWhole(parts)
    func plan(_ part: PartBrief) -> Plan { isWhole ? plans[part.plan].whole : plans[part.plan].own }
    return parts.dropFirst().compactMap { part in
      guard part.plan != first.plan else { return nil }
      let (a, b) = (plan(first), plan(part))
      let names = Set(a.keys).union(b.keys).filter { a[$0] != b[$0] }.sorted()
      return names.isEmpty
        ? nil : "the plan of \(part.name) differs from that of \(first.name): \(names.joined(separator: ", "))"
    }
  }
}
