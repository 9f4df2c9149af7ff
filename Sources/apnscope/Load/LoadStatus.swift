import Measurement
import Reporting
import Synchronization

/// One line a second on a terminal that says how a load stands.
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
