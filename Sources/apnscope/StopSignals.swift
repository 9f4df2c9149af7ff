import ArgumentParser
import Glibc
import Synchronization
import UnixSignals

/// SIGINT and SIGTERM: the first asks for an end in good order, a second ends the process at once.
final class StopSignals: Sendable {
  private let asked = Atomic<Bool>(false)
  private let task = Mutex<Task<Void, Never>?>(nil)

  init(_ stop: @escaping @Sendable () -> Void) {
    let watching = Task { [self] in
      var requests = StopRequests()
      for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) {
        requests.note()
        asked.store(true, ordering: .relaxed)
        stop()
      }
    }
    task.withLock { $0 = watching }
  }

  /// An end was asked for.
  var wasAsked: Bool { asked.load(ordering: .relaxed) }

  func end() { task.withLock { $0?.cancel() } }
}

/// How often an end was asked for: the second time ends the process at once.
struct StopRequests {
  private var first: ContinuousClock.Instant?

  mutating func note() {
    let now = ContinuousClock.now
    // Wrappers such as timeout(1) send a signal twice in a moment: to the process and to its group.
    if let first, first.duration(to: now) > .milliseconds(500) { _exit(ExitStatus.interrupted.rawValue) }
    first = first ?? now
  }
}
