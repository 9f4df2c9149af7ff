import Synchronization

/// Stops consecutive loads: ends the running one in good order, and each later one at its beginning. Thread-safe.
public final class LoadStop: Sendable {
  private let state = Mutex<(isRequested: Bool, runner: LoadRunner?)>((false, nil))

  public init() {}

  /// Whether `request()` was called.
  public var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Ends the running load in good order, and all later ones.
  public func request() {
    let runner = state.withLock { state in
      state.isRequested = true
      return state.runner
    }
    runner?.stop()
  }

  /// Registers the load that is about to run; if a stop was requested before, the load ends at once.
  public func begin(_ runner: LoadRunner) {
    let isRequested = state.withLock { state in
      state.runner = runner
      return state.isRequested
    }
    if isRequested { runner.stop() }
  }
}
