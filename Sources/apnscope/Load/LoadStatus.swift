import Measurement
import Reporting
import Synchronization

/// One line a second on a terminal that says how a load stands.
final class LoadStatus: Sendable {
  private let hasLine = Atomic<Bool>(false)

  func show(_ progress: LoadProgress) {
    guard StandardError.isTerminal else { return }
    StandardError.write("\r\u{1b}[K\(Self.line(progress))")
    hasLine.store(true, ordering: .relaxed)
  }

  /// Elapsed time, phase, what was asked for, written and accepted, errors, connections, send lag, own processor time.
  static func line(_ progress: LoadProgress) -> String {
    func rate(_ value: Double) -> String { "\(grouped(Int(nearest: value.rounded())))/s" }
    var parts = ["\(Int(nearest: progress.elapsed.rounded())) s", progress.phase.rawValue]
    if let asked = progress.askedPerSecond { parts.append("asked \(rate(asked))") }
    parts += [
      "written \(rate(progress.writtenPerSecond)) (\(grouped(progress.written)))",
      "accepted \(rate(progress.acceptedPerSecond)) (\(grouped(progress.accepted)))",
      "errors \(grouped(progress.errors))", "connections \(grouped(progress.connections))",
      "lag p99 \(Unit.microseconds.text(Double(progress.sendLag99)))",
      "cpu \(Int(nearest: (progress.cpu * 100).rounded())) %",
    ]
    return parts.joined(separator: "  ")
  }

  func end() {
    if hasLine.exchange(false, ordering: .relaxed) { StandardError.write("\r\u{1b}[K") }
  }
}
