import ArgumentParser
import Glibc
import Synchronization
import UnixSignals

/// SIGINT, SIGTERM and SIGHUP: the first asks for an end in good order, a second ends the process at once.
final class StopSignals: Sendable {
  private let asked = Atomic<Bool>(false)
  private let task = Mutex<Task<Void, Never>?>(nil)

  /// Returns after the signals are trapped: none of them kills the process from then on.
  init(_ stop: @escaping @Sendable () -> Void) async {
    let sequence = await UnixSignalsSequence(trapping: Self.signals)
    let watching = Task { [self] in
      var requests = StopRequests()
      for await _ in sequence {
        requests.note()
        asked.store(true, ordering: .relaxed)
        stop()
      }
    }
    task.withLock { $0 = watching }
  }

  /// The signals that request an end: from Ctrl-C, from process managers, and from a closed terminal or connection
  /// unless ignored, as under nohup.
  static var signals: [UnixSignal] { isHangupIgnored ? [.sigint, .sigterm] : [.sigint, .sigterm, .sighup] }

  /// The signals' numbers.
  static var numbers: [Int32] { isHangupIgnored ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP] }

  private static var isHangupIgnored: Bool {
    var action = sigaction()
    guard unsafe sigaction(SIGHUP, nil, &action) == 0 else { return false }
    // Safe: the handler is only compared, as the number that it is.
    return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// An end was asked for.
  var wasAsked: Bool { asked.load(ordering: .relaxed) }

  func end() { task.withLock { $0?.cancel() } }
}

/// How often an end was asked for: the second time ends the process at once.
struct StopRequests {
  /// The time, in nanoseconds, within which signals are one request: wrappers such as timeout(1) send a signal twice,
  /// to the process and to its group.
  static let oneRequest: Int64 = 500_000_000

  private var first: ContinuousClock.Instant?

  mutating func note() {
    let now = ContinuousClock.now
    if let first, first.duration(to: now) > .nanoseconds(Self.oneRequest) { _exit(ExitStatus.interrupted.rawValue) }
    first = first ?? now
  }
}
