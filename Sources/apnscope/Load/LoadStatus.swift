import Measurement
import Reporting
import Synchronization

/// The status line of a load on a terminal, updated every second.
final class LoadStatus: Sendable {
  private let hasLine = Atomic<Bool>(false)
  private let isShown: Bool

  /// - Parameter isQuiet: whether there is no status line.
  init(isQuiet: Bool) { isShown = !isQuiet && StandardError.isTerminal }

  /// - Parameters:
  ///   - length: when the run ends.
  ///   - trial: the place of the run in a search.
  func show(_ progress: LoadProgress, of length: RunLength, trial: String? = nil) {
    guard isShown else { return }
    ProgressLine.show(progress.line(of: length, trial: trial))
    hasLine.store(true, ordering: .relaxed)
  }

  func end() {
    if hasLine.exchange(false, ordering: .relaxed) { ProgressLine.remove() }
  }
}
