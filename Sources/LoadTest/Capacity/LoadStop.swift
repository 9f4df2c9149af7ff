import Synchronization

/// Ends whichever of several loads runs, in good order, and each that would begin after it.
public final class LoadStop: Sendable {
  private let state = Mutex<(isRequested: Bool, runner: LoadRunner?)>((false, nil))

  public init() {}

  public var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Safe from any thread.
  public func request() {
    let runner = state.withLock { state in
      state.isRequested = true
      return state.runner
    }
    runner?.stop()
  }

  /// The load that is about to run; it ends at once when that was requested before.
  public func begin(_ runner: LoadRunner) {
    let isRequested = state.withLock { state in
      state.runner = runner
      return state.isRequested
    }
    if isRequested { runner.stop() }
  }
}
