import Measurement

extension LoadProgress {
  /// Elapsed time, phase, requested, written and accepted rates, errors, connections, send lag, processor time.
  package var line: String {
    func rate(_ value: Double) -> String { "\(grouped(Int(nearest: value.rounded())))/s" }
    var parts = ["\(Int(nearest: elapsed.rounded())) s", phase.rawValue]
    if let asked = askedPerSecond { parts.append("asked \(rate(asked))") }
    parts += [
      "written \(rate(writtenPerSecond)) (\(grouped(written)))",
      "accepted \(rate(acceptedPerSecond)) (\(grouped(accepted)))",
      "errors \(grouped(errors))", pruned.map { "pruned \(grouped($0))" }, "connections \(grouped(connections))",
      "lag p99 \(Unit.microseconds.text(Double(sendLag99)))",
      "cpu \(Int(nearest: (cpu * 100).rounded())) %",
    ].compactMap { $0 }
    return parts.joined(separator: "  ")
  }
}
