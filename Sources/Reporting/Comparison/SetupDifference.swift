import Measurement

/// A setting, or a property of the machine, that differs between runs.
public struct SetupDifference: Sendable, Equatable, Encodable {
  /// The name of the option in a plan, or of the property.
  public var name: String
  /// The distinct values of side a, sorted; "-" for a missing value.
  public var a: [String]
  /// The distinct values of side b, likewise.
  public var b: [String]

  /// Whether runs of one side differ.
  public var isWithinASide: Bool { a.count > 1 || b.count > 1 }
  /// Whether this is a property of the machine, and not a setting.
  public var isOfTheMachine: Bool { Self.machine.contains { $0.name == name } }

  /// Settings that define the load: runs that differ in one of them had different loads.
  static let decisive: Set<String> = [
    "payload", "payload_template", "seed", "rate", "rate_per_connection", "stage", "poisson", "behind", "command",
    "tokens", "token_length", "priority", "expiration", "faults", "segment", "count", "for",
  ]

  private static let machine: [(name: String, value: @Sendable (Environment) -> String)] = [
    ("host", { ($0.hosts ?? [$0.host]).joined(separator: " ") }), ("kernel", { $0.kernel }), ("cpu", { $0.cpu }),
    ("cores", { "\($0.cores)" }), ("openssl", { $0.openssl }),
  ]

  static func between(_ a: [RunResult], _ b: [RunResult]) -> [SetupDifference] {
    var differences: [SetupDifference] = []
    func compare(_ name: String, _ value: (RunResult) -> String) {
      func values(_ results: [RunResult]) -> [String] { Set(results.map(value).map { $0.isEmpty ? "-" : $0 }).sorted() }
      let (first, second) = (values(a), values(b))
      if Set(first + second).count > 1 { differences.append(SetupDifference(name: name, a: first, b: second)) }
    }
    for (name, value) in machine { compare(name) { value($0.environment) } }
    compare("apnscope") { $0.environment.build }
    compare("measured_by") { $0.measuredBy.map { "\($0)" } ?? "" }
    compare("labels", \.labelText)
    for name in Set((a + b).flatMap(\.plan.keys)).sorted() {
      compare(name) { $0.plan[name]?.text ?? "" }
    }
    return differences
  }
}
