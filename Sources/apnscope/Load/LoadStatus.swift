import Measurement
import Reporting
import Synchronization

/// The status line of a load on a terminal, updated every second.
final class LoadStatus: Sendable {
  private let hasLine = Atomic<Bool>(false)

  func show(_ progress: LoadProgress) {
    guard StandardError.isTerminal else { return }
    StandardError.write("\r\u{1b}[K\(progress.line)")
    hasLine.store(true, ordering: .relaxed)
  }

  func end() {
    if hasLine.exchange(false, ordering: .relaxed) { StandardError.write("\r\u{1b}[K") }
  }
}
