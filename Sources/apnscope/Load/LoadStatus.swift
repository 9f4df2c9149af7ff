import Measurement
import Reporting
import Synchronization

/// The progress of a load on a terminal, updated every second: a line, or a screen.
final class LoadStatus: Sendable {
  private struct State {
    var hasLine = false
    var screen = Screen()
    var course = LoadCourse()
  }

  private let isShown: Bool
  private let hasScreen: Bool
  private let name: String
  private let state = Mutex(State())

  /// - Parameters:
  ///   - name: what runs, for the screen's first line.
  ///   - isQuiet: whether nothing is shown.
  ///   - hasScreen: whether it is a screen, on a terminal.
  init(_ name: String, isQuiet: Bool, hasScreen: Bool = false) {
    self.name = name
    isShown = !isQuiet && StandardError.isTerminal
    self.hasScreen = hasScreen
  }

  /// - Parameters:
  ///   - length: when the run ends.
  ///   - trial: the place of the run in a search.
  func show(_ progress: LoadProgress, of length: RunLength, trial: String? = nil) {
    guard isShown else { return }
    state.withLock { state in
      guard hasScreen else {
        ProgressLine.show(progress.line(of: length, trial: trial))
        state.hasLine = true
        return
      }
      state.course.add(progress)
      let title = [name, trial, progress.time(of: length), progress.phase.rawValue].compactMap { $0 }
      state.screen.show(state.course.dashboard(title.joined(separator: "  ")))
    }
  }

  /// Removes the line, or leaves the screen; either comes back with the next second.
  func end() {
    state.withLock { state in
      if state.hasLine { ProgressLine.remove() }
      state.hasLine = false
      state.screen.end()
    }
  }
}
