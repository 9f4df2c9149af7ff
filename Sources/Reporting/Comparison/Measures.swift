import Measurement

/// The methods by which the figures of some runs were computed: rates, latencies and shares computed by different
/// methods are not comparable, though they have the same names.
struct Measures {
  /// The methods, the oldest first, each with the names of its runs.
  private let ways: [(name: String, runs: [String])]

  init(_ parts: [RunResult.Part]) {
    ways = Dictionary(grouping: parts) { $0.result.measuredBy ?? 0 }.sorted { $0.key < $1.key }
      .map { (RunResult.nameOfMeasure($0.value[0].result.measuredBy), $0.value.map(\.name)) }
  }

  var areMixed: Bool { ways.count > 1 }

  var warnings: [String] {
    guard areMixed else { return [] }
    let words = ways.map { way in
      let shown = way.runs.prefix(3).joined(separator: " ")
      return "\(way.name) (\(shown)\(way.runs.count > 3 ? " …" : ""))"
    }
    return [
      "not judged: figures are computed differently by \(words.joined(separator: " and "))"
    ]
  }
}

extension RunResult {
  /// The method by which a document's figures were computed, named by the versions that use it.
  static func nameOfMeasure(_ measuredBy: Int?) -> String {
    switch measuredBy {
    case nil: "apnscope 0.1.0"
    case currentMeasure: "apnscope 0.2.0 or later"
    case let other?: "another apnscope (measured_by \(other))"
    }
  }
}
