import LoadTest
import Synchronization

/// One line a second on a terminal that says how a load stands.
final class LoadStatus: Sendable {
  private let hasLine = Atomic<Bool>(false)

  func show(_ progress: LoadProgress) {
    guard StandardError.isTerminal else { return }
    StandardError.write(
      "\r\u{1b}[K\(Int(progress.elapsed.rounded())) s  \(progress.phase)  written \(grouped(progress.written)) (\(grouped(Int(progress.writtenPerSecond.rounded())))/s)  accepted \(grouped(progress.accepted))  errors \(grouped(progress.errors))  connections \(grouped(progress.connections))  lag p99 \(microseconds(progress.sendLag99))  cpu \(Int((progress.cpu * 100).rounded())) %"
    )
    hasLine.store(true, ordering: .relaxed)
  }

  func end() {
    if hasLine.exchange(false, ordering: .relaxed) { StandardError.write("\r\u{1b}[K") }
  }
}

/// A time in microseconds, in a unit that fits it.
func microseconds(_ value: Int) -> String {
  switch value {
  case ..<10_000: "\(value) us"
  case ..<10_000_000: "\(value / 1_000) ms"
  default: "\(value / 1_000_000) s"
  }
}
