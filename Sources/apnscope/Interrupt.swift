import Glibc
import Synchronization

/// Ctrl-C and a closed pipe, as far as a reading command is concerned: the first ends the reading in good order, the
/// second is an ordinary end of the output.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)

  /// Ctrl-C was pressed. A second one ends the process at once.
  static var isRequested: Bool { flag.load(ordering: .relaxed) }

  /// Answers whether Ctrl-C was pressed, and takes that as dealt with: the next one counts as the first.
  static func take() -> Bool { flag.exchange(false, ordering: .relaxed) }

  /// Ends the reading as Ctrl-C does.
  static func request() { flag.store(true, ordering: .relaxed) }

  /// The thread that reads, and may wait for a pipe.
  private static let reader = Atomic<pthread_t>(0)

  /// Called by the thread that reads.
  static func watch() {
    _ = signal(SIGPIPE, SIG_IGN)
    reader.store(pthread_self(), ordering: .relaxed)
    // Without SA_RESTART, so that a read that waits for a pipe comes back.
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { _ in
      // The system gives the signal to any thread, and only a read of the thread that has it comes back.
      let reader = Interrupt.reader.load(ordering: .relaxed)
      if pthread_equal(pthread_self(), reader) == 0, pthread_kill(reader, SIGINT) == 0 { return }
      if Interrupt.flag.exchange(true, ordering: .relaxed) { _exit(130) }
    }
    _ = unsafe sigaction(SIGINT, &action, nil)
    // Worker threads of the system's library block all signals.
    var own = sigset_t()
    _ = unsafe sigemptyset(&own)
    _ = unsafe sigaddset(&own, SIGINT)
    _ = unsafe pthread_sigmask(SIG_UNBLOCK, &own, nil)
  }
}
