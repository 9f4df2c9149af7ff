import Foundation
import Synchronization
import Testing

extension Trait where Self == WaitingTrait {
  /// The bodies of these tests run on threads of their own, where they may block: on a process, a socket, or a sleep.
  ///
  /// Swift's own pool has a thread for each processor. Two tests that block there stop every other test of the process
  /// on a machine with two.
  public static var waiting: Self { Self() }
}

/// See `Trait.waiting`.
public struct WaitingTrait: SuiteTrait, TestTrait, TestScoping {
  public var isRecursive: Bool { true }

  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(WaitingThreads.shared) { try await function() }
  }
}

/// As many threads as there is work for that has nothing to run on: a thread that blocks is replaced by a new one.
private final class WaitingThreads: TaskExecutor {
  static let shared = WaitingThreads()

  private struct State {
    var jobs: [UnownedJob] = []
    var idleThreads = 0
  }

  private let state = Mutex(State())
  /// One signal for each job.
  private let work = DispatchSemaphore(value: 0)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let needsThread = state.withLock { state in
      state.jobs.append(job)
      return state.jobs.count > state.idleThreads
    }
    if needsThread { Thread.detachNewThread { self.run() } }
    work.signal()
  }

  private func run() {
    while true {
      state.withLock { $0.idleThreads += 1 }
      work.wait()
      let job = state.withLock { state in
        state.idleThreads -= 1
        return state.jobs.removeFirst()
      }
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
