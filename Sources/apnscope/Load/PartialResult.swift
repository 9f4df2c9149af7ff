import Bytes
import CommandFiles
import Glibc
import LoadTest
import Measurement
import NIOPosix
import Reporting
import Synchronization

/// The result of an unfinished run, in `FILE.part` beside its output, which remains if the process is killed.
///
/// The file is replaced atomically about once a second, on a separate low-priority thread, and removed when the result
/// is written.
final class PartialResult: Sendable {
  /// The suffix of the output's name.
  static let suffix = ".part"

  private struct State {
    var isBusy = false
    /// The time before which nothing is written: writing uses at most a twentieth of one processor, however long the
    /// result is.
    var rest = ContinuousClock.now
  }

  private struct Target {
    let file: WholeDocument
    var hasComplained = false
  }

  let path: String
  private let environment: Environment
  private let plan: [String: RunResult.PlanValue]
  private let labels: [String: String]?
  private let state = Mutex(State())
  /// Locked while the file is written, which may take long; so `keep` uses `state`.
  private let target: Mutex<Target>
  private let pool = NIOThreadPool(numberOfThreads: 1)

  /// Complains and throws an exit code when there can be no such file.
  init(
    beside output: String, _ environment: Environment, plan: [String: RunResult.PlanValue], labels: [String: String]?
  ) throws {
    path = output + Self.suffix
    (self.environment, self.plan, self.labels) = (environment, plan, labels)
    let file = try WholeDocument(path)
    target = Mutex(Target(file: file))
    // Remove the file of an earlier run.
    _ = unsafe unlink(path)
    pool.start()
    pool.submit { status in
      // On Linux, 0 is the calling thread; a thread may always lower its priority.
      if status == .active { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }
    }
  }

  /// Writes the current books, unless a write is in progress. Returns at once.
  func keep(_ books: LoadOutcome) {
    let isFree = state.withLock { state in
      guard !state.isBusy, ContinuousClock.now >= state.rest else { return false }
      state.isBusy = true
      return true
    }
    guard isFree else { return }
    pool.submit { [self] status in
      guard status == .active else { return }
      let began = ProcessorTime.ofThread()
      var result = books.lostResult(environment)
      result.plan = plan
      result.labels = labels
      let document = try? result.jsonDocument()
      target.withLock { target in
        if let document { target.file.write(document) }
        if !target.hasComplained, let failure = target.file.failure {
          target.hasComplained = true
          complain("\(path): \(SystemError.text(failure)); the run continues, but its saved books are not updated")
        }
      }
      state.withLock { state in
        state.isBusy = false
        state.rest = ContinuousClock.now + .nanoseconds((ProcessorTime.ofThread() - began) * 20)
      }
    }
  }

  /// Waits for the write in progress.
  func end() async { try? await pool.shutdownGracefully() }

  /// Removes the file, after the result was written or when there is none.
  func remove() { _ = unsafe unlink(path) }
}
